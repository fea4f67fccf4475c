"""`Sandbox`: runs untrusted Python programs in isolation, several at a time, with a warm pool of processes.

Starting and ending isolation is mostly waiting for the kernel. So more processes are started than programs run at one
time: a program waits for its turn in a process that is ready, and its time begins with its turn. Two thirds of what a
short program costs is this start. Where programs come in bursts, as in training, the warm pool starts processes between
the bursts. Each process still runs one program and ends with it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from weakref import WeakKeyDictionary

from wfdsl.grading.sandbox.isolation import (
    IDS_PER_PROCESS,
    SandboxFailed,
    SandboxLimits,
    interpreter,
    isolation_of,
)
from wfdsl.grading.sandbox.probe import probe
from wfdsl.grading.sandbox.process import Inside, Ran, Role, code_of, first_source, run_source, start_process
from wfdsl.grading.sandbox.usage import bounded

UNSAFE = "UNSAFE, without a sandbox: "
MOST_WARM = 32  # processes of a role in the warm pool: each has an interpreter in memory, 3 MiB. Our choice
_STARTED_PER_SLOT = 2  # our choice: more of them only compete for the processors
_MOST_STARTED = 32  # each has one or two interpreters in memory, and each of those a user id of its own

_log = logging.getLogger(__name__)


class Slot:
    """A place for one program, and next to it for one checking text."""

    def __init__(self, pool: WarmPool, turns: asyncio.Semaphore, limits: SandboxLimits) -> None:
        self._pool = pool
        self._limits = limits
        self._turns = turns

    @asynccontextmanager
    async def processes(self, *roles: Role, seconds: float) -> AsyncIterator[list[Inside]]:
        """Processes of these roles that are ready, when it is their turn. Raises: SandboxFailed."""
        async with AsyncExitStack() as stack:
            insides = [await stack.enter_async_context(self._pool.process(role)) for role in roles]
            for inside in insides:
                await inside.wait_ready()
            async with self._turns:  # given back before the processes end
                for inside in insides:
                    await inside.begin(seconds)
                async with bounded(insides, self._limits):
                    yield insides

    async def run(self, source: str, *, stdin: str, timeout_s: float) -> Ran:
        """Run a program as `python program.py` would. Raises: SandboxFailed."""
        async with self.processes("program", seconds=timeout_s) as (inside,):
            return await run_source(inside, source, stdin=stdin, timeout_s=timeout_s)


class Sandbox:
    """Runs Python programs where they can read, write and reach nothing. Safe to share between tasks and threads.

    `slots` programs run at one time; the default is one for each CPU. `packages` is a folder of installed packages that
    programs may import, as `pip install --target` makes one. `unsafe` gives up all isolation, for machines without it
    and programs that are trusted: it logs a warning, and the reason of each verdict says so.

    The first use tests the isolation with hostile programs. Raises: SandboxMissing, if it is missing or does not hold.
    """

    def __init__(
        self,
        *,
        slots: int | None = None,
        limits: SandboxLimits | None = None,
        packages: Path | None = None,
        unsafe: bool = False,
    ) -> None:
        self.limits = limits or SandboxLimits()
        self.unsafe = unsafe
        self._packages = packages
        self._isolation = None if unsafe else isolation_of(self.limits, packages)
        self.slots = slots or _processors()
        self._free_ids = list(range(IDS_PER_PROCESS))
        self._lock = threading.Lock()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopState] = WeakKeyDictionary()
        self._probed = False
        if unsafe:
            _log.warning("programs run WITHOUT a sandbox: they can read, change and send whatever you can")

    @property
    def settings(self) -> str:
        """What results depend on, as text."""
        return f"{self.limits} {self._packages} {self.unsafe}"

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait for a free slot. The first one waits until the isolation has been tested."""
        await self.probe()
        async with self._state().slot() as slot:
            yield slot

    async def probe(self) -> None:
        """Test the isolation, once. Raises: SandboxMissing, if it does not hold."""
        if self.unsafe or self._probed:
            return
        state = self._state()
        async with state.probing:
            if not self._probed:
                async with state.slot() as slot:
                    await probe(slot.run, self.limits)
                self._probed = True

    async def run(self, source: str, *, stdin: str = "", timeout_s: float = 6.0) -> Ran:
        """Run a program as `python program.py` would. Raises: SandboxFailed, SandboxMissing."""
        async with self.slot() as slot:
            return await slot.run(source, stdin=stdin, timeout_s=timeout_s)

    def warm_up(self) -> asyncio.Task[None]:
        """Start, in the background, as many processes as were ever used between two calls of this: at most 32 a role.

        For callers that will have many more programs in this event loop, in bursts. The processes wait until
        `cool_down`, which has to be called before the loop is closed. The task need not be awaited.
        """
        return self._state().pool.warm_up()

    async def cool_down(self) -> None:
        """End the processes of the warm pool."""
        await self._state().pool.cool_down()

    @property
    def warm(self) -> int:
        """How many processes are ready for the programs of this event loop."""
        return self._state().pool.count

    def _state(self) -> _LoopState:
        loop = asyncio.get_running_loop()
        state = self._loops.get(loop)
        if state is None:
            state = self._loops[loop] = _LoopState(self.slots, WarmPool(self._start), self.limits)
        return state

    async def _start(self, role: Role) -> Inside:
        """A new process of this role, with a user id of its own."""
        with self._lock:  # threads may start processes at one time, together more than there are ids
            number = heappop(self._free_ids) if self._free_ids else None
        return await start_process(
            self._command(role, threading.get_ident() % IDS_PER_PROCESS if number is None else number),
            code=code_of(role),
            most=self.limits.output_bytes,
            isolated=not self.unsafe,
            ended=partial(self._give_back, number),
        )

    def _command(self, role: Role, number: int) -> Callable[[int], Sequence[str]]:
        """The command of one process, given the number of the open file with the filter of system calls."""
        source, isolation = first_source(role, self.limits, isolated=not self.unsafe), self._isolation
        if isolation is None:
            return lambda _: interpreter(sys.executable, source)
        return lambda rules: isolation.command(number, source, seccomp_fd=rules)

    def _give_back(self, number: int | None) -> None:
        if number is not None:
            with self._lock:
                heappush(self._free_ids, number)


