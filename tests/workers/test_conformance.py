"""Every worker of this package keeps the promises of the protocol, and the suite finds those that do not."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from tests.workers.wire import KINDS, Request, as_json, call, entry_for, good_body, good_events, serving, stream

from wfdsl.protocols import Call, Reply, Usage, WorkerFailure
from wfdsl.workers import conformance
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.function import FunctionWorker
from wfdsl.workers.pool import Pool
from wfdsl.workers.scripted import ScriptedWorker


async def _echo(messages: list[dict[str, Any]]) -> str:
    await asyncio.sleep(0.01)
    return str(messages[-1]["content"])


async def test_functions_and_scripts_conform() -> None:
    await conformance.check_worker(FunctionWorker(_echo))
    await conformance.check_worker(ScriptedWorker(["Hello there."], repeat=True, delay_s=0.01))


@pytest.mark.parametrize("kind", KINDS)
async def test_workers_at_apis_conform(kind: str) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        streams = wire.requests[-1].body.get("stream")
        writer.write(stream(*good_events(kind)) if streams else as_json(good_body(kind)))

    async with serving(answer) as wire, Pool([entry_for(kind, wire.url)]).open() as pool:
        await conformance.check_worker(pool.worker(0))


@pytest.mark.local
async def test_local_workers_conform() -> None:
    async with Pool([WorkerEntry(name="w", provider="local", max_tokens=8, temperature=0.0)]).open() as pool:
        await conformance.check_worker(pool.worker(0))


@pytest.mark.parametrize("kind", KINDS)
async def test_calls_at_the_same_time_each_get_their_own_reply(kind: str) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        request: Request = wire.requests[-1]
        asked = (request.body.get("messages") or request.body["input"])[-1]["content"]
        await asyncio.sleep(0.02 * (len(wire.requests) % 3))
        writer.write(as_json(good_body(kind, f"about {asked}")))

    async with serving(answer) as wire, Pool([entry_for(kind, wire.url)]).open() as pool:
        replies = await asyncio.gather(*(pool.worker(0)(call(f"q{index}")) for index in range(8)))

    assert [each.text for each in replies] == [f"about q{index}" for index in range(8)]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_cancelled_call_lets_go_of_its_connection(kind: str) -> None:
    let_go = asyncio.Event()

    async def stall(writer: asyncio.StreamWriter) -> None:
        writer.write(stream(*good_events(kind)[:3]))
        await writer.drain()
        while not writer.transport.is_closing():
            writer.write(b": still there\n")
            await asyncio.sleep(0.01)
        let_go.set()

    begun = asyncio.Event()
    async with serving(stall) as wire, asyncio.timeout(10), Pool([entry_for(kind, wire.url)]).open() as pool:
        task = asyncio.ensure_future(pool.worker(0)(call(on_delta=lambda piece: begun.set())))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await let_go.wait()


class _Broken:
    """A worker that answers well but for one promise."""

    def __init__(self, **broken: Any) -> None:
        self._broken = broken

    async def __call__(self, call: Call) -> Reply:
        late = call.deadline is not None and call.deadline < asyncio.get_running_loop().time()
        if late and self._broken.get("late") != "answers":
            wrong = self._broken.get("late", {})
            raise WorkerFailure("late", **{"retryable": True, "sent": False, **wrong})
        if self._broken.get("writes"):
            call.messages[0]["content"] = "changed"
        if call.on_delta is not None:
            call.on_delta(self._broken.get("piece", "hello"))
        await self._wait()
        good = Reply("hello", "stop", Usage(1, 1))
        return dataclasses.replace(good, **self._broken.get("reply", {})) if "plain" not in self._broken else "hello"  # type: ignore[return-value]

    async def _wait(self) -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if self._broken.get("deaf"):
                await asyncio.sleep(60)
            if self._broken.get("swallows"):
                raise ValueError("cancelled") from None
            raise


BROKEN = {
    "returns no Reply": {"plain": True},
    "returns no text": {"reply": {"text": None}},
    "makes up a finish": {"reply": {"finish": "done"}},
    "calls nothing an answer": {"reply": {"text": " "}},
    "counts below zero": {"reply": {"usage": Usage(-1, 0)}},
    "returns no usage": {"reply": {"usage": None}},
    "writes into the messages": {"writes": True},
    "streams another text": {"piece": "goodbye"},
    "answers after the deadline": {"late": "answers"},
    "says that a late call is hopeless": {"late": {"retryable": False}},
    "says that a late call was sent": {"late": {"sent": True}},
    "does not hear a cancel": {"deaf": True},
    "turns a cancel into another error": {"swallows": True},
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
async def test_a_worker_that_breaks_a_promise_is_found(broken: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "_PROMPT_S", 0.2)

    with pytest.raises(AssertionError):
        await conformance.check_worker(_Broken(**broken))
