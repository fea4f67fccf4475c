"""A process inside the sandbox, seen from outside: what is written to it, what is read from it, and its end.

Every read has a limit of bytes and of time; past it, all processes of the sandbox are killed. Whoever starts one ends
it, whatever happened: that kills it with all that it started, and waits until they are gone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from wfdsl_rl.grading.sandbox import seccomp
from wfdsl_rl.grading.sandbox.errors import SandboxFailed
from wfdsl_rl.grading.sandbox.inside import READY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

START_S = 30.0  # the longest that the walls may take to stand, on a machine that is busy
_CHUNK = 1 << 16
_LENGTH = 12  # digits of a number: the length of a frame, and the seconds that are there for one


class TooMuchError(Exception):
    """A program that wrote more than it may."""


class EndedError(Exception):
    """A program that ended before it had replied."""


@dataclass(slots=True)
class Inside:
    """One process group inside the sandbox."""

    process: asyncio.subprocess.Process
    most: int
    """Bytes that are read of each stream, or of one reply."""
    code: bytes
    """What the interpreter reads before all else."""
    walled: bool
    """Whether the process is the wall, with the interpreter behind it, or the interpreter itself."""
    ended: Callable[[], None]
    """Called when nothing of it is left."""
    stands: bool = False
    """Whether the interpreter has said that it is ready."""
    errors: bytearray = field(default_factory=bytearray)

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Write to its input; `last` closes it. A program need not read it."""
        stream = self._stdin
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
        stream = self._stdout
        try:
            length = await stream.readexactly(_LENGTH)
            if not length.isdigit():
                raise TooMuchError("the program wrote into the channel of its results")
            if int(length) > self.most:
                raise TooMuchError(f"a result of more than {self.most:,} bytes")
            return await stream.readexactly(int(length))
        except asyncio.IncompleteReadError as problem:
            raise EndedError("the program ended its process before it gave a result") from problem

    async def read_all(self) -> bytes:
        """Its output until it ends. Raises: TooMuchError."""
        found = bytearray()
        while chunk := await self._stdout.read(_CHUNK):
            found += chunk
            if len(found) > self.most:
                raise TooMuchError(f"more than {self.most:,} bytes of output")
        return bytes(found)

    async def read_errors(self) -> None:
        """Its error output until it ends. Raises: TooMuchError."""
        stream = self.process.stderr
        assert stream is not None
        while chunk := await stream.read(_CHUNK):
            self.errors += chunk
            if len(self.errors) > self.most:
                raise TooMuchError(f"more than {self.most:,} bytes of error output")

    async def wait_ready(self) -> None:
        """Wait until the walls stand. Raises: SandboxFailed."""
        if self.stands:
            return
        await self.send(self.code)
        try:
            async with asyncio.timeout(START_S):
                word = await self._stdout.readexactly(len(READY))
        except TimeoutError as problem:
            raise SandboxFailed(
                f"the sandbox did not start within {START_S:g} s: this machine is too busy"
            ) from problem
        except asyncio.IncompleteReadError as problem:
            await self.read_errors()
            said = self.errors.decode("utf-8", "replace").strip()[-600:]
            raise SandboxFailed(f"the sandbox did not start: {said or 'it said nothing'}") from problem
        if word != READY:
            raise SandboxFailed(f"the sandbox began with {word!r}")
        self.stands = True

    @property
    def alive(self) -> bool:
        """Whether it can still be given something to do, as far as is known here."""
        return self.process.returncode is None and not self._stdout.at_eof()

    async def begin(self, seconds: float) -> None:
        """Say how long what is sent next may take: processor time, rounded up, and a second to end in."""
        await self.write(b"%0*d" % (_LENGTH, ceil(seconds) + 1))

    async def end(self) -> None:
        """Kill it, and wait until it is gone. Nothing can be done with it any more."""
        self.kill()
        await asyncio.shield(self._gone())

    def kill(self) -> None:
        """End every process inside.

        The first process inside goes first: all others there die with it, and bubblewrap still stands to bury it. The
        other way round it would be left to the machine's first process, which in a container may never bury anything.
        """
        if self.process.returncode is not None:
            return
        if not self.walled:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        else:
            for pid in _first_inside(self.process.pid) or [self.process.pid]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    async def _gone(self) -> None:
        """Close its pipes, whether or not all was read, and wait until it has ended.

        In this order: asyncio waits for pipes as well, and one that is full and no longer read would never be done.
        """
        transport = self.process._transport  # type: ignore[attr-defined]
        for number in range(3):
            transport.get_pipe_transport(number).close()
        await self.process.wait()
        self.ended()

    @property
    def _stdin(self) -> asyncio.StreamWriter:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def _stdout(self) -> asyncio.StreamReader:
        assert self.process.stdout is not None
        return self.process.stdout


async def started(
    command: Callable[[int], Sequence[str]], *, code: bytes, most: int, walled: bool, ended: Callable[[], None]
) -> Inside:
    """Start the command that `command` gives for the number of an open file with the filter of system calls.

    The walls may still be rising: `wait_ready` waits for them. `ended` is called when nothing is left of it, also if it
    could not be started. Its environment is empty: what bubblewrap itself is given could be read inside, at
    /proc/1/environ.

    Raises: SandboxFailed.
    """
    try:
        with tempfile.TemporaryFile() as rules:
            rules.write(seccomp.program() if seccomp.supported() else b"")
            rules.seek(0)
            process = await _spawned(command(rules.fileno()), rules.fileno())
    except BaseException:
        ended()
        raise
    return Inside(process, most, code, walled, ended)


def _first_inside(outside: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{outside}/task/{outside}/children").read_text("ascii").split()]
    except OSError:  # it has ended, or this kernel does not say
        return []


async def _spawned(command: Sequence[str], rules: int) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env={},
            cwd="/",
            pass_fds=(rules,),
            start_new_session=True,
        )
    except OSError as problem:
        raise SandboxFailed(f"the sandbox could not be started: {problem}") from problem
