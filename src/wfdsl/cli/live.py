"""A run as it happens: a table that redraws itself on a terminal, one line per event elsewhere.

Displays read only the event stream. They write to standard error, so that standard output holds only the
answer.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from wfdsl.interpreter.events import (
    BudgetCharged,
    Delta,
    Event,
    FellBack,
    Path,
    Retried,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
)
from wfdsl.interpreter.record import StepRecord
from wfdsl.render.status import dollars, duration

_TAIL = 60
"""How many characters of a response that is being written are shown."""
_LINES = 20  # how many lines report progress where there is no terminal; our choice


class PlainDisplay:
    """One line per event, for logs and pipes."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._names: dict[Path, str] = {}

    def __enter__(self) -> PlainDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._out.flush()

    def __call__(self, event: Event) -> None:
        """Show an event."""
        if isinstance(event, RunStarted):
            self._names.update(_titles(event))
        line = self._line(event)
        if line:
            print(line, file=self._out, flush=True)

    def _line(self, event: Event) -> str:
        match event:
            case RunStarted():
                return _opening(event)
            case StepStarted():
                return f"{self._name(event.path)} started: {event.worker_name}"
            case StepFinished():
                return f"{self._name(event.path)} {_closing(event.record)}"
            case Retried():
                return f"{self._name(event.path)} tries again in {duration(event.wait_s)}: {event.reason}"
            case FellBack():
                return f"{self._name(event.path)} goes to {event.worker_name}: {event.reason}"
            case RunFinished() if not event.path:
                return _summary(event)
            case _:
                return ""

    def _name(self, path: Path) -> str:
        return self._names.get(path, _numbered(path))


@dataclass(slots=True)
class _Row:
    """One step on the terminal."""

    title: str
    worker: str
    state: str = "waiting"
    since: float = 0.0
    tail: str = ""
    record: StepRecord | None = None
    spinner: Spinner = field(default_factory=lambda: Spinner("dots", style="cyan"))


class TerminalDisplay:
    """A table with a row per step, redrawn a few times a second."""

    def __init__(self, console: Console) -> None:
        self._rows: dict[Path, _Row] = {}
        self._budget: BudgetCharged | None = None
        self._summary = ""
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=8)

    def __enter__(self) -> TerminalDisplay:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def __call__(self, event: Event) -> None:
        """Take in an event; the next redraw shows it."""
        match event:
            case RunStarted():
                self._open(event)
            case StepStarted() if event.path in self._rows:
                row = self._rows[event.path]
                row.state, row.since = "running", time.monotonic()
            case Delta() if event.path in self._rows:
                row = self._rows[event.path]
                row.tail = (row.tail + event.text)[-_TAIL:]
            case Retried() if event.path in self._rows:
                self._rows[event.path].tail = f"again in {duration(event.wait_s)}: {event.reason}"
            case FellBack() if event.path in self._rows:
                self._rows[event.path].tail = f"now {event.worker_name}: {event.reason}"
            case StepFinished() if event.path in self._rows:
                row = self._rows[event.path]
                row.state, row.record = event.record.status, event.record
            case BudgetCharged():
                self._budget = event
            case RunFinished() if not event.path:
                self._summary = _summary(event)

    def _open(self, event: RunStarted) -> None:
        titles = _titles(event)
        for step, worker in enumerate(event.worker_names):
            path = (*event.path, step)
            state = "pruned" if step in event.pruned else "waiting"
            self._rows[path] = _Row(titles[path], worker, state)

    def _draw(self) -> Group:
        table = Table.grid(padding=(0, 2))
        for _ in range(4):
            table.add_column(no_wrap=True, min_width=1)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        for path in sorted(self._rows):
            self._add_row(table, path, self._rows[path])
        footer = [Text(line, style="dim") for line in (self._budget_line(), self._summary) if line]
        return Group(table, *footer)

    def _add_row(self, table: Table, path: Path, row: _Row) -> None:
        indent = "  " * (len(path) - 1)
        mark = row.spinner if row.state == "running" else _MARKS[row.state]
        table.add_row(mark, Text(indent + row.title), Text(row.worker, style="dim"), _time_of(row), _note_of(row))

    def _budget_line(self) -> str:
        return "" if self._budget is None else budget_line(self._budget)


