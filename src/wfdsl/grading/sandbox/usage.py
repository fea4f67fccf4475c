"""What the processes of a sandbox use, as the kernel counts it, and the limits on that.

Time is processor time, so that a verdict does not depend on what else the machine does. Memory and files are counted
over all processes of a sandbox, where limits of the kernel hold for one process or not at all.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from wfdsl.grading.sandbox.isolation import MIB, SandboxLimits

PATIENCE = 4.0  # how much wall time a program may take for each second of processor time that it has. Our choice
_EVERY_S = 0.1  # between two looks. Our choice
_LOOKS = 10  # in a row that find all waiting: a busy machine reads late what they wrote last. Our choice
_WRITABLE = ("tmp", "dev/shm")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and all that it started use."""

    processor_s: float = 0.0
    memory_bytes: int = 0
    files: int = 0
    file_bytes: int = 0
    """Of files on this machine's disk."""
    is_waiting: bool = True
    """Whether none of them runs or could run."""


class Observed(Protocol):
    """A process with all that it started."""

    def usage(self) -> Usage:
        """What they use."""

    def kill(self, exceeded: str = "") -> None:
        """End them, for this limit."""


def usage_of(pid: int, folder: str = "") -> Usage:
    """What a process and all that it started use; nothing of it where the system does not say.

    `folder` is one on this machine's disk that only this process writes to.
    """
    processor_s, memory, is_waiting = 0.0, 0, True
    files, file_bytes = _within(folder) if folder else (0, 0)
    for one in _tree(pid):
        with suppress(OSError, IndexError, ValueError):  # it has ended since
            words = Path(f"/proc/{one}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
            processor_s += sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")
            memory += int(words[21]) * os.sysconf("SC_PAGE_SIZE")
            is_waiting = is_waiting and words[0] in "SZ"
            files = max(files, *(_files(f"/proc/{one}/root", folder) for folder in _WRITABLE))
    return Usage(processor_s, memory, files, file_bytes, is_waiting)


@asynccontextmanager
async def time_limit(insides: Sequence[Observed], seconds: float) -> AsyncIterator[None]:
    """Raise TimeoutError when the block has taken `seconds` of processor time in these processes.

    Also when `seconds` of wall time have passed and all of them wait, and when four times as many have passed.
    """
    async with asyncio.timeout(seconds * PATIENCE) as deadline:
        watching = asyncio.create_task(_watch_time(insides, seconds, deadline))
        try:
            yield
        finally:
            watching.cancel()


@asynccontextmanager
async def bounded(insides: Sequence[Observed], limits: SandboxLimits) -> AsyncIterator[None]:
    """Kill those of these processes that use more memory or files than they may, while the block runs."""
    watching = asyncio.create_task(_watch_space(insides, limits))
    try:
        yield
    finally:
        watching.cancel()


async def _watch_time(insides: Sequence[Observed], seconds: float, deadline: asyncio.Timeout) -> None:
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


async def _watch_space(insides: Sequence[Observed], limits: SandboxLimits) -> None:
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


def children(pid: int) -> Iterator[int]:
    """The processes that this one has started; none where it has ended, or the kernel does not say."""
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  (a hundred times a second: no path objects)
            yield from map(int, Path(f"/proc/{pid}/task/{task}/children").read_text("ascii").split())


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for child in children(pid):
        yield from _tree(child)


def _files(root: str, folder: str) -> int:
    """How many files a folder has that only the sandbox sees; 0 for folders of this machine."""
    try:
        if Path(root, folder).stat().st_dev == Path("/", folder).stat().st_dev:
            return 0
        found = os.statvfs(f"{root}/{folder}")
    except OSError:
        return 0
    return found.f_files - found.f_ffree


def _within(folder: str) -> tuple[int, int]:
    """How many files there are in a folder, and how many bytes they have."""
    count, size = 0, 0
    for place, folders, names in os.walk(folder):
        count += len(folders) + len(names)
        for name in names:
            with suppress(OSError):  # it has been removed since
                size += os.lstat(f"{place}/{name}").st_size
    return count, size
