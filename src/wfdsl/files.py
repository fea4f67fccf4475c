"""Writing files whole: a reader never sees, and a crash never leaves, half a file."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes, *, mode: int | None = None) -> None:
    """Write a file beside its place, let it reach the disk, and put it there; `mode`, or the mode that it had, stays.

    Raises:
        OSError: it cannot be written; what stood there before still does.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with new.open("xb") as file:
            if mode is not None or path.exists():
                os.fchmod(file.fileno(), path.stat().st_mode if mode is None else mode)
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
