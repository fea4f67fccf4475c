"""`Sandbox`: runs untrusted Python programs in isolation, several at a time.

Starting and ending isolation is mostly waiting for the kernel. So more processes are started than programs run at one
time: a program waits for its turn in a process that is ready, and its time begins with its turn.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from weakref import WeakKeyDictionary

from wfdsl.grading.sandbox.isolation import (
    IDS_PER_PROCESS,
    Isolation,
    SandboxLimits,
    SandboxMissing,
    with_bubblewrap,
    with_landlock,
)
from wfdsl.grading.sandbox.probe import probe
from wfdsl.grading.sandbox.process import Inside, Ran, Role, run_source, start_process
from wfdsl.grading.sandbox.usage import bounded

_STARTED_PER_SLOT = 2  # our choice: more of them only compete for the processors
_MOST_STARTED = 32  # each has one or two interpreters in memory, and each of those a user id of its own


class Slot:
    """A place for one program, and next to it for one checking text."""

    def __init__(self, sandbox: Sandbox, isolation: Isolation, turns: asyncio.Semaphore) -> None:
        self._sandbox = sandbox
        self._isolation = isolation
        self._turns = turns

    @property
    def tier(self) -> str:
        """What isolates its programs: `bubblewrap` or `Landlock`."""
        return self._isolation.tier

    @asynccontextmanager
    async def processes(self, *roles: Role, seconds: float) -> AsyncIterator[list[Inside]]:
        """Processes of these roles that are ready, when it is their turn. Raises: SandboxFailed."""
        async with AsyncExitStack() as stack:
            insides = []
            for role in roles:
                insides.append(await self._sandbox.start(role, self._isolation))
                stack.push_async_callback(insides[-1].end)
            for inside in insides:
                await inside.wait_ready()
            async with self._turns:  # given back before the processes end
                for inside in insides:
                    await inside.begin(seconds)
                async with bounded(insides, self._sandbox.limits):
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
        self._free_ids = list(range(IDS_PER_PROCESS))
        self._lock = threading.Lock()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopState] = WeakKeyDictionary()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait for a free slot. The first one waits until the isolation has been tested."""
        isolation = await self.probe()
        state = self._state()
        async with state.started:
            yield Slot(self, isolation, state.turns)

    async def probe(self) -> Isolation:
        """The isolation of programs here, tested once. Raises: SandboxMissing, if none holds."""
        state = self._state()
        async with state.probing:
            if self._isolation is None:
                self._isolation = await self._tested(state)
            return self._isolation

    async def run(self, source: str, *, stdin: str = "", timeout_s: float = 6.0) -> Ran:
        """Run a program as `python program.py` would. Raises: SandboxFailed, SandboxMissing."""
        async with self.slot() as slot:
            return await slot.run(source, stdin=stdin, timeout_s=timeout_s)

    async def start(self, role: Role, isolation: Isolation) -> Inside:
        """A new process of this role, with a user id of its own. Raises: SandboxFailed."""
        with self._lock:  # threads may start processes at one time, together more than there are ids
            number = heappop(self._free_ids) if self._free_ids else None
        mine = threading.get_ident() % IDS_PER_PROCESS if number is None else number
        return await start_process(isolation, role, mine, self.limits, partial(self._give_back, number))

    async def _tested(self, state: _LoopState) -> Isolation:
        reasons = []
        for made in (partial(with_bubblewrap, self.limits, self.packages), partial(with_landlock, self.packages)):
            try:
                isolation = made()
                await probe(Slot(self, isolation, state.turns).run, self.limits, is_private=isolation.is_private)
            except SandboxMissing as problem:
                reasons.append(str(problem))
            else:
                return isolation
        raise SandboxMissing("; and without it: ".join(reasons))

    def _state(self) -> _LoopState:
        return self._loops.setdefault(asyncio.get_running_loop(), _LoopState(self.slots))

    def _give_back(self, number: int | None) -> None:
        if number is not None:
            with self._lock:
                heappush(self._free_ids, number)


class _LoopState:
    """What the tasks of one event loop share."""

    def __init__(self, slots: int) -> None:
        self.probing = asyncio.Lock()
        self.turns = asyncio.Semaphore(slots)
        self.started = asyncio.Semaphore(max(slots, min(_STARTED_PER_SLOT * slots, _MOST_STARTED)))
