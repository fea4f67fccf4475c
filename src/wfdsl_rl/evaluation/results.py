"""The file of results: one cell a line, written as they come, so that a killed evaluation loses nothing it has shown.

A line counts once it ends. What a kill has cut off is taken away before the next line is written. Where a cell has
several lines, because it failed at first, the last one counts.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Final

from wfdsl.errors import UsageError
from wfdsl_rl.evaluation.cell import Cell

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from wfdsl_rl.evaluation.cell import CellKey

_SYNC_EVERY_S: Final = 1.0
"""A power cut may take so many seconds of results; their calls are in the journal. Our choice."""


class Results:
    """A file of results that is open for writing."""

    def __init__(self, path: Path) -> None:
        """Open it behind its last whole line.

        Raises:
            UsageError: it cannot be written.
        """
        try:
            self._file = path.open("ab")
        except OSError as error:
            raise UsageError(f"{path}: results cannot be written: {error.strerror}") from error
        self._file.truncate(_whole_bytes(path))
        self._synced = time.monotonic()

    def keep(self, cell: Cell) -> None:
        """Write a cell."""
        self._file.write(f"{cell.to_json()}\n".encode())
        self._file.flush()
        if time.monotonic() - self._synced > _SYNC_EVERY_S:
            self._sync()

    def __enter__(self) -> Results:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sync()
        self._file.close()

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()


def read_cells(path: Path) -> dict[CellKey, Cell]:
    """The cells of a file, by key; none if there is no file.

    Raises:
        UsageError: a line that ends is no cell.
    """
    if not path.exists():
        return {}
    cells: dict[CellKey, Cell] = {}
    data = path.read_bytes()
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            cell = Cell.from_dict(json.loads(line))
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{path}:{number}: this is no result ({error!r}); remove the line") from error
        cells[cell.key] = cell
    return cells


def _whole_bytes(path: Path) -> int:
    """How many bytes of a file are whole lines."""
    size = path.stat().st_size
    with path.open("rb") as file:
        while size:
            start = max(size - 65_536, 0)
            file.seek(start)
            end = file.read(size - start).rfind(b"\n")
            if end >= 0:
                return start + end + 1
            size = start
    return 0
