"""Requests that come again: after a client's time is over, with an `Idempotency-Key`, after the server was killed."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from tests.conductor.scripted_server import lists
from tests.forked import ended

from .conftest import Serve, ServerProcess
from .provider import CONDUCTOR, Provider
from .test_streams import begun, rest_of

pytestmark = pytest.mark.slow
ASK: Any = [{"role": "user", "content": "Why?"}]


def test_a_client_that_times_out_twice_pays_for_one_run(own: Serve, provider: Provider) -> None:
    provider.held = {"bob"}
    server = own()

    def release() -> None:
        while sum(" 499 " in line for line in server.lines) < 2:
            time.sleep(0.01)
        provider.released.set()

    releasing = threading.Thread(target=release, daemon=True)
    releasing.start()
    client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=2, timeout=2)

    reply = client.chat.completions.create(model="two", messages=ASK)

    assert reply.choices[0].message.content == "bob did: Solve it."
    assert [body["model"] for body in provider.bodies] == ["ann", "bob"]
    releasing.join(60)
    server.stop()
    asked = [line.split()[2] for line in server.lines if line.startswith("POST ")]
    assert asked == ["499", "499", "200"]


def test_two_servers_asked_for_one_key_at_a_time_say_to_ask_again(own: Serve, provider: Provider) -> None:
    provider.held = {"bob"}
    first, second, key = own(), own(), {"Idempotency-Key": "one"}
    with begun(first, "Idempotency-Key: one\r\n", stream=False):
        assert provider.stuck.wait(60)
        body = {"model": "two", "messages": ASK, "stream": False}  # the same bytes
        reply = httpx2.post(f"{second.url}/chat/completions", content=json.dumps(body), headers=key, timeout=60)
        provider.released.set()

    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "run_in_progress")
    assert int(reply.headers["retry-after"]) > 0


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é"])
def test_a_key_that_the_openapi_document_does_not_allow_is_refused(server: ServerProcess, key: str) -> None:
    headers = [(b"idempotency-key", key.encode("latin-1"))]
    reply = httpx2.post(f"{server.url}/chat/completions", json={"model": "two", "messages": ASK}, headers=headers)

    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "Idempotency-Key")


def test_a_killed_server_pays_for_nothing_twice(own: Serve, provider: Provider) -> None:
    provider.held = {"bob"}
    server, key = own(), "Idempotency-Key: one\r\n"
    with begun(server, key):
        assert provider.stuck.wait(60)
        server.stop(signal.SIGKILL)
    provider.released.set()

    assert b"[DONE]" in rest_of(begun(own(), key))
    assert [body["model"] for body in provider.bodies] == ["ann", "bob", "bob"]


def test_a_conductor_that_was_killed_is_resumed_by_a_command(own: Serve, provider: Provider, tmp_path: Path) -> None:
    provider.held, provider.plans = {"bob"}, [lists([0, 1], [[], [0]])]
    (tmp_path / "run.toml").write_text("[conductor]\nmax_rounds = 0")
    server = own("--config", "run.toml")
    with begun(server, model="wfdsl"):
        assert provider.stuck.wait(60)
        server.stop(signal.SIGKILL)
    provider.released.set()

    command = ("-m", "wfdsl", "runs", "resume", "last", "--pool", "pool.toml", "--config", "run.toml")
    done = ended(*command, folder=tmp_path, env={**os.environ, "WFDSL_HOME": str(tmp_path / "home")})

    assert (done.returncode, done.stdout) == (0, "bob did: task 1\n")
    assert [body["model"] for body in provider.bodies] == [CONDUCTOR, "ann", "bob", "bob"]


def test_sigterm_lets_requests_in_progress_finish(own: Serve, provider: Provider) -> None:
    provider.held = {"bob"}
    server = own()
    connection = begun(server)
    assert provider.stuck.wait(60)
    server.process.send_signal(signal.SIGTERM)
    provider.released.set()

    assert b"[DONE]" in rest_of(connection)
    assert server.stop() == 0
    assert "SIGTERM: ends after the requests in progress, in at most 30 s\n" in server.lines


def test_a_request_that_does_not_finish_in_time_is_told(own: Serve, provider: Provider) -> None:
    provider.held = {"bob"}
    server = own("--set", "serve.drain_s=1")
    connection = begun(server)
    assert provider.stuck.wait(60)

    assert server.stop() == 0
    assert provider.hung_up.wait(60)
    connection.close()
