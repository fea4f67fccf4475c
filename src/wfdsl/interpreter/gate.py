"""A gate that lets a number of calls through at a time, in the order in which they came.

Unlike a semaphore it can be narrowed and widened while calls are inside, and it belongs to no event loop.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque


class Gate:
    """Invariant: while somebody waits, at least `limit` calls are inside."""

    __slots__ = ("inside", "limit", "waiting")

    def __init__(self, limit: float = math.inf) -> None:
        self.limit = limit
        """How many may be inside; a fraction counts as the next lower number."""
        self.inside = 0
        self.waiting: deque[asyncio.Future[None]] = deque()

    def try_enter(self) -> bool:
        """Go in if there is room and nobody waits."""
        if self.waiting or self.inside + 1 > self.limit:
            return False
        self.inside += 1
        return True

    async def enter(self) -> None:
        """Go in, once there is room."""
        if self.try_enter():
            return
        turn = asyncio.get_running_loop().create_future()
        self.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the turn had come when the cancel did: pass it on
                self.leave()
            raise

    def leave(self) -> None:
        """Go out, and let in whoever is next."""
        self.inside -= 1
        if self.waiting:
            self.let_in()

    def let_in(self) -> None:
        """Let in as many as there is room for; to be called after the limit has grown."""
        while self.waiting and self.inside + 1 <= self.limit:
            turn = self.waiting.popleft()
            if not turn.done():
                self.inside += 1
                turn.set_result(None)
