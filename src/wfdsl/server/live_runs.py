"""Runs in progress: which requests wait for which run, and what ends a run that no request waits for.

A client that hangs up ends its run; replies that were paid for stay in the journal. A client that gives up because its
own time limit is over will ask again, as OpenAI's clients do by themselves: its run continues for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from math import inf
from typing import Any

from wfdsl.interpreter.events import Event, Listener
from wfdsl.interpreter.record import Run

LINGER_S = 60.0
"""How long a run continues after its client's time is over. OpenAI's clients wait at most 8 s before they ask again."""


class LiveRun:
    """A run in progress, with what has happened in it so far."""

    def __init__(self, work: Callable[[Listener], Coroutine[Any, Any, Run]], before: Run | None) -> None:
        self.before = before
        """The run as an earlier turn left it."""
        self.events: list[Event] = []
        self._news = asyncio.Event()
        self.waiting = 0
        self.task = asyncio.create_task(work(self._hear))
        self.task.add_done_callback(lambda _: self._news.set())

    async def follow(self) -> AsyncIterator[Event]:
        """All events of the run from its beginning, as they happen."""
        seen = 0
        while True:
            while seen < len(self.events):
                yield self.events[seen]
                seen += 1
            if self.task.done():
                return
            await self._news.wait()

    def _hear(self, event: Event) -> None:
        self.events.append(event)
        self._news.set()
        self._news = asyncio.Event()


class LiveRuns:
    """The runs in progress, by their ids."""

    def __init__(self) -> None:
        self._runs: dict[str, LiveRun] = {}

    @asynccontextmanager
    async def waiting(
        self,
        run_id: str,
        work: Callable[[Listener], Coroutine[Any, Any, Run]],
        *,
        linger_s: Callable[[], float],
        before: Run | None = None,
    ) -> AsyncIterator[LiveRun]:
        """Wait inside the block for a run, which is started if it is not in progress; `before` is what there is of it.

        `linger_s` says for how many seconds the run may continue when the block ends early.
        """
        while (run := self._runs.get(run_id)) is not None and run.task.cancelling():
            await asyncio.wait([run.task])
        if run is None:
            run = self._runs[run_id] = LiveRun(work, before)
            run.task.add_done_callback(lambda task: self._over(run_id, task))
        run.waiting += 1
        try:
            yield run
        finally:
            run.waiting -= 1
            if not run.waiting and not run.task.done():
                seconds = linger_s()
                if not seconds:
                    run.task.cancel()
                elif seconds < inf:
                    asyncio.get_running_loop().call_later(seconds, _end_unless_awaited, run)

    async def end(self) -> None:
        """End all runs; what they have paid for is in the journal."""
        tasks = [run.task for run in self._runs.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _over(self, run_id: str, task: asyncio.Task[Run]) -> None:
        self._runs.pop(run_id, None)
        if not task.cancelled():
            task.exception()  # without this, asyncio would complain about an error that no request waited for


def _end_unless_awaited(run: LiveRun) -> None:
    if not run.waiting:
        run.task.cancel()
