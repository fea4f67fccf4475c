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
def test_the_key_is_kept_and_only_its_owner_can_read_it_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    journal, file = tmp_path / "home" / "journal.db", tmp_path / "home" / "viewer.key"
    key = key_beside(journal)

    assert key_beside(journal) == key
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("x")
    with pytest.raises(UsageError, match=str(file)):
        key_beside(journal)


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
    for path in ("static/..%2Fapp.py", "static/app.py", "nothing"):
        assert client.get(f"/view/{path}").status_code == 404
