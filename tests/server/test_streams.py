"""Streams: what clients see while a run is in progress, and what ends it."""

from __future__ import annotations

import json
import socket
from typing import Any

import openai
import pytest

from tests.conductor.scripted_server import EMPTY, lists

from .conftest import Serve, ServerProcess, new_key
from .provider import Provider

pytestmark = pytest.mark.slow
ASK: Any = [{"role": "user", "content": "Why?"}]


def begun(server: ServerProcess, headers: str = "", **more: Any) -> socket.socket:
    body = json.dumps({"model": "two", "messages": ASK, "stream": True, **more})
    connection = socket.create_connection(server.address, timeout=60)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    return connection


def events(raw: bytes) -> list[dict[str, Any]]:
    lines = raw.decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def test_chunks_are_as_clients_expect_them(serve: Serve) -> None:
    raw = rest_of(begun(serve(), stream_options={"include_usage": True}))
    head, _, _ = raw.partition(b"\r\n\r\n")
    chunks = events(raw)

    assert b"text/event-stream" in head
    assert b"x-accel-buffering: no" in head
    assert raw.index(b": keep-alive") < raw.index(b"data: ")
    assert raw.rstrip(b"\r\n0").endswith(b"data: [DONE]")
    assert len({(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in chunks}) == 1
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert all("content" in choice["delta"] for chunk in chunks for choice in chunk["choices"])
    assert [chunk["usage"] is None for chunk in chunks] == [True] * (len(chunks) - 1) + [False]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["prompt_tokens"] == 20
    ends = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"]]
    assert ends == ["stop"]
    assert [step["step"] for step in chunks[-2]["wfdsl"]["steps"]] == ["plan", "solve"]


def test_the_answer_comes_word_by_word_and_the_steps_as_reasoning(serve: Serve) -> None:
    chunks = list(serve().client.chat.completions.create(model="two", messages=ASK, stream=True))

    assert all(chunk.usage is None and chunk.choices for chunk in chunks)  # nobody has asked for it
    deltas = [chunk.choices[0].delta for chunk in chunks]
    words = [delta.content for delta in deltas if delta.content]
    lines = [delta.reasoning_content for delta in deltas if hasattr(delta, "reasoning_content")]
    assert words == ["bob ", "did: ", "Solve ", "it."]
    assert [line.partition(" after")[0].rstrip() for line in lines] == [
        "step 1 of 2 (plan): worker ann",
        "step 1 of 2 (plan): done",
        "step 2 of 2 (solve): worker bob",
        "step 2 of 2 (solve): done",
    ]


@pytest.mark.parametrize("stop", ["Solve", "did: Sol", "it."])
def test_nothing_of_a_stop_text_is_streamed(serve: Serve, stop: str) -> None:
    stream = serve().client.chat.completions.create(model="two", messages=ASK, stream=True, stop=stop)

    said = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    assert said == "bob did: Solve it.".partition(stop)[0]


@pytest.mark.parametrize(
    ("revision", "answer", "line"),
    [
        (lists([1], [[]], word="better"), "bob did: better 0", "round 1: a workflow of 1 step"),
        (EMPTY, "ann did: task 0", "round 1: boss writes the workflow"),
    ],
)
def test_an_answer_that_may_be_revised_is_not_shown_before_its_end(
    serve: Serve, provider: Provider, revision: str, answer: str, line: str
) -> None:
    provider.plans = [lists([0], [[]]), revision]

    deltas = [
        chunk.choices[0].delta
        for chunk in serve("--max-rounds", "1").client.chat.completions.create(model="wfdsl", messages=ASK, stream=True)
    ]

    assert "".join(delta.content or "" for delta in deltas) == answer
    reasoning = "".join(getattr(delta, "reasoning_content", "") for delta in deltas)
    assert "round 0: boss writes the workflow" in reasoning
    assert line in reasoning


def test_an_error_in_a_stream_is_its_last_event(serve: Serve, provider: Provider) -> None:
    provider.status["bob"] = 400

    with pytest.raises(openai.APIError, match="step 1 \\(solve\\) failed") as caught:
        list(serve().client.chat.completions.create(model="two", messages=ASK, stream=True))

    assert caught.value.code == "run_failed"


def test_two_clients_are_answered_at_once(serve: Serve, provider: Provider) -> None:
    provider.held = {"bob"}
    server = serve("--set", "serve.max_requests=2")
    first, second = begun(server), begun(server)
    with first, second:
        wait_for_words(first)
        wait_for_words(second)
        with pytest.raises(openai.RateLimitError) as caught:
            server.client.chat.completions.create(model="two", messages=ASK)
        assert caught.value.code == "too_many_requests"
        provider.released.set()
        for each in (first, second):
            assert rest_of(each).rstrip(b"\r\n0").endswith(b"[DONE]")


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_hangs_up_ends_the_calls_in_flight(serve: Serve, provider: Provider, *, stream: bool) -> None:
    provider.held = {"bob"}
    server = serve()
    with begun(server, stream=stream):
        assert provider.stuck.wait(60)

    assert provider.hung_up.wait(60)
    assert server.client.models.list().data


def test_a_hang_up_loses_no_reply_that_was_paid_for(serve: Serve, provider: Provider) -> None:
    provider.held = {"bob"}
    server = serve()
    key = f"Idempotency-Key: {new_key()}\r\n"
    with begun(server, key):
        assert provider.stuck.wait(60)
    assert provider.hung_up.wait(60)
    provider.released.set()

    assert b"[DONE]" in rest_of(begun(server, key))
    assert [body["model"] for body in provider.bodies] == ["ann", "bob", "bob"]


def wait_for_words(connection: socket.socket) -> None:
    found = b""
    while b'"bob ' not in found:
        piece = connection.recv(1 << 16)
        assert piece
        found += piece


def rest_of(connection: socket.socket) -> bytes:
    found = b""
    with connection:
        while piece := connection.recv(1 << 16):
            found += piece
    return found
