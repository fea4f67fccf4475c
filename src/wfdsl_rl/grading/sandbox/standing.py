"""Processes of the sandbox that stand ready before there is a program for them.

Two thirds of what a short program costs is the start of its walls and its interpreter. Where programs come in bursts,
as in training, that can be done between them, while the processors have less to do. Each process still runs one program
and is gone with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from wfdsl_rl.grading.sandbox.errors import SandboxFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from wfdsl_rl.grading.sandbox.process import Inside
    from wfdsl_rl.grading.sandbox.texts import Role

MOST = 32  # of a role that stand ready: each has an interpreter in memory, 3 MiB. Our choice

_log = logging.getLogger(__name__)


class Standing:
    """The processes of one event loop, which `start` starts."""

    def __init__(self, start: Callable[[Role], Awaitable[Inside]]) -> None:
        self._start = start
        self._ready: defaultdict[Role, list[Inside]] = defaultdict(list)
        self._taken: Counter[Role] = Counter()
        self._most: Counter[Role] = Counter()
        self._preparing: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """How many stand ready."""
        return sum(map(len, self._ready.values()))

    @asynccontextmanager
    async def one(self, role: Role) -> AsyncIterator[Inside]:
        """A process of this role, whose walls may still be rising, and which ends with the block.

        Raises: SandboxFailed.
        """
        self._taken[role] += 1
        inside = await self._waiting(role) or await self._start(role)
        try:
            yield inside
        finally:
            await inside.end()

    def prepare(self) -> asyncio.Task[None]:
        """Start, in the background, what is missing to as many as were ever taken between two calls of this."""
        self._most |= self._taken
        self._taken.clear()
        if self._preparing is None or self._preparing.done():
            self._preparing = asyncio.create_task(self._prepare())
        return self._preparing

    async def dismiss(self) -> None:
        """End those that stand ready."""
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.wait([self._preparing])
            self._preparing = None
        waiting = [inside for insides in self._ready.values() for inside in insides]
        self._ready.clear()
        await asyncio.gather(*(inside.end() for inside in waiting))

    async def _waiting(self, role: Role) -> Inside | None:
        """One that stands, and lives: under want of memory the kernel may have ended it."""
        while self._ready[role]:
            inside = self._ready[role].pop()
            if inside.alive:
                return inside
            await inside.end()
        return None

    async def _prepare(self) -> None:
        """One after the other: whoever computes meanwhile has the other processors."""
        try:
            for role, count in list(self._most.items()):
                while len(self._ready[role]) < min(count, MOST):
                    self._ready[role].append(await self._stood(role))
        except SandboxFailed as problem:
            _log.warning("no process of the sandbox stands ready: %s", problem)

    async def _stood(self, role: Role) -> Inside:
        inside = await self._start(role)
        try:
            await inside.wait_ready()
        except BaseException:
            await inside.end()
            raise
        return inside