class _LoopState:
    """What the tasks of one event loop share."""

    def __init__(self, slots: int, pool: WarmPool, limits: SandboxLimits) -> None:
        self.pool = pool
        self._limits = limits
        self.probing = asyncio.Lock()
        self._turns = asyncio.Semaphore(slots)
        self._started = asyncio.Semaphore(max(slots, min(_STARTED_PER_SLOT * slots, _MOST_STARTED)))

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        async with self._started:
            yield Slot(self.pool, self._turns, self._limits)


class WarmPool:
    """The processes of one event loop: started when they are needed, or before by `warm_up`."""

    def __init__(self, start: Callable[[Role], Awaitable[Inside]]) -> None:
        self._start = start
        self._ready: defaultdict[Role, list[Inside]] = defaultdict(list)
        self._used: Counter[Role] = Counter()
        self._most_used: Counter[Role] = Counter()
        self._warming: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """How many processes are ready."""
        return sum(map(len, self._ready.values()))

    @asynccontextmanager
    async def process(self, role: Role) -> AsyncIterator[Inside]:
        """A process of this role, maybe still starting, which ends with the block. Raises: SandboxFailed."""
        self._used[role] += 1
        inside = await self._taken(role) or await self._start(role)
        try:
            yield inside
        finally:
            await inside.end()

    def warm_up(self) -> asyncio.Task[None]:
        """Start, in the background, as many processes as were ever used between two calls of this."""
        self._most_used |= self._used
        self._used.clear()
        if self._warming is None or self._warming.done():
            self._warming = asyncio.create_task(self._warm_up())
        return self._warming

    async def cool_down(self) -> None:
        """End the processes that are ready."""
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.wait([self._warming])
            self._warming = None
        ready = [inside for insides in self._ready.values() for inside in insides]
        self._ready.clear()
        await asyncio.gather(*(inside.end() for inside in ready))

    async def _taken(self, role: Role) -> Inside | None:
        """A ready process that is alive: the kernel may have ended it when memory was short."""
        while self._ready[role]:
            inside = self._ready[role].pop()
            if inside.alive:
                return inside
            await inside.end()
        return None

    async def _warm_up(self) -> None:
        """One after the other, so that the other processors stay free."""
        try:
            for role, count in list(self._most_used.items()):
                while len(self._ready[role]) < min(count, MOST_WARM):
                    self._ready[role].append(await self._started(role))
        except SandboxFailed as problem:
            _log.warning("the sandbox has no warm processes: %s", problem)

    async def _started(self, role: Role) -> Inside:
        inside = await self._start(role)
        try:
            await inside.wait_ready()
        except BaseException:
            await inside.end()
            raise
        return inside


def _processors() -> int:
    """The processors that this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
