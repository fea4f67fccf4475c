"""Small pools and a test clock for the interpreter's tests.

On the test clock nothing is waited for: when every task sleeps, the time jumps to the next one that wakes.
"""

from __future__ import annotations

import asyncio
import selectors
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from wfdsl.protocols import Call, Reply, Worker
from wfdsl.workers.entry import Prices, WorkerEntry
from wfdsl.workers.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

T = TypeVar("T")
FREE = Prices(input=0.0, output=0.0)


class _JumpingSelector(selectors.SelectSelector):
    """Polls, and advances the clock by the time that it was asked to wait."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout is not None else None)
        if timeout and not ready:
            self.now += timeout
        return ready


class ClockLoop(asyncio.SelectorEventLoop):
    """An event loop that takes the time from its selector."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def on_test_clock(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, on the test clock."""
    with asyncio.Runner(loop_factory=ClockLoop) as runner:
        return runner.run(work)


async def cancelled(work: Coroutine[Any, Any, Any], *, after_s: float = 1.0) -> int:
    """Cancel it after a time; how many tasks are left."""
    task = asyncio.create_task(work)
    await asyncio.sleep(after_s)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    return len(asyncio.all_tasks())


class Answering:
    """A worker that calls a function, and keeps the calls that it got, and when."""

    def __init__(self, answer: Callable[[Call], Awaitable[Reply]]) -> None:
        self._answer = answer
        self.calls: list[Call] = []
        self.times: list[float] = []
        self.in_flight = 0
        self.most_in_flight = 0

    async def __call__(self, call: Call) -> Reply:
        self.calls.append(call)
        self.times.append(asyncio.get_running_loop().time())
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._answer(call)
        finally:
            self.in_flight -= 1


def in_turn(*replies: Reply | Exception, delay_s: float = 0.0) -> Answering:
    """A worker that gives these replies one after the other."""
    left = list(replies)

    async def answer(call: Call) -> Reply:
        await asyncio.sleep(delay_s)
        reply = left.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    return Answering(answer)


def always(text: str = "done", *, delay_s: float = 0.0, **reply: Any) -> Answering:
    """A worker that always gives the same reply."""

    async def answer(call: Call) -> Reply:
        await asyncio.sleep(delay_s)
        return Reply(text, **reply)

    return Answering(answer)


def pool_of(*workers: Worker, entries: Sequence[dict[str, Any]] | None = None) -> Pool:
    """A pool of workers called w0, w1 and so on; `entries` are further settings for each."""
    settings = entries or [{}] * len(workers)
    return Pool.from_workers(
        [
            (WorkerEntry(**{"name": f"w{index}", "provider": "function", "prices": FREE, "retries": 0, **more}), worker)
            for index, (worker, more) in enumerate(zip(workers, settings, strict=True))
        ]
    )
