"""Every provider's words for the end of a reply, over a real socket: half a text never passes as an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.workers.wire import (
    ANSWER,
    KINDS,
    answered,
    as_json,
    ask,
    call,
    entry_for,
    fault,
    good_body,
    good_events,
    reply,
    serving,
    stalling,
    stream,
    streaming,
)

from wfdsl import Pool, Step, Workflow, run
from wfdsl.protocols import Usage
from wfdsl.workers import http_worker
from wfdsl.workers.endings import ENDINGS, is_blank

KNOWN = {word: finish for finish, words in ENDINGS.items() for word in words}
SPELLED = {
    "MAX_TOKENS": "length",
    "SAFETY": "filtered",
    "content_filter: RECITATION": "filtered",
    "STOP": "stop",
    "COMPLETE": "stop",
}
BROKEN = ["error", "abort", "cancelled", "timeout", "time_limit", "network_error", "insufficient_system_resource"]
BROKEN += ["MALFORMED_FUNCTION_CALL", "OTHER", "FINISH_REASON_UNSPECIFIED", "pause_turn", "in_progress", "queued"]
BROKEN += ["failed", "incomplete", "load", "a word of tomorrow"]


def body(kind: str, word: Any) -> dict[str, Any]:
    """A good body that ends with a word."""
    found = good_body(kind)
    if kind == "chat":
        found["choices"][0]["finish_reason"] = word
    elif kind == "responses":
        found |= {"status": word}
    else:
        found["stop_reason"] = word
    return found


@pytest.mark.parametrize("kind", KINDS)
async def test_a_word_means_the_same_in_every_protocol_and_is_kept(kind: str) -> None:
    words = {**KNOWN, **SPELLED, **dict.fromkeys(BROKEN, "broken_off")}
    left = iter(words)

    async def answer(writer: Any) -> None:
        writer.write(as_json(body(kind, next(left))))

    async with serving(answer) as wire, Pool([entry_for(kind, wire.url)]).open() as pool:
        replies = [await pool.worker(0)(call()) for _ in words]

    assert {got.ending: got.finish for got in replies} == words
    assert {got.text for got in replies} == {ANSWER}


@pytest.mark.parametrize("word", ["max_output_tokens", "content_filter", "something"])
async def test_why_a_response_is_incomplete_counts_more_than_its_status(word: str) -> None:
    incomplete = {**good_body("responses"), "status": "incomplete", "incomplete_details": {"reason": word}}

    got = await answered("responses", as_json(incomplete))

    assert (got.finish, got.ending) == (KNOWN.get(word, "broken_off"), word)


async def test_a_run_outlasts_faults_that_pass_and_what_was_broken_off_is_paid_for() -> None:
    good = as_json(good_body("chat"))
    script = [as_json(body("chat", "error")), reply(b"{}", status=503), good[:-20], stalling(good[:-20]), good]

    async def answer(writer: Any) -> None:
        if isinstance(sent := script.pop(0), bytes):
            writer.write(sent)
        else:
            await sent(writer)

    async with serving(answer) as wire:
        pool = Pool([entry_for("chat", wire.url, retries=4, timeout_s=2.0, idle_timeout_s=0.3)])
        done = await run(Workflow((Step(0, "a"),)), "Q", pool)

    (step,) = done.steps
    assert (step.response, step.retries, step.ending) == (ANSWER, 4, "stop")
    assert step.usage.output_tokens == 10


ERRORS: list[tuple[dict[str, Any], bool]] = [
    ({"object": "error", "message": "out of memory", "code": 500}, True),
    ({"type": "error", "message": "out of memory"}, True),
    ({"error": {"message": "out of memory"}}, True),
    ({"base_resp": {"status_code": 1002, "status_msg": "out of memory"}}, True),
    ({"detail": "out of memory"}, True),
    ({"code": 50_000, "msg": "out of memory"}, True),
    ({"object": "error", "message": "out of memory", "code": 404}, False),
    ({"base_resp": {"status_code": 1008, "status_msg": "out of memory"}}, False),
]
"""Bodies, and whether waiting may help."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("error", "retryable"), ERRORS)
async def test_an_error_with_status_200_says_why_in_every_shape(
    kind: str, error: dict[str, Any], retryable: bool
) -> None:
    failure = await fault(kind, as_json(error))

    assert failure.retryable == retryable
    assert "out of memory" in str(failure)


