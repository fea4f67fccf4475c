"""Writing files whole: a reader never sees, and a crash never leaves, half a file."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file beside its place, let it reach the disk, and put it there.

    Raises:
        OSError: it cannot be written; what stood there before still does.
    """
    new = path.with_name(f"{path.name}.new")
    with new.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
