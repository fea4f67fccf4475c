"""The executor: starts every step as soon as the steps that it sees have finished, and nothing else.

A task that finishes a step goes on with one of the steps that became ready and starts tasks for the others, so a
chain of steps needs no task of its own. The task group ends with nothing left running, whatever happens.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wfdsl.graph import Schedule


async def execute(schedule: Schedule, perform: Callable[[int], Awaitable[None]]) -> None:
    """Perform every step of a schedule, each when it may start.

    Raises:
        BaseExceptionGroup: what `perform` raised; the steps that were running have been cancelled.
    """
    async with asyncio.TaskGroup() as group:
        progress = _Progress(schedule, perform, group)
        for step in schedule.first[1:]:
            group.create_task(progress.follow(step))
        if schedule.first:
            await progress.follow(schedule.first[0])


class _Progress:
    """The counters of one execution. Invariant: a step's task is started exactly when its counter reaches zero."""

    __slots__ = ("_group", "_missing", "_perform", "_seen_by")

    def __init__(self, schedule: Schedule, perform: Callable[[int], Awaitable[None]], group: asyncio.TaskGroup) -> None:
        self._missing = list(schedule.missing)
        self._seen_by = schedule.seen_by
        self._perform = perform
        self._group = group

    async def follow(self, step: int) -> None:
        """Perform a step, then one that it made ready, and so on; tasks are started for the others."""
        while True:
            await self._perform(step)
            ready = self._made_ready_by(step)
            if not ready:
                return
            for other in ready[1:]:
                self._group.create_task(self.follow(other))
            step = ready[0]

    def _made_ready_by(self, step: int) -> list[int]:
        missing = self._missing
        ready = []
        for later in self._seen_by[step]:
            missing[later] -= 1
            if not missing[later]:
                ready.append(later)
        return ready
