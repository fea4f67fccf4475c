"""The layer that ends a call at its deadline, and says what it was doing then: a hang becomes an error with a name.

The calls of a run share one timer of the event loop: hardly a deadline ever comes, and a timer for each call would be
a large part of what a step costs.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from wfdsl.interpreter.budget import BudgetSpent
from wfdsl.protocols import WorkerFailure

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from types import TracebackType

    from wfdsl.interpreter.environment import Ask, StepCall
    from wfdsl.protocols import Call, Reply


def in_time(ask: Ask) -> Ask:
    """End a call at its deadline; a call without one passes untouched."""

    def until_deadline(call: Call) -> Awaitable[Reply]:
        return ask(call) if call.deadline is None else until(call.deadline, call)

    async def until(deadline: float, call: Call) -> Reply:
        handle: StepCall = call.run
        watch = handle.environment.watch
        limit = watch.begin(deadline)
        try:
            return await ask(call)
        except asyncio.CancelledError as error:
            if not limit.take_back():
                raise
            raise _over(handle) from error
        except WorkerFailure as failure:
            if _wall_time_is_over(handle):
                raise _over(handle) from failure
            raise
        finally:
            watch.end(limit)

    return until_deadline


class Limit:
    """The deadline of one call, which runs in one task."""

    __slots__ = ("_cancels", "_task", "at", "passed")

    def __init__(self, at: float, task: asyncio.Task[object]) -> None:
        self.at = at
        """When it comes, on the event loop's clock, in seconds."""
        self.passed = False
        """Whether it has come, and its cancel counts."""
        self._task = task
        self._cancels = task.cancelling()

    def come(self) -> None:
        """Cancel the call."""
        self.passed = True
        self._task.cancel()

    def take_back(self) -> bool:
        """Make the cancel count no more, if the deadline has come; whether it was the only one."""
        if not self.passed:
            return False
        self.passed = False
        return self._task.uncancel() <= self._cancels


class Watch:
    """The deadlines of a run. Invariant: while there is one, the timer is set for no later than the earliest."""

    __slots__ = ("_limits", "_loop", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._limits: set[Limit] = set()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, deadline: float) -> Limit:
        """End the running task's call at a deadline."""
        task = asyncio.current_task(self._loop)
        assert task is not None  # calls are made by coroutines
        limit = Limit(deadline, task)
        self._limits.add(limit)
        if self._timer is None or deadline < self._timer.when():
            self._set(deadline)
        return limit

    def end(self, limit: Limit) -> None:
        """Forget a deadline. The timer stays, since the next call's deadline is later."""
        self._limits.discard(limit)
        limit.take_back()

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _set(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._ring, when)

    def _ring(self, when: float) -> None:
        """End what is over. A timer may come a little before its time by the clock, so that counts too."""
        self._timer = None
        now = max(when, self._loop.time())
        for limit in [limit for limit in self._limits if limit.at <= now]:
            self._limits.discard(limit)
            limit.come()
        if self._limits:
            self._set(min(limit.at for limit in self._limits))


def _over(handle: StepCall) -> WorkerFailure | BudgetSpent:
    if _wall_time_is_over(handle):
        return BudgetSpent(f"the budget's wall time is over, while {handle.doing}")
    return WorkerFailure(f"its time was over while {handle.doing}; allow more time", retryable=True)


def _wall_time_is_over(handle: StepCall) -> bool:
    environment = handle.environment
    return environment.wall_end is not None and environment.clock.steady() >= environment.wall_end
