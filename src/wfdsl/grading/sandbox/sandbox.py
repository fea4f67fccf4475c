"""`Sandbox`: runs untrusted Python programs in isolation, several at a time.

Starting and ending isolation is mostly waiting for the kernel. So more processes are started than programs run at one
time: a program waits for its turn in a process that is ready, and its time begins with its turn.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

from wfdsl.grading.sandbox.isolation import Isolation, SandboxLimits, SandboxMissing, with_bubblewrap, with_landlock
from wfdsl.grading.sandbox.probe import probe
from wfdsl.grading.sandbox.process import Inside, Ran, Role, meanwhile, run_source, start_process, watch_space

_STARTED_PER_SLOT = 2  # our choice: more of them only compete for the processors
_MOST_STARTED = 32  # each has one or two interpreters in memory, and each of those a user id of its own


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one program, and next to it for one checking text."""

    isolation: Isolation
    """Of its programs."""
    limits: SandboxLimits
    turns: asyncio.Semaphore

    @asynccontextmanager
    async def processes(self, *roles: Role, seconds: float) -> AsyncIterator[list[Inside]]:
        """Processes of these roles that are ready, when it is their turn. Raises: SandboxFailed."""
        async with AsyncExitStack() as stack:
            insides = []
            for role in roles:
                insides.append(await start_process(self.isolation, role, self.limits))
                stack.push_async_callback(insides[-1].end)
            for inside in insides:
                await inside.wait_ready()
            async with self.turns:  # given back before the processes end
                for inside in insides:
                    await inside.begin(seconds)
                async with meanwhile(watch_space(insides, self.limits)):
                    yield insides

    async def run(self, source: str, *, stdin: str, timeout_s: float) -> Ran:
        """Run a program as `python program.py` would. Raises: SandboxFailed."""
        async with self.processes("program", seconds=timeout_s) as (inside,):
            return await run_source(inside, source, stdin=stdin, timeout_s=timeout_s)


class Sandbox:
    """Runs Python programs where they can read, write and reach nothing. Safe to share between tasks and threads.

    `slots` programs run at one time; the default is one for each CPU. `packages` is a virtual environment, or a folder
    as `pip install --target` makes one, whose packages programs may import.

    The first use tests the isolation with hostile programs: bubblewrap's, and if that is missing or does not hold,
    Landlock's. Raises: SandboxMissing, if neither holds.
    """

    def __init__(
        self, *, slots: int | None = None, limits: SandboxLimits | None = None, packages: str | Path | None = None
    ) -> None:
        self.limits = limits or SandboxLimits()
        self.packages = None if packages is None else Path(packages)
        self.slots = slots or len(os.sched_getaffinity(0))
        self._isolation: Isolation | None = None
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopState] = WeakKeyDictionary()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait for a free slot. The first one waits until the isolation has been tested."""
        isolation = await self.probe()
        state = self._state()
        async with state.started:
            yield Slot(isolation, self.limits, state.turns)

    async def probe(self) -> Isolation:
        """The isolation of programs here, tested once. Raises: SandboxMissing, if none holds."""
        state = self._state()
        async with state.probing:
            if self._isolation is None:
                self._isolation = await self._tested(state.turns)
            return self._isolation

    async def run(self, source: str, *, stdin: str = "", timeout_s: float = 6.0) -> Ran:
        """Run a program as `python program.py` would. Raises: SandboxFailed, SandboxMissing."""
        async with self.slot() as slot:
            return await slot.run(source, stdin=stdin, timeout_s=timeout_s)

    async def _tested(self, turns: asyncio.Semaphore) -> Isolation:
        reasons = []
        for made in (partial(with_bubblewrap, self.limits, self.packages), partial(with_landlock, self.packages)):
            try:
                isolation = made()
                await probe(Slot(isolation, self.limits, turns).run, self.limits, is_private=isolation.is_private)
            except SandboxMissing as problem:
                reasons.append(str(problem))
            else:
                return isolation
        raise SandboxMissing("; and without it: ".join(reasons))

    def _state(self) -> _LoopState:
        return self._loops.setdefault(asyncio.get_running_loop(), _LoopState(self.slots))


class _LoopState:
    """What the tasks of one event loop share."""

    def __init__(self, slots: int) -> None:
        self.probing = asyncio.Lock()
        self.turns = asyncio.Semaphore(slots)
        self.started = asyncio.Semaphore(max(slots, min(_STARTED_PER_SLOT * slots, _MOST_STARTED)))
