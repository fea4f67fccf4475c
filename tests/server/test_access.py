"""Who may ask, how much, and what the log says."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.cli.conftest import Command, wfdsl  # noqa: F401  (a fixture)
from wfdsl.server.keys import make_key

from .conftest import Serve
from .provider import Provider

pytestmark = pytest.mark.slow
ASK: Any = [{"role": "user", "content": "A secret question?"}]


def test_only_those_with_a_key_are_answered(own: Serve, provider: Provider, tmp_path: Path) -> None:
    key, other = (make_key(str(tmp_path / "keys.toml"), name, {}) for name in ("ann", "bob"))
    server = own("--keys", "keys.toml")
    url = f"{server.url}/models"

    assert key not in (tmp_path / "keys.toml").read_text()
    assert httpx.get(url, headers={"Authorization": f"Bearer {key}"}, timeout=60).status_code == 200
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": key}, {"Authorization": f"Basic {key}"}):
        refused = httpx.get(url, headers=headers, timeout=60)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
    assert httpx.get(server.url.removesuffix("/v1") + "/health", timeout=60).status_code == 200

    for each in (key, other):  # the same key for repetitions: each owner has runs of its own
        client = openai.OpenAI(base_url=server.url, api_key=each)
        client.chat.completions.create(model="two", messages=ASK, extra_headers={"Idempotency-Key": "one"})
    assert len(provider.bodies) == 4


def test_the_log_has_no_texts_and_no_keys(own: Serve, tmp_path: Path) -> None:
    key = make_key(str(tmp_path / "keys.toml"), "ann", {})
    server = own("--keys", "keys.toml")
    client = openai.OpenAI(base_url=server.url, api_key=key)
    reply = client.chat.completions.create(model="two", messages=ASK)
    server.stop()

    log = "".join(server.lines)
    assert "POST /v1/chat/completions 200" in log
    assert reply.to_dict()["wfdsl"]["run"] in log  # type: ignore[index]
    assert "key ann" in log
    assert key not in log
    assert "secret" not in log
    assert "did:" not in log


def test_another_address_needs_keys(wfdsl: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path))

    done = wfdsl("serve", "--pool", "paper", "--host", "0.0.0.0", "--port", "0")

    assert done.code == 2
    assert "--host 0.0.0.0 needs --keys" in done.err


def test_a_worker_without_a_key_is_told_before_the_server_starts(
    wfdsl: Command,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    done = wfdsl("serve", "--pool", "openai:gpt-5,openai:gpt-5-mini", "--port", "0")

    assert done.code == 2
    assert 'worker "gpt-5" needs a key' in done.err


def test_a_body_that_is_too_large_is_refused_before_it_is_read(own: Serve) -> None:
    server = own("--set", "serve.max_body_bytes=1000")
    with socket.create_connection(server.address, timeout=60) as connection:
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
        connection.sendall(head + b"Content-Length: 50000000\r\n\r\n{")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 413")
    streamed = httpx.post(f"{server.url}/chat/completions", content=iter([b"x" * 600] * 3), timeout=60)

    assert (streamed.status_code, streamed.json()["error"]["code"]) == (413, "body_too_large")
    assert server.client.models.list().data
