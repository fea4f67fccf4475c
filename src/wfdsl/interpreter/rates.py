"""How much a worker may be asked in any minute: a sliding window, since providers count in one too.

A token bucket that starts full would let twice the limit through in the first minute.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from wfdsl.interpreter.gate import Gate

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW_S = 60.0


class Taking:
    """What one call has taken from a window; its amount is corrected once the true one is known."""

    __slots__ = ("amount", "at")

    def __init__(self, at: float, amount: float) -> None:
        self.at = at
        self.amount = amount


class Window:
    """At most `limit` in any minute. One that alone is over the limit goes through when the window is empty."""

    __slots__ = ("_door", "_limit", "_now", "_taken", "_used")

    def __init__(self, limit: float, now: Callable[[], float]) -> None:
        self._limit = limit
        self._now = now
        self._taken: deque[Taking] = deque()
        self._used = 0.0
        self._door = Gate(1)

    async def take(self, amount: float) -> Taking:
        """Wait until there is room for an amount, in the order of asking, and take it."""
        await self._door.enter()
        try:
            while (wait_s := self._wait_s(amount)) > 0:  # noqa: ASYNC110  (time is what is waited for)
                await asyncio.sleep(wait_s)
            taking = Taking(self._now(), amount)
            self._taken.append(taking)
            self._used += amount
            return taking
        finally:
            self._door.leave()

    def correct(self, taking: Taking, amount: float) -> None:
        """Put the true amount in place of the one that was taken."""
        if taking.at > self._now() - WINDOW_S:
            self._used += amount - taking.amount
            taking.amount = amount

    def _wait_s(self, amount: float) -> float:
        """Seconds until the window has to be looked at again; 0: there is room."""
        horizon = self._now() - WINDOW_S
        while self._taken and self._taken[0].at <= horizon:
            self._used -= self._taken.popleft().amount
        if not self._taken or self._used + amount <= self._limit:
            return 0.0
        # A correction may make room earlier, so long waits are cut into seconds.
        return min(max(self._taken[0].at - horizon, 0.001), 1.0)
