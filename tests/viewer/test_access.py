"""Who sees the pages, and what pages may do."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import wfdsl.viewer
from wfdsl.errors import UsageError
from wfdsl.viewer.access import key_beside

STATIC = Path(wfdsl.viewer.__file__).parent / "static"
PREACT = "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7"


def test_without_the_key_no_page_is_shown(stranger: TestClient) -> None:
    for path in ("/view/", "/view/events", "/view/nothing", "/view/?key=wrong"):
        answer = stranger.get(path)

        assert answer.status_code == 403, path
        assert "Open the address that was printed" in answer.text
    assert stranger.post("/view/").status_code == 403


def test_the_key_in_the_address_becomes_a_cookie_that_scripts_cannot_read(stranger: TestClient) -> None:
    answer = stranger.get(stranger.headers["x-path"] + "&status=done")

    assert answer.headers["location"] == "/view/?status=done"
    assert "httponly" in answer.headers["set-cookie"].lower()
    assert "samesite=lax" in answer.headers["set-cookie"].lower()
    assert stranger.get("/view/").status_code == 200


def test_pages_may_load_nothing_from_elsewhere_and_run_no_inline_script(client: TestClient) -> None:
    policy = client.get("/view/").headers["content-security-policy"]

    assert policy.startswith("default-src 'none'; script-src 'self'; connect-src 'self'")
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_the_key_is_kept_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    key = key_beside(tmp_path / "home" / "journal.db")

    assert key_beside(tmp_path / "home" / "journal.db") == key
    assert stat.S_IMODE((tmp_path / "home" / "viewer.key").stat().st_mode) == 0o600


def test_a_damaged_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "viewer.key").write_text("x")

    with pytest.raises(UsageError, match=r"viewer\.key, is damaged: remove the file"):
        key_beside(tmp_path / "journal.db")


def test_the_library_is_the_published_one_with_its_licences() -> None:
    assert hashlib.sha256((STATIC / "preact.js").read_bytes()).hexdigest() == PREACT
    licences = (STATIC / "preact-licences.txt").read_text()
    assert "Permission is hereby granted" in licences
    assert "Apache License" in licences


def test_static_files_are_cached_by_their_content_and_nothing_else_is_served(client: TestClient) -> None:
    page = client.get("/view/").text
    address = page.split('rel="stylesheet" href="')[1].split('"')[0]

    answer = client.get(address)

    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in answer.headers["cache-control"]
    assert client.get("/view/static/..%2Fapp.py").status_code == 404
    assert client.get("/view/static/app.py").status_code == 404


def test_an_address_that_is_not_there_says_so(client: TestClient) -> None:
    answer = client.get("/view/nothing")

    assert answer.status_code == 404
    assert "There is no such page." in answer.text
