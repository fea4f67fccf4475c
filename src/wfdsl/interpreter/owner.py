"""Which process works on a run: a lock file that the system lets go of when the process ends, however it ends.

No clock and no process id is trusted: a lock is held or it is not. The file system has to support locks, as local
ones do.
"""

from __future__ import annotations

import os
import secrets
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


class Owner:
    """An open journal, as other processes see it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = f"{os.getpid()}-{secrets.token_hex(6)}"
        """The process id, for people, and something that makes it unique."""
        self._file = folder / self.name
        descriptor = os.open(self._file, os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600)
        _try_lock(descriptor)
        self._descriptor: int | None = descriptor

    def close(self) -> None:
        """Let go. May be called more than once."""
        if self._descriptor is not None:
            self._file.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None


def is_alive(folder: Path, name: str) -> bool:
    """Whether the process that an owner's name stands for still has its journal open; clears up after a dead one."""
    path = folder / name
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        if not _try_lock(descriptor):
            return True
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(descriptor)
