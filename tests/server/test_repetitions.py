"""Requests that come again: after a client's time is over, with an `Idempotency-Key`, after the server was killed."""

from __future__ import annotations

import signal
from typing import Any

import openai
import pytest

from .conftest import Serve
from .provider import Provider
from .test_streams import begun, rest_of

pytestmark = pytest.mark.slow
ASK: Any = [{"role": "user", "content": "Why?"}]


def test_a_client_that_times_out_twice_pays_for_one_run(serve: Serve, provider: Provider) -> None:
    provider.held = {"bob"}
    server = serve()
    client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=1, timeout=1)
    with pytest.raises(openai.APITimeoutError):
        client.chat.completions.create(model="two", messages=ASK)
    provider.released.set()

    reply = client.chat.completions.create(
        model="two", messages=ASK, extra_headers={"x-stainless-retry-count": "2"}, timeout=60
    )

    assert reply.choices[0].message.content == "bob did: Solve it."
    assert [body["model"] for body in provider.bodies] == ["ann", "bob"]


def test_the_same_request_without_a_key_is_another_run(serve: Serve, provider: Provider) -> None:
    client = serve().client

    for _ in range(2):
        client.chat.completions.create(model="two", messages=ASK)

    assert len(provider.bodies) == 4


def test_a_key_finds_its_run_again_and_belongs_to_one_request(serve: Serve, provider: Provider) -> None:
    client, key = serve().client, {"Idempotency-Key": "one"}

    first, second = (client.chat.completions.create(model="two", messages=ASK, extra_headers=key) for _ in range(2))

    assert first.id == second.id
    assert len(provider.bodies) == 2
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        client.chat.completions.create(model="two", messages=ASK, temperature=0, extra_headers=key)
    assert caught.value.code == "idempotency_key_reused"


def test_a_killed_server_pays_for_nothing_twice(serve: Serve, provider: Provider) -> None:
    provider.held = {"bob"}
    server, key = serve(), "Idempotency-Key: one\r\n"
    with begun(server, key):
        assert provider.stuck.wait(60)
        server.stop(signal.SIGKILL)
    provider.released.set()

    assert b"[DONE]" in rest_of(begun(serve(), key))
    assert [body["model"] for body in provider.bodies] == ["ann", "bob", "bob"]


def test_sigterm_lets_requests_in_progress_finish(serve: Serve, provider: Provider) -> None:
    provider.held = {"bob"}
    server = serve()
    connection = begun(server)
    assert provider.stuck.wait(60)
    server.process.send_signal(signal.SIGTERM)
    provider.released.set()

    assert b"[DONE]" in rest_of(connection)
    assert server.stop() == 0


def test_a_request_that_does_not_finish_in_time_is_told(serve: Serve, provider: Provider) -> None:
    provider.held = {"bob"}
    server = serve("--drain", "1")
    connection = begun(server)
    assert provider.stuck.wait(60)

    assert server.stop() == 0
    assert provider.hung_up.wait(60)
    connection.close()
