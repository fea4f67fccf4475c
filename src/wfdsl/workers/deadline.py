"""Deadlines: a call ends in time, or fails as one that may be tried again."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from wfdsl.protocols import WorkerFailure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from wfdsl.protocols import Call


@asynccontextmanager
async def in_time(call: Call, timeout_s: float | None = None) -> AsyncIterator[None]:
    """Leave the block at the call's deadline, or after `timeout_s` seconds, whichever comes first.

    Raises:
        WorkerFailure: the time is over; `sent` is False if it was over before the block began.
    """
    now = asyncio.get_running_loop().time()
    if call.deadline is not None and call.deadline <= now:
        raise WorkerFailure("the deadline had passed before the call was sent", retryable=True, sent=False)
    own_end = None if timeout_s is None else now + timeout_s
    ends = [end for end in (call.deadline, own_end) if end is not None]
    clock = asyncio.timeout_at(min(ends, default=None))
    try:
        async with clock:
            yield
    except TimeoutError:
        if not clock.expired():
            raise
        raise WorkerFailure(_too_late(call, own_end, timeout_s), retryable=True) from None


def _too_late(call: Call, own_end: float | None, timeout_s: float | None) -> str:
    if own_end is not None and (call.deadline is None or own_end <= call.deadline):
        return f"no complete reply within {timeout_s:g} s; timeout_s in the pool allows more"
    return "no complete reply before the deadline of the step or of the run"