_MARKS = {
    "waiting": Text("·", style="dim"),
    "done": Text("✓", style="green"),
    "failed": Text("✗", style="bold red"),
    "stopped": Text("■", style="yellow"),
    "pruned": Text("-", style="dim"),
}


def budget_line(charged: BudgetCharged) -> str:
    """What is left of a budget, in one line."""
    calls, tokens, usd, wall_s = charged.limits
    parts = []
    if calls is not None:
        parts.append(f"{calls - charged.calls} of {calls} calls")
    if tokens is not None:
        parts.append(f"{tokens - charged.tokens:,} of {tokens:,} tokens")
    if usd is not None:
        parts.append(f"{dollars(max(usd - charged.usd, 0.0))} of {dollars(usd)}")
    if wall_s is not None:
        parts.append(f"{duration(max(wall_s - charged.wall_s, 0.0))} of {duration(wall_s)}")
    return "left: " + ", ".join(parts) if parts else ""


def _titles(event: RunStarted) -> dict[Path, str]:
    paths = [(*event.path, step) for step in range(len(event.workflow))]
    if event.names is None:
        return {path: _numbered(path) for path in paths}
    return dict(zip(paths, event.names, strict=True))


def _numbered(path: Path) -> str:
    return "step " + "/".join(map(str, path))


def _opening(event: RunStarted) -> str:
    what = f"run {event.run_id}" if not event.path else f"{_numbered(event.path)} runs a workflow"
    count = len(event.workflow) - len(event.pruned)
    dead = f", {len(event.pruned)} left out because they cannot change the answer" if event.pruned else ""
    return f"{what}: {count} step{'s' if count != 1 else ''}{dead}"


def _closing(record: StepRecord) -> str:
    if record.status == "failed":
        return f"failed: {record.error}"
    seconds = (record.finished or 0.0) - (record.started or 0.0)
    parts = [duration(seconds)]
    if record.usage.total_tokens:
        parts.append(f"{record.usage.total_tokens:,} tokens")
    if record.list_usd:
        parts.append(dollars(record.list_usd))
    if record.replayed:
        parts.append("from the journal")
    if record.finish not in ("stop", None):
        parts.append(f"reply ended by: {record.finish}")
    return f"{record.status}: {', '.join(parts)}"


def _summary(event: RunFinished) -> str:
    run = event.run
    ending = "stopped by its budget" if run.status == "budget" else run.status
    parts = [f"{ending} in {duration(run.seconds or 0.0)}"]
    if run.usage.total_tokens:
        parts.append(f"{run.usage.total_tokens:,} tokens")
    if run.paid_usd is None:
        parts.append("price not known")
    elif run.paid_usd:
        parts.append(dollars(run.paid_usd))
    return f"run {run.id}: {', '.join(parts)}"


def _time_of(row: _Row) -> Text:
    if row.record is not None:
        return Text(duration((row.record.finished or 0.0) - (row.record.started or 0.0)))
    return Text(duration(time.monotonic() - row.since)) if row.state == "running" else Text("")


def _note_of(row: _Row) -> Text:
    if row.record is None:
        note = "cannot change the answer" if row.state == "pruned" else " ".join(row.tail.split())
        return Text(note, style="dim")
    if row.record.status == "failed":
        return Text(row.record.error, style="red")
    notes = _closing(row.record).split(": ", 1)[1].split(", ")[1:]
    return Text(", ".join(notes), style="dim")


class Progress(Protocol):
    """Counts questions as they are answered."""

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
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    # Standard output may be a pipe with the answers: nothing of it is to be redrawn.
    with Bar(*columns, console=Console(stderr=True), redirect_stdout=False) as bar:
        yield OnTerminal(total, bar)


class _Tally:
    """The number of questions answered, failed and paid for so far."""

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
        """Failures and costs, as far as there are any."""
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
