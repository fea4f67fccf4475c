"""Faults of a real HTTP server, seen from a run: it recovers, and a fault is never an answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.workers.wire import good_body, reply, serving

from wfdsl import Pool, Step, WorkerEntry, Workflow
from wfdsl.interpreter.running import run

GOOD = reply(json.dumps(good_body("chat")).encode())


def error_reply(status: int, headers: str = "") -> bytes:
    return reply(b'{"error": {"message": "no"}}', status=status, headers=headers)


async def reset_in_the_middle(writer: asyncio.StreamWriter) -> None:
    writer.write(GOOD[:-20])
    await writer.drain()
    writer.transport.abort()


async def stall(writer: asyncio.StreamWriter) -> None:
    writer.write(GOOD[:-20])
    await writer.drain()
    await asyncio.sleep(30)


FAULTS: list[Any] = [
    error_reply(429, "retry-after: 0\r\n"),
    error_reply(503),
    error_reply(529),
    reset_in_the_middle,
    stall,
    reply(b'{"error": {"message": "overloaded", "type": "server_error"}}'),
    reply(json.dumps(good_body("chat", text="")).encode()),
]
CHAIN = Workflow(tuple(Step(0, "Go on.", "all") for _ in FAULTS))


async def test_faults_that_pass_delay_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    script = [line for fault in FAULTS for line in (fault, GOOD)]

    async def next_line(writer: asyncio.StreamWriter) -> None:
        line = script.pop(0)
        if isinstance(line, bytes):
            writer.write(line)
        else:
            await line(writer)

    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    async with serving(next_line) as wire:
        entry = WorkerEntry(
            name="chat", provider="openai", model="m", base_url=wire.url, timeout_s=1.0, idle_timeout_s=0.3, retries=2
        )
        done = await run(CHAIN, "Q", Pool([entry]))

    assert {step.response for step in done.steps} == {"It is 42."}
    assert [step.retries for step in done.steps] == [1] * len(FAULTS)
