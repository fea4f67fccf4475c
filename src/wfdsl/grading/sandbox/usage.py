"""What the processes of a sandbox use, as the kernel counts it.

Time is processor time, so that a verdict does not depend on what else the machine does. Memory and files are counted
over all processes of a sandbox, where limits of the kernel hold for one process or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

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
