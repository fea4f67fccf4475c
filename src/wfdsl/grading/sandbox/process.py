"""A process in the sandbox, seen from outside: its code, what is written to it and read from it, and its end.

Every read has a limit of bytes and of time; past it, all processes of the sandbox are killed. The caller that starts a
process always ends it: that kills it with all that it started, and waits until they are gone. The code is compiled out
here, because compiling takes as long as starting an interpreter, and the one inside is the same.
"""

from __future__ import annotations
import __future__

import asyncio
import marshal
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import ceil
from typing import Any, Literal, TypeAlias

from wfdsl.grading.sandbox.inside import READY
from wfdsl.grading.sandbox.isolation import MIB, Isolation, SandboxFailed, SandboxLimits, private_id
from wfdsl.grading.sandbox.seccomp import seccomp_filter
from wfdsl.grading.sandbox.usage import Usage, children, usage_of

Role: TypeAlias = Literal["program", "candidate", "checker", "together"]
Ending: TypeAlias = Literal["ended", "timeout", "output"]
START_S = 30.0  # the longest that isolation may take to start, on a machine that is busy
PATIENCE = 4.0  # how much wall time a program may take for each second of processor time that it has. Our choice
_EVERY_S = 0.1  # between two looks at what it uses. Our choice
_LOOKS = 10  # in a row that find all waiting: a busy machine reads late what they wrote last. Our choice
_CHUNK = 1 << 16
_LENGTH = 12  # digits of a number: the length of a frame, or the seconds that a program has
_ROLES: dict[Role, tuple[str, tuple[str, ...]]] = {
    "program": ("ready(); run_program()", ("confine", "start")),
    "candidate": ("serve_candidate()", ("confine", "start", "values", "candidate")),
    "checker": ("serve_checker()", ("confine", "start", "values", "checker")),
    "together": ("serve_together()", ("confine", "start", "values", "candidate", "checker")),
}
"""What each role calls first, and the modules that it is made of."""
_ANNOTATIONS = __future__.annotations.compiler_flag
_NEEDLESS = re.compile(r"^from (?:wfdsl\S+|typing|__future__) import (?:\([^)]*\)|.*)$", re.MULTILINE)
"""Imports of each other, and imports for annotations only, which are slow."""
_FIRST = """\
import marshal, posix
left, parts = int(posix.read(0, 12)), []
while left:
    parts.append(posix.read(0, left))
    left -= len(parts[-1]) or left
exec(marshal.loads(b"".join(parts)))
"""


class BrokenOffError(Exception):
    """A program that ended before it had replied, or wrote more than it may."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a program."""

    ending: Ending
    """`ended` by itself, or killed for its time or for too much output."""
    exit_code: int | None
    """Of a program that ended by itself: 0 is success, 128 + n is death by signal n."""
    output: bytes
    errors: str
    """The end of its error output."""
    seconds: float
    """Wall time, from the moment at which the interpreter was ready."""


