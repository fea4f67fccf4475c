"""Faults of a real HTTP server, seen from a run: it recovers, or ends with an error; a fault is never an answer."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.workers.wire import good_body, reply, serving

from wfdsl import Pool, RunFailed, Step, WorkerEntry, Workflow
from wfdsl.interpreter.budget import BudgetUsage
from wfdsl.interpreter.running import run
from wfdsl.workers.entry import Prices

if TYPE_CHECKING:
    from pathlib import Path

TWO = Workflow((Step(0, "Plan."), Step(0, "Answer.", (0,))))
GOOD = reply(json.dumps(good_body("chat")).encode())


def error_reply(status: int, headers: str = "") -> bytes:
    return reply(b'{"error": {"message": "no"}}', status=status, headers=headers)


def chat_pool(url: str, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> Pool:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    plain = {"timeout_s": 1.0, "idle_timeout_s": 0.3, "retries": 2, "prices": Prices(input=1, output=1)}
    return Pool(
        [WorkerEntry(**{"name": "chat", "provider": "openai", "model": "m", "base_url": url, **plain, **fields})]
    )


class Script:
    """What a server does with one request after the other; the last line is repeated."""

    def __init__(self, *lines: Any) -> None:
        self._lines = list(lines)

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        line = self._lines.pop(0) if len(self._lines) > 1 else self._lines[0]
        if isinstance(line, bytes):
            writer.write(line)
        else:
            await line(writer)


async def reset_in_the_middle(writer: asyncio.StreamWriter) -> None:
    writer.write(GOOD[:-20])
    await writer.drain()
    writer.transport.abort()


async def stall(writer: asyncio.StreamWriter) -> None:
    writer.write(GOOD[:-20])
    await writer.drain()
    await asyncio.sleep(30)


PASSING = {
    "429 with Retry-After 0": error_reply(429, "retry-after: 0\r\n"),
    "503": error_reply(503),
    "529": error_reply(529),
    "reset in the middle of the body": reset_in_the_middle,
    "stalled stream": stall,
    "200 with an error body": reply(b'{"error": {"message": "overloaded", "type": "server_error"}}'),
    "an empty reply": reply(json.dumps(good_body("chat", text="")).encode()),
}


@pytest.mark.parametrize("fault", PASSING, ids=str)
async def test_a_fault_that_passes_delays_a_run(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(Script(PASSING[fault], GOOD)) as wire:
        done = await run(TWO, "Q", chat_pool(wire.url, monkeypatch))

    assert done.answer == "It is 42."
    assert [step.retries for step in done.steps] == [1, 0]
    assert len(wire.requests) == 3


async def test_a_reply_that_was_all_thinking_up_to_its_limit_is_paid_for_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    choice = {"message": {"content": "", "reasoning_content": "Hm."}, "finish_reason": "length"}
    usage = {"prompt_tokens": 10, "completion_tokens": 4096}
    body = reply(json.dumps({"choices": [choice], "usage": usage}).encode())
    async with serving(body) as wire:
        pool = chat_pool(wire.url, monkeypatch, prices=Prices(input=1, output=10))
        with pytest.raises(RunFailed, match="raise max_tokens") as caught:
            await run(TWO, "Q", pool, journal=str(tmp_path / "journal.db"))

    assert len(wire.requests) == 1
    assert caught.value.run.charged == BudgetUsage(1, 4106, 0.04097)
