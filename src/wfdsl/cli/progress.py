"""How far many questions have come: a bar on a terminal, a line now and then elsewhere. Both on standard error."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress as Bar
    from rich.progress import TaskID

_LINES = 20  # how many lines tell of the progress where there is no terminal; our choice


class Progress(Protocol):
    """Is told what becomes of questions."""

    def answered(self, usd: float | None) -> None:
        """A question has an answer; `usd` is what it cost, None if that is not known."""
        ...

    def failed(self, name: str | float, why: str, usd: float | None) -> None:
        """A question got no answer."""
        ...


@contextmanager
def progress_on_stderr(total: int) -> Iterator[Progress]:
    """Show progress until the end of the block."""
    if not sys.stderr.isatty():
        yield Lines(total, sys.stderr)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    # Standard output may be a pipe with the answers: nothing of it is to be redrawn.
    with Bar(*columns, console=Console(stderr=True), redirect_stdout=False) as bar:
        yield OnTerminal(total, bar)


class _Tally:
    """What has become of the questions so far."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.failures = 0
        self.done = 0
        self.usd: float | None = 0.0

    def add(self, usd: float | None) -> None:
        """Count a question."""
        self.done += 1
        self.usd = None if self.usd is None or usd is None else self.usd + usd

    def remarks(self) -> str:
        """What there is to say besides the number."""
        from wfdsl.render.status import dollars

        parts = [f"{self.failures} without an answer"] if self.failures else []
        parts += [dollars(self.usd)] if self.usd else []
        return ", ".join(parts)


class Lines:
    """A line for each twentieth of the questions, and for each that got no answer."""

    def __init__(self, total: int, out: TextIO) -> None:
        self._tally = _Tally(total)
        self._out = out

    def answered(self, usd: float | None) -> None:
        """A question has an answer."""
        self._tally.add(usd)
        self._print()

    def failed(self, name: str | float, why: str, usd: float | None) -> None:
        """A question got no answer."""
        self._tally.failures += 1
        self._tally.add(usd)
        print(f"{name}: {why}", file=self._out, flush=True)
        self._print()

    def _print(self) -> None:
        tally = self._tally
        if tally.done == tally.total or tally.done * _LINES // tally.total > (tally.done - 1) * _LINES // tally.total:
            remarks = tally.remarks()
            print(f"{tally.done} of {tally.total}{f', {remarks}' if remarks else ''}", file=self._out, flush=True)


class OnTerminal:
    """A bar that is redrawn; what got no answer is printed above it."""

    def __init__(self, total: int, bar: Bar) -> None:
        self._tally = _Tally(total)
        self._bar = bar
        self._task: TaskID = bar.add_task("", total=total)

    def answered(self, usd: float | None) -> None:
        """A question has an answer."""
        self._tally.add(usd)
        self._draw()

    def failed(self, name: str | float, why: str, usd: float | None) -> None:
        """A question got no answer."""
        self._tally.failures += 1
        self._tally.add(usd)
        self._bar.console.print(f"{name}: {why}", markup=False, highlight=False)
        self._draw()

    def _draw(self) -> None:
        self._bar.update(self._task, completed=self._tally.done, description=self._tally.remarks())
