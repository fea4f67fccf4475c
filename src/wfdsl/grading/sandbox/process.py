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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import ceil
from typing import Literal, TypeAlias, cast

from wfdsl.grading.sandbox.inside import READY
from wfdsl.grading.sandbox.isolation import MIB, Isolation, SandboxFailed, SandboxLimits, private_id
from wfdsl.grading.sandbox.seccomp import seccomp_filter
from wfdsl.grading.sandbox.usage import Usage, children, time_limit, usage_of

Role: TypeAlias = Literal["program", "candidate", "checker", "together"]
Ending: TypeAlias = Literal["ended", "timeout", "output"]
START_S = 30.0  # the longest that isolation may take to start, on a machine that is busy
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


class TooMuchError(Exception):
    """A program that wrote more than it may."""


class EndedError(Exception):
    """A program that ended before it had replied."""


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
    most: int
    """Bytes that are read of each stream, or of one reply."""
    code: bytes
    """What the interpreter reads before all else."""
    folder: str
    """What it may write to, where it is the interpreter itself; empty where it is bubblewrap."""
    ended: Callable[[], None]
    """Called when nothing of it is left."""
    errors: bytearray = field(default_factory=bytearray)
    exceeded: str = ""
    """The limit for which it was killed, in words."""

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Write to its input; `last` closes it. A program need not read it."""
        stream = cast("asyncio.StreamWriter", self.process.stdin)
        with suppress(BrokenPipeError, ConnectionResetError):
            stream.write(data)
            await stream.drain()
        if last:
            stream.close()

    async def send(self, payload: bytes) -> None:
        """Write one frame."""
        await self.write(b"%0*d" % (_LENGTH, len(payload)) + payload)

    async def receive(self) -> bytes:
        """Read one frame. Raises: EndedError, TooMuchError."""
        try:
            length = await self.stdout.readexactly(_LENGTH)
            if not length.isdigit():
                raise TooMuchError("the program wrote into the channel of its results")
            if int(length) > self.most:
                raise TooMuchError(f"a result of more than {self.most:,} bytes")
            return await self.stdout.readexactly(int(length))
        except asyncio.IncompleteReadError as problem:
            raise EndedError(self.exceeded or "the program ended its process before it gave a result") from problem

    async def read_all(self, stream: asyncio.StreamReader, found: bytearray) -> None:
        """What it writes to one of its streams until it ends. Raises: TooMuchError."""
        while chunk := await stream.read(_CHUNK):
            found += chunk
            if len(found) > self.most:
                raise TooMuchError(f"more than {self.most:,} bytes of output")

    async def wait_ready(self) -> None:
        """Wait until the interpreter is ready. Raises: SandboxFailed."""
        await self.send(self.code)
        try:
            async with asyncio.timeout(START_S):
                word = await self.stdout.readexactly(len(READY))
        except TimeoutError as problem:
            late = f"the sandbox did not start within {START_S:g} s: this machine is too busy"
            raise SandboxFailed(late) from problem
        except asyncio.IncompleteReadError as problem:
            await self.read_all(self.stderr, self.errors)
            said = self.errors.decode("utf-8", "replace").strip()[-600:]
            raise SandboxFailed(f"the sandbox did not start: {said or 'it said nothing'}") from problem
        if word != READY:
            raise SandboxFailed(f"the sandbox began with {word!r}")

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
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.ended()

    @property
    def stdout(self) -> asyncio.StreamReader:
        """Its output."""
        return cast("asyncio.StreamReader", self.process.stdout)

    @property
    def stderr(self) -> asyncio.StreamReader:
        """Its error output."""
        return cast("asyncio.StreamReader", self.process.stderr)


async def start_process(
    isolation: Isolation, role: Role, number: int, limits: SandboxLimits, ended: Callable[[], None]
) -> Inside:
    """Start a process of this role; `wait_ready` waits until it has started.

    `number` says which private user id it has. `ended` is called when nothing is left of it, also if it could not be
    started. Raises: SandboxFailed.
    """
    folder = ""
    try:
        who = private_id(number) if isolation.is_private else 0
        if isolation.tier == "Landlock":
            folder = tempfile.mkdtemp(prefix="wfdsl-program-")
            os.chown(folder, who or -1, who or -1)
        processes = limits.processes if who or not folder else 1 << 30  # the kernel counts all processes of a user
        numbers = (limits.memory_mib * MIB, processes, limits.files_mib * MIB, limits.open_files)
        source = f"{_FIRST}\n{isolation.confinement(who, folder)}\nlimit{numbers}\nusual_names()\n{_ROLES[role][0]}\n"
        with tempfile.TemporaryFile() as rules:
            rules.write(seccomp_filter())
            rules.seek(0)
            process = await asyncio.create_subprocess_exec(
                *isolation.command(who, source, seccomp_fd=rules.fileno()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=isolation.environment(folder),
                cwd=folder or "/",
                pass_fds=() if folder else (rules.fileno(),),
                start_new_session=True,
            )
    except BaseException as problem:
        shutil.rmtree(folder, ignore_errors=True)
        ended()
        if isinstance(problem, OSError):
            raise SandboxFailed(f"the sandbox could not be started: {problem}") from problem
        raise
    return Inside(process, limits.output_bytes, code_of(role), folder, ended)


async def run_source(inside: Inside, source: str, *, stdin: str, timeout_s: float) -> Ran:
    """Run a program with its input in a process of the role `program` that is ready, and wait for its end."""
    begun = time.monotonic()
    text = source.encode("utf-8", "surrogatepass")
    given = b"%0*d" % (_LENGTH, len(text)) + text + stdin.encode("utf-8", "surrogatepass")
    output = bytearray()
    ending: Ending = "ended"
    writing = asyncio.create_task(inside.write(given, last=True))
    reading = [
        asyncio.create_task(inside.read_all(inside.stdout, output)),
        asyncio.create_task(inside.read_all(inside.stderr, inside.errors)),
    ]
    try:
        async with time_limit([inside], timeout_s):
            await asyncio.gather(*reading)
            await inside.process.wait()
    except TimeoutError:
        ending = "timeout"
    except TooMuchError:
        ending = "output"
    finally:
        inside.kill()
        for task in (writing, *reading):
            task.cancel()
        await asyncio.gather(writing, *reading, return_exceptions=True)
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
