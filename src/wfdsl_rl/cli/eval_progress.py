"""How far an evaluation is: a bar with the cost so far on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, TextIO

from wfdsl.render.status import dollars

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from wfdsl_rl.evaluation.cell import Cell

_LINES: Final = 20
"""How many lines a whole evaluation prints where there is no terminal."""


class Counts:
    """What has become of the cells so far."""

    def __init__(self, cells: Iterable[Cell], *, budget_usd: float | None = None, simulated: bool = False) -> None:
        self.done = 0
        self._outcomes = {"right": 0, "wrong": 0, "unjudged": 0, "failed": 0}
        self._usd: float | None = 0.0
        self._budget_usd = budget_usd
        self._simulated = simulated
        for cell in cells:
            self.add(cell)

    def add(self, cell: Cell) -> None:
        """Count a cell."""
        self.done += 1
        self._outcomes[cell.outcome] += 1
        self._usd = None if self._usd is None or cell.paid_usd is None else self._usd + cell.paid_usd

    def text(self) -> str:
        """Outcomes and cost in one line."""
        shown = [f"{count:,} {name}" for name, count in self._outcomes.items() if count or name in ("right", "wrong")]
        cost = "cost not known" if self._usd is None else dollars(self._usd)
        limit = "" if self._budget_usd is None else f" of {dollars(self._budget_usd)}"
        return f"{', '.join(shown)}, {cost}{limit}{' (simulated)' if self._simulated else ''}"


class PlainProgress:
    """A line for every twentieth of the cells."""

    def __init__(self, total: int, counts: Counts, out: TextIO) -> None:
        self._total = total
        self._counts = counts
        self._out = out
        self._every = max(total // _LINES, 1)

    def add(self, cell: Cell) -> None:
        """Count a cell, and print a line if it is time."""
        counts = self._counts
        counts.add(cell)
        if counts.done % self._every == 0 or counts.done == self._total:
            print(f"{counts.done:,} of {self._total:,} runs: {counts.text()}", file=self._out, flush=True)

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._out.flush()


class BarProgress:
    """A bar with the time left and the cost so far."""

    def __init__(self, total: int, counts: Counts) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.fields[counts]}"))
        self._bar: Any = Progress(*columns, console=Console(stderr=True), refresh_per_second=4)
        self._counts = counts
        self._task = self._bar.add_task("", total=total, completed=counts.done, counts=counts.text())

    def add(self, cell: Cell) -> None:
        """Count a cell; the next redraw shows it."""
        self._counts.add(cell)
        self._bar.update(self._task, completed=self._counts.done, counts=self._counts.text())

    def __enter__(self) -> BarProgress:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)


def progress_on_stderr(total: int, counts: Counts) -> PlainProgress | BarProgress:
    """The progress that fits standard error; `counts` holds the cells that are done already."""
    return BarProgress(total, counts) if sys.stderr.isatty() else PlainProgress(total, counts, sys.stderr)