async def test_an_error_inside_a_choice_is_one_whatever_the_reason_beside_it() -> None:
    failed = good_body("chat")
    failed["choices"][0]["error"] = {"message": "upstream has gone", "code": 502}

    failure = await fault("chat", as_json(failed))

    assert (failure.retryable, failure.status) == (True, 502)
    assert "upstream has gone" in str(failure)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("said", [b'event: error\ndata: {"message": "broke"}', b"event: error\ndata: broke"])
async def test_an_event_whose_name_is_error_is_one(kind: str, said: bytes) -> None:
    failure = await fault(kind, stream(*good_events(kind)[:2]) + said + b"\n\n", streams=True)

    assert failure.retryable
    assert str(failure).endswith("broke")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_reason_that_is_no_text_is_not_a_normal_end(kind: str) -> None:
    for reason in (5, {"type": "stop"}, True):
        async with serving(as_json(body(kind, reason))) as wire:
            assert (await ask(entry_for(kind, wire.url))).finish == "broken_off"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_finished_reply_is_taken_at_once_from_a_connection_that_stays_open(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_worker, "_LINGER_S", 120.0)
    events = good_events(kind)[:-1] if kind in ("chat", "anthropic") else good_events(kind)

    async with asyncio.timeout(60):
        got = await answered(kind, stalling(stream(*events)), streaming())

    assert (got.text, got.usage) == (ANSWER, Usage(11, 5))


async def test_counts_are_waited_for_no_longer_than_a_silence_may_last() -> None:
    got = await answered("chat", stalling(stream(*good_events("chat")[:-2])), streaming(), idle_timeout_s=0.2)

    assert got.text == ANSWER


@pytest.mark.parametrize("kind", KINDS)
async def test_a_stream_that_never_ends_is_cut_where_it_is_far_longer_than_its_limit(kind: str) -> None:
    events = good_events(kind)
    first, piece = (events[0], events[2]) if kind == "anthropic" else (events[0], events[0])

    async def forever(writer: asyncio.StreamWriter) -> None:
        writer.write(stream(first))
        while not writer.transport.is_closing():
            writer.write(stream(*[piece] * 100).partition(b"\r\n\r\n")[2])
            await writer.drain()

    pieces: list[str] = []
    got = await answered(kind, forever, call(on_delta=pieces.append), max_tokens=10)

    assert (got.finish, got.text) == ("length", "".join(pieces))
    assert len(got.text) < 4000


async def test_of_several_choices_the_first_is_the_reply() -> None:
    events = [
        {"choices": [{"index": 0, "delta": {"content": "A"}}, {"index": 1, "delta": {"content": "B"}}]},
        {"choices": [{"index": 1, "delta": {"content": "B"}, "finish_reason": "length"}]},
        {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]},
    ]

    got = await answered("chat", stream(*events), streaming())

    assert (got.text, got.finish) == ("Aa", "stop")


@pytest.mark.parametrize("text", ["", " \n", "\u200b", "\ufeff\u2060", "\u2800", "\u3164 \u115f", "\ufe0f", "\x00"])
def test_a_text_with_nothing_to_see_is_blank(text: str) -> None:
    assert is_blank(text)
    assert not is_blank(f"{text}.")


async def test_a_reply_with_nothing_to_see_is_no_answer() -> None:
    async with serving(as_json(good_body("chat", "\u200b"))) as wire:
        assert (await ask(entry_for("chat", wire.url))).finish == "empty"