@dataclass(slots=True)
class Inside:
    """One process group inside the sandbox."""

    process: asyncio.subprocess.Process
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    most: int
    """Bytes that are read of each stream, or of one reply."""
    code: bytes
    """What the interpreter reads before all else."""
    folder: str
    """What it may write to, where it is the interpreter itself; empty where it is bubblewrap."""
    held: ExitStack
    """What is given back when nothing of it is left."""
    errors: bytearray = field(default_factory=bytearray)
    exceeded: str = ""
    """The limit for which it was killed, in words."""

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Write to its input; `last` closes it. A program need not read it."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.stdin.write(data)
            await self.stdin.drain()
        if last:
            self.stdin.close()

    async def send(self, payload: bytes) -> None:
        """Write one frame."""
        await self.write(b"%0*d" % (_LENGTH, len(payload)) + payload)

    async def receive(self) -> bytes:
        """Read one frame. Raises: BrokenOffError."""
        try:
            length = await self.stdout.readexactly(_LENGTH)
            if not length.isdigit():
                raise BrokenOffError("the program wrote into the channel of its results")
            if int(length) > self.most:
                raise BrokenOffError(f"a result of more than {self.most:,} bytes")
            return await self.stdout.readexactly(int(length))
        except asyncio.IncompleteReadError as problem:
            raise BrokenOffError(self.exceeded or "the program ended its process before it gave a result") from problem

    async def read_all(self, stream: asyncio.StreamReader, found: bytearray) -> None:
        """What it writes to one of its streams until it ends. Raises: BrokenOffError."""
        while chunk := await stream.read(_CHUNK):
            found += chunk
            if len(found) > self.most:
                raise BrokenOffError(f"more than {self.most:,} bytes of output")

    async def wait_ready(self) -> None:
        """Wait until the interpreter is ready. Raises: SandboxFailed."""
        try:
            async with asyncio.timeout(START_S):
                await self.send(self.code)
                if await self.stdout.readline() == READY:
                    return
                await self.read_all(self.stderr, self.errors)
        except TimeoutError as problem:
            late = f"the sandbox did not start within {START_S:g} s: this machine is too busy"
            raise SandboxFailed(late) from problem
        said = self.errors.decode("utf-8", "replace").strip()[-600:]
        raise SandboxFailed(f"the sandbox did not start: {said or 'it said nothing'}")

    def usage(self) -> Usage:
        """What it and all processes that it started use."""
        return usage_of(self.process.pid, self.folder)

    async def begin(self, seconds: float) -> None:
        """Set the limit of processor time for what is sent next: rounded up, and a second to end in."""
        await self.write(b"%0*d" % (_LENGTH, ceil(seconds) + 1))

    async def end(self) -> None:
        """Kill it, and wait until it is gone."""
        self.kill()
        await asyncio.shield(self._gone())

    def kill(self, exceeded: str = "") -> None:
        """End every process inside, for a limit or because it is no longer needed.

        The first process inside is killed first: all others there die with it, and bubblewrap reaps it. The other way
        round it would be left to the machine's init process, which in a container may never reap anything.
        """
        if self.process.returncode is not None:
            return
        self.exceeded = self.exceeded or exceeded
        inside = [] if self.folder else list(children(self.process.pid))
        for pid in inside or [self.process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def _gone(self) -> None:
        """Close its pipes, whether or not all was read, and wait until it has ended.

        In this order: asyncio waits for pipes as well, and one that is full and no longer read would never end.
        """
        transport = self.process._transport  # type: ignore[attr-defined]
        for number in range(3):
            transport.get_pipe_transport(number).close()
        await self.process.wait()
        self.held.close()


async def start_process(isolation: Isolation, role: Role, limits: SandboxLimits) -> Inside:
    """Start a process of this role; `wait_ready` waits until it has started. Raises: SandboxFailed."""
    with ExitStack() as held, tempfile.TemporaryFile() as rules:
        try:
            who = held.enter_context(private_id()) if isolation.is_private else 0
            folder = confining = ""
            if isolation.tier == "Landlock":
                folder = tempfile.mkdtemp(prefix="wfdsl-program-")
                held.callback(shutil.rmtree, folder, ignore_errors=True)
                os.chown(folder, who or -1, who or -1)
                confining = f"confine({seccomp_filter(alone=True)!r}, {list(isolation.readable)!r}, {folder!r}, {who})"
            bounds = {
                "CORE": 0,
                "AS": limits.memory_mib * MIB,
                "FSIZE": limits.files_mib * MIB,
                "NOFILE": limits.open_files,
            }
            if who or not folder:  # the kernel counts all processes of a user
                bounds["NPROC"] = limits.processes
            source = f"{_FIRST}\n{confining}\nlimit({bounds})\n{_ROLES[role][0]}\n"
            rules.write(seccomp_filter())
            rules.seek(0)
            process = await asyncio.create_subprocess_exec(
                *isolation.command(who, source, seccomp_fd=rules.fileno()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**isolation.environment, **({"HOME": folder, "TMPDIR": folder} if folder else {})},
                cwd=folder or "/",
                pass_fds=() if folder else (rules.fileno(),),
                start_new_session=True,
            )
        except OSError as problem:
            raise SandboxFailed(f"the sandbox could not be started: {problem}") from problem
        pipes: tuple[Any, Any, Any] = process.stdin, process.stdout, process.stderr
        return Inside(process, *pipes, limits.output_bytes, code_of(role), folder, held.pop_all())


@asynccontextmanager
async def time_limit(insides: Sequence[Inside], seconds: float) -> AsyncIterator[None]:
    """Raise TimeoutError when the block has taken `seconds` of processor time in these processes.

    Also when `seconds` of wall time have passed and all of them wait, and when four times as many have passed.
    """
    async with asyncio.timeout(seconds * PATIENCE) as deadline, meanwhile(_watch_time(insides, seconds, deadline)):
        yield


@asynccontextmanager
async def meanwhile(watch: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Do this while the block runs, and end it then."""
    watching = asyncio.create_task(watch)
    try:
        yield
    finally:
        watching.cancel()


async def _watch_time(insides: Sequence[Inside], seconds: float, deadline: asyncio.Timeout) -> None:
    """The first look is not at once: most programs have ended before it, and looking takes time."""
    first_s = min(_EVERY_S, seconds / 2)
    await asyncio.sleep(first_s)
    before = sum(inside.usage().processor_s for inside in insides) - first_s
    await asyncio.sleep(seconds - first_s)
    waited = 0
    while True:
        found = [inside.usage() for inside in insides]
        waited = waited + 1 if all(one.is_waiting for one in found) else 0
        if sum(one.processor_s for one in found) - before >= seconds or waited == _LOOKS:
            deadline.reschedule(asyncio.get_running_loop().time())
            return
        await asyncio.sleep(_EVERY_S)


async def watch_space(insides: Sequence[Inside], limits: SandboxLimits) -> None:
    """Kill those of these processes that use more memory or files than they may."""
    while True:
        await asyncio.sleep(_EVERY_S)
        for inside in insides:
            used = inside.usage()
            if used.memory_bytes > limits.all_memory_mib * MIB:
                inside.kill(f"its processes used more than {limits.all_memory_mib:,} MiB of memory")
            elif used.files > limits.files:
                inside.kill(f"it made more than {limits.files:,} files")
            elif used.file_bytes > limits.files_mib * MIB:
                inside.kill(f"it wrote more than {limits.files_mib:,} MiB of files")


async def run_source(inside: Inside, source: str, *, stdin: str, timeout_s: float) -> Ran:
    """Run a program with its input in a process of the role `program` that is ready, and wait for its end."""
    begun = time.monotonic()
    output = bytearray()
    ending: Ending = "ended"

    async def feed() -> None:
        await inside.send(source.encode("utf-8", "surrogatepass"))
        await inside.write(stdin.encode("utf-8", "surrogatepass"), last=True)

    try:
        async with time_limit([inside], timeout_s), asyncio.TaskGroup() as group:
            group.create_task(feed())
            group.create_task(inside.read_all(inside.stdout, output))
            group.create_task(inside.read_all(inside.stderr, inside.errors))
            group.create_task(inside.process.wait())
    except* TimeoutError:
        ending = "timeout"
    except* BrokenOffError:
        ending = "output"
    code = inside.process.returncode if ending == "ended" else None
    errors = inside.errors[-2000:].decode("utf-8", "replace") + (f"\n{inside.exceeded}" if inside.exceeded else "")
    return Ran(ending, code, bytes(output), errors, time.monotonic() - begun)


@cache
def code_of(role: Role) -> bytes:
    """The compiled code of a role, as `marshal` writes it: the modules of `inside`, joined."""
    folder = files("wfdsl.grading.sandbox.inside")
    text = "\n".join(folder.joinpath(f"{name}.py").read_text("utf-8") for name in _ROLES[role][1])
    whole = f"TYPE_CHECKING = False\nREADY = {READY!r}\n{_NEEDLESS.sub('', text)}"
    return marshal.dumps(compile(whole, "sandbox", "exec", _ANNOTATIONS, dont_inherit=True))
