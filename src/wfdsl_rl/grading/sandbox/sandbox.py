"""Where programs that nobody has read are run: a pool of places behind walls, each for one program at a time.

Raising walls and tearing them down is mostly waiting for the kernel. So there are more places than programs run at one
time: behind walls that stand, a program waits for its turn, and its time begins with that.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from wfdsl_rl.grading.sandbox.command import IDS_EACH, interpreter, walls
from wfdsl_rl.grading.sandbox.limits import SandboxLimits
from wfdsl_rl.grading.sandbox.process import TooMuchError, started
from wfdsl_rl.grading.sandbox.standing import Standing
from wfdsl_rl.grading.sandbox.texts import code_of, text_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from wfdsl_rl.grading.sandbox.process import Inside
    from wfdsl_rl.grading.sandbox.texts import Role

Ending: TypeAlias = Literal["ended", "timeout", "output"]
UNSAFE = "UNSAFE, without a sandbox: "
_PLACES_EACH = 2  # for each program that runs. Our choice: more of them only fight for the processors
_MOST_PLACES = 32  # each has an interpreter in memory, or two, and each of those a user id of its own

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program did."""

    ending: Ending
    """`ended` by itself, or killed for its time or for too much output."""
    exit_code: int | None
    """Of a program that ended by itself: 0 is success, 128 + n is death by signal n."""
    output: bytes
    errors: str
    """The end of its error output."""
    seconds: float
    """Wall time, from the moment at which the walls stood."""


class _Gates(NamedTuple):
    """What the tasks of one event loop share."""

    places: asyncio.Semaphore
    turns: asyncio.Semaphore
    standing: Standing


class Slot:
    """A place for one program, and beside it for one checker."""

    def __init__(self, gates: _Gates) -> None:
        self._gates = gates

    @asynccontextmanager
    async def processes(self, *roles: Role, seconds: float) -> AsyncIterator[list[Inside]]:
        """Processes of these roles, whose walls stand and whose turn it is. Raises: SandboxFailed."""
        async with AsyncExitStack() as stack:
            insides = [await stack.enter_async_context(self._gates.standing.one(role)) for role in roles]
            for inside in insides:
                await inside.wait_ready()
            async with self._gates.turns:  # given back before their walls are torn down
                for inside in insides:
                    await inside.begin(seconds)
                yield insides


