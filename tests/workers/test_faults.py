"""Faults at the socket: each one becomes a `WorkerFailure` that says whether to try again, and never an answer."""

from __future__ import annotations

import asyncio
import json
import resource
import zlib
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import pytest
from tests.workers.wire import (
    ANSWER,
    KINDS,
    answered,
    as_json,
    call,
    entry_for,
    failure_of,
    fault,
    good_body,
    good_events,
    refusing,
    reply,
    serving,
    stalling,
    stream,
    streaming,
)

from wfdsl.protocols import WorkerFailure
from wfdsl.workers import http_failure
from wfdsl.workers.pool import Pool

BOTH_WAYS = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
ALL_KINDS = pytest.mark.parametrize("kind", KINDS)


STATUSES = [(408, True), (429, True), (500, True), (529, True), (400, False), (402, False), (404, False), (413, False)]


@ALL_KINDS
@pytest.mark.parametrize(("status", "retryable"), STATUSES)
async def test_a_status_says_whether_to_ask_again_and_what_to_do(kind: str, status: int, retryable: bool) -> None:
    sent = reply(b'{"error": {"message": "no"}}', status=status, headers="retry-after: 7\r\n")

    failure = await fault(kind, sent)

    assert (failure.retryable, failure.status, failure.sent, failure.retry_after) == (retryable, status, True, 7.0)
    assert str(failure).startswith(f"HTTP {status}: no")
    assert retryable or "; " in str(failure), "the message says what to do"


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [
        ("", None),
        ("retry-after: soon\r\n", None),
        ("retry-after: nan\r\n", None),
        ("retry-after: -3\r\n", 0.0),
        ("retry-after: 1000000\r\n", 1e6),
        (f"retry-after: {formatdate(0, usegmt=True)}\r\n", 0.0),
    ],
)
async def test_a_wait_that_cannot_be_read_is_none(header: str, wait_s: float | None) -> None:
    sent = reply(b'{"error": {"message": "slow down"}}', status=429, headers=header)

    failure = await fault("chat", sent)

    assert failure.retry_after == wait_s


@ALL_KINDS
async def test_a_redirect_is_not_followed(kind: str) -> None:
    async with serving(as_json(good_body(kind))) as elsewhere:
        sent = reply(b"", status=307, headers=f"location: {elsewhere.url}/v1\r\n")
        failure = await fault(kind, sent)

    assert elsewhere.requests == []
    assert not failure.retryable
    assert "set base_url" in str(failure)


@ALL_KINDS
@BOTH_WAYS
@pytest.mark.parametrize("status", [307, 400, 401, 500])
async def test_the_body_of_an_error_is_read_only_in_part(kind: str, streams: bool, status: int) -> None:
    sent_bytes = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent_bytes
        writer.write(f"HTTP/1.1 {status} No\r\ncontent-type: text/plain\r\n\r\nToo bad. ".encode())
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()
            sent_bytes += 65_536

    failure = await fault(kind, endless, streams=streams)

    assert failure.status == status
    assert "Too bad." in str(failure)
    assert sent_bytes < 32 * 2**20, "what the sockets hold, and no more"


@ALL_KINDS
async def test_an_error_that_unpacks_to_gigabytes_is_not_unpacked(kind: str) -> None:
    inner = zlib.compressobj(9, zlib.DEFLATED, 31)
    outer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join(outer.compress(inner.compress(bytes(2**20))) for _ in range(256))
    packed += outer.compress(inner.flush()) + outer.flush()
    assert len(packed) < 20_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    failure = await fault(kind, reply(packed, status=500, headers="content-encoding: gzip, gzip\r\n"), streams=True)

    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert (failure.status, failure.retryable) == (500, True)
    assert grown_kib < 100 * 1024


@ALL_KINDS
async def test_an_error_whose_body_stalls_keeps_its_status(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_failure, "_ERROR_BODY_S", 0.1)

    failure = await fault(kind, stalling(reply(b"No such key", status=401, length=500)), timeout_s=20.0)

    assert (failure.status, failure.retryable) == (401, False)
    assert "No such key" in str(failure)


# Connections.


@ALL_KINDS
@BOTH_WAYS
async def test_a_refused_connection_was_surely_not_sent(kind: str, streams: bool) -> None:
    with refusing() as url:
        failure = await failure_of(entry_for(kind, url), streaming(streams=streams))

    assert (failure.retryable, failure.sent, failure.status) == (True, False, None)
    assert f"the server at {url} cannot be reached" in str(failure)


@ALL_KINDS
@BOTH_WAYS
async def test_a_reset_amid_the_reply_is_a_failure_although_pieces_have_come(kind: str, streams: bool) -> None:
    whole = json.dumps(good_body(kind)).encode()

    async def half_then_reset(writer: asyncio.StreamWriter) -> None:
        writer.write(stream(*good_events(kind)[:3]) if streams else reply(whole, length=len(whole) + 50))
        await writer.drain()
        writer.transport.abort()

    failure = await fault(kind, half_then_reset, streams=streams)

    assert (failure.retryable, failure.sent) == (True, True)


@ALL_KINDS
async def test_a_stalled_stream_is_given_up(kind: str) -> None:
    failure = await fault(kind, stalling(stream(*good_events(kind)[:2])), streams=True, idle_timeout_s=0.2)

    assert failure.retryable
    assert "silent for too long" in str(failure)


