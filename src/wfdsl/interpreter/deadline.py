"""The layer that ends a call at its deadline, and says what it was doing then: a hang becomes an error with a name."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from wfdsl.interpreter.budget import BudgetSpent
from wfdsl.workers.protocol import WorkerFailure

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from wfdsl.interpreter.environment import Ask, StepCall
    from wfdsl.workers.protocol import Call, Reply


def in_time(ask: Ask) -> Ask:
    """End a call at its deadline; a call without one passes untouched."""

    def until_deadline(call: Call) -> Awaitable[Reply]:
        return ask(call) if call.deadline is None else until(call.deadline, call)

    async def until(deadline: float, call: Call) -> Reply:
        handle: StepCall = call.run
        clock = asyncio.timeout_at(deadline)
        try:
            async with clock:
                return await ask(call)
        except TimeoutError as error:
            if not clock.expired():
                raise
            raise _over(handle) from error
        except WorkerFailure as failure:
            if _wall_time_is_over(handle):
                raise _over(handle) from failure
            raise

    return until_deadline


def _over(handle: StepCall) -> WorkerFailure | BudgetSpent:
    if _wall_time_is_over(handle):
        return BudgetSpent(f"the budget's wall time is over, while {handle.doing}")
    return WorkerFailure(f"its time was over while {handle.doing}; allow more time", retryable=True)


def _wall_time_is_over(handle: StepCall) -> bool:
    environment = handle.environment
    return environment.wall_end is not None and environment.clock.steady() >= environment.wall_end