class Sandbox:
    """Runs Python programs where they can read, write and reach nothing. Safe to share between tasks and threads.

    `slots` programs run at one time; the default is one for each CPU. `packages` is a folder of installed packages that
    programs may import, as `pip install --target` makes one. `unsafe` gives up all walls, for machines that have none
    and programs that are trusted: it is said aloud, and in the reason of each verdict.

    The first use tries the walls with hostile programs. Raises: SandboxMissing, if they are not there or do not hold.
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
        self._walls = None if unsafe else walls(self.limits, packages)
        self.slots = slots or _processors()
        self._places = max(self.slots, min(_PLACES_EACH * self.slots, _MOST_PLACES))
        self._free = list(range(IDS_EACH))
        self._lock = threading.Lock()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Gates] = WeakKeyDictionary()
        self._probed = False
        self._probing: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        if unsafe:
            _log.warning("programs run WITHOUT a sandbox: they can read, change and send whatever you can")

    @property
    def settings(self) -> str:
        """What results depend on, as text."""
        return f"{self.limits} {self._packages} {self.unsafe}"

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait for a free slot. The first one waits until the walls have been tried."""
        await self.probe()
        async with self._taken() as slot:
            yield slot

    async def probe(self) -> None:
        """Try the walls, once. Raises: SandboxMissing, if they do not hold."""
        if self.unsafe or self._probed:
            return
        async with self._probing.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            if not self._probed:
                from wfdsl_rl.grading.sandbox.probe import probe  # noqa: PLC0415  (it runs programs in this sandbox)

                async with self._taken() as slot:
                    await probe(slot, self.limits)
                self._probed = True

    async def run(self, source: str, *, stdin: str = "", timeout_s: float = 6.0) -> Ran:
        """Run a program as `python program.py` would. Raises: SandboxFailed, SandboxMissing."""
        async with self.slot() as slot:
            return await run_in(slot, source, stdin=stdin, timeout_s=timeout_s)

    def prepare(self) -> asyncio.Task[None]:
        """Start, in the background, as many processes as programs ever took between two calls of this: 32 of a kind.

        For who knows that many more programs will come to this event loop, and not at once. They stand ready until
        `dismiss`, which has to be called before the loop is closed. Nobody has to wait for the task.
        """
        return self._gates().standing.prepare()

    async def dismiss(self) -> None:
        """End the processes that stand ready."""
        await self._gates().standing.dismiss()

    @property
    def ready(self) -> int:
        """How many processes stand ready for the programs of this event loop."""
        return self._gates().standing.count

    def _gates(self) -> _Gates:
        gates = self._loops.get(asyncio.get_running_loop())
        if gates is None:
            gates = _Gates(asyncio.Semaphore(self._places), asyncio.Semaphore(self.slots), Standing(self._start))
            self._loops[asyncio.get_running_loop()] = gates
        return gates

    @asynccontextmanager
    async def _taken(self) -> AsyncIterator[Slot]:
        gates = self._gates()
        async with gates.places:
            yield Slot(gates)

    async def _start(self, role: Role) -> Inside:
        """A new process of this role, with a user id of its own."""
        with self._lock:  # threads may ask at one time, and several of them together for more than there are
            number = heappop(self._free) if self._free else None
        command = self._command(role, threading.get_ident() % IDS_EACH if number is None else number)
        return await started(
            command,
            code=code_of(role),
            most=self.limits.output_bytes,
            walled=not self.unsafe,
            ended=partial(self._given_back, number),
        )

    def _command(self, role: Role, number: int) -> Callable[[int], Sequence[str]]:
        """The command of one process, given the number of the open file with the filter of system calls."""
        text, found = text_of(role, self.limits, walled=not self.unsafe), self._walls
        if found is None:
            return lambda _: interpreter(sys.executable, text)
        return lambda rules: found.command(number, text, seccomp_fd=rules)

    def _given_back(self, number: int | None) -> None:
        if number is not None:
            with self._lock:
                heappush(self._free, number)


def _processors() -> int:
    """Those that this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def run_in(slot: Slot, source: str, *, stdin: str, timeout_s: float) -> Ran:
    """Run a program in this slot. Raises: SandboxFailed."""
    async with slot.processes("program", seconds=timeout_s) as (inside,):
        return await _ran(inside, source, stdin=stdin, timeout_s=timeout_s)


async def _ran(inside: Inside, source: str, *, stdin: str, timeout_s: float) -> Ran:
    """Give a program and its input to a process that is ready, and wait for its end."""
    begun = time.monotonic()
    text = source.encode("utf-8", "surrogatepass")
    output: bytes = b""
    ending: Ending = "ended"
    given = b"%012d" % len(text) + text + stdin.encode("utf-8", "surrogatepass")
    feeding = asyncio.create_task(inside.write(given, last=True))
    reading, complaining = asyncio.create_task(inside.read_all()), asyncio.create_task(inside.read_errors())
    try:
        async with asyncio.timeout(timeout_s):
            output, _ = await asyncio.gather(reading, complaining)
            await inside.process.wait()
    except TimeoutError:
        ending = "timeout"
    except TooMuchError:
        ending = "output"
    finally:
        inside.kill()
        for task in (feeding, reading, complaining):
            task.cancel()
        await asyncio.gather(feeding, reading, complaining, return_exceptions=True)
    code = inside.process.returncode if ending == "ended" else None
    errors = inside.errors[-2000:].decode("utf-8", "replace")
    return Ran(ending, code, output, errors, time.monotonic() - begun)