@ALL_KINDS
@BOTH_WAYS
async def test_a_model_that_thinks_before_it_says_anything_is_waited_for(kind: str, streams: bool) -> None:
    async def think(writer: asyncio.StreamWriter) -> None:
        whole = stream(*good_events(kind))
        head = whole.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        await asyncio.sleep(0.3)
        writer.write(head)
        await writer.drain()
        await asyncio.sleep(0.3)
        writer.write(whole.removeprefix(head))

    got = await answered(kind, think, streaming(streams=streams), idle_timeout_s=0.1)

    assert got.text == ANSWER


@ALL_KINDS
@BOTH_WAYS
async def test_a_server_that_drips_bytes_does_not_hold_a_call_beyond_its_time(kind: str, streams: bool) -> None:
    whole = stream(*good_events(kind)) if streams else as_json(good_body(kind))

    async def drip(writer: asyncio.StreamWriter) -> None:
        for byte in whole:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.05)

    failure = await fault(kind, drip, streams=streams, timeout_s=0.5)

    assert failure.retryable
    assert "within 0.5 s" in str(failure)


@ALL_KINDS
async def test_the_deadline_of_a_call_ends_it_too(kind: str) -> None:
    async with serving(stalling()) as wire, Pool([entry_for(kind, wire.url)]).open() as pool:
        worker = pool.worker(0)  # building it takes longer on a busy machine
        with pytest.raises(WorkerFailure, match="deadline") as failed:
            await worker(call(deadline=asyncio.get_running_loop().time() + 0.3))

    assert (failed.value.retryable, failed.value.sent) == (True, True)


# What is no answer, or says that it is an error: (what is sent, by kind), whether to try again, what the message has.


def _said(message: str, status: int = 200, **error: Any) -> bytes:
    return reply(json.dumps({"type": "error", "error": {"message": message, **error}}).encode(), status=status)


def _without(kind: str, value: Any) -> bytes:
    field = {"chat": "choices", "responses": "output", "anthropic": "content"}[kind]
    return as_json({**good_body(kind), field: value})


NOTHINGS: list[Any] = [None, "text", 5, {}]
NOT_JSON = (b"", b"null", b"[]", b'"text"', b"{", b"\xff\xfe", b"[" * 100_000)
FAULTS: dict[str, tuple[Callable[[str], list[bytes]], bool, str]] = {
    "closed without a word": (lambda kind: [b""], True, "broke"),
    "no JSON object": (lambda kind: [reply(body) for body in NOT_JSON], True, "not a JSON object"),
    "no answer": (lambda kind: [_without(kind, value) for value in NOTHINGS], True, "without any"),
    "20 MB": (lambda kind: [as_json(good_body(kind, "x" * 20_000_000))], False, "than 16 MiB"),
    "a page": (lambda kind: [reply(b"<p>\n" + b"Bad\n" * 30_000, status=502, kind="text/html")], True, "HTTP 502: "),
    "an empty account": (lambda kind: [_said("No quota", 429, code="insufficient_quota")], False, "No quota"),
    "no credit": (lambda kind: [_said("Your credit balance is too low.", 400)], False, "no credit left"),
    "no system role": (lambda kind: [_said("System role not supported", 400)], False, "--deep"),
    "alternation": (lambda kind: [_said("Conversation roles must alternate user/assistant", 400)], False, "--deep"),
    "an odd code": (lambda kind: [_said("odd", code="9" * 5000)], True, "odd"),
    "a code": (lambda kind: [_said("down", code=502), _said("down", code=429)], True, "down"),
    "a final code": (lambda kind: [_said("no such", code=404)], False, "no such"),
    "a type": (lambda kind: [_said("busy", type="overloaded_error")], True, "busy"),
    "a final type": (lambda kind: [_said("bad prompt", type="invalid_request_error")], False, "bad prompt"),
    "a text": (lambda kind: [reply(b'{"error": "something else"}')], True, "something else"),
    "an error event": (lambda kind: [stream(*good_events(kind)[:2], {"error": {"message": "down"}})], True, "down"),
    "half an event": (lambda kind: [stream(*good_events(kind)[:2], '{"half')], True, "not a JSON object"),
    "an early end": (lambda kind: [stream(*good_events(kind)[:kept]) for kept in range(4)], True, "ended before"),
}


@ALL_KINDS
@BOTH_WAYS
@pytest.mark.parametrize("what", FAULTS)
async def test_what_is_no_answer_is_a_failure_in_one_short_line(kind: str, streams: bool, what: str) -> None:
    sent, retryable, says = FAULTS[what]
    for each in sent(kind):
        failure = await fault(kind, each, streams=streams)

        assert (failure.retryable, failure.sent) == (retryable, True)
        assert says in str(failure)
        assert len(str(failure)) < 1100
        assert "\n" not in str(failure)


@pytest.mark.parametrize(
    ("status", "said", "too_long"),
    [
        (400, "This model's maximum context length is 8192 tokens.", True),
        (500, "the request exceeds the available context size", True),
        (500, "request (9000 tokens) exceeds the context", True),
        (500, "internal error", False),
    ],
)
async def test_a_conversation_that_is_too_long_is_known_by_the_words(status: int, said: str, too_long: bool) -> None:
    failure = await fault("chat", _said(said, status))

    assert (failure.retryable, failure.too_long) == (not too_long, too_long)
