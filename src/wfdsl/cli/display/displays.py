"""Displays of a run on standard error: a table that redraws itself on a terminal, one line per event elsewhere.

They read only the event stream, so that standard output holds only the answer.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TextIO, TypeAlias

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from wfdsl.cli.display.consoles import stderr_console
from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.interpreter.events import (
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
from wfdsl.interpreter.record import StepRecord, known_costs
from wfdsl.render.pictures import to_terminal
from wfdsl.render.status import dollars, duration
from wfdsl.render.terminal import TerminalDrawing
from wfdsl.render.text import counted
from wfdsl.workers.entry import SIMULATED
from wfdsl.workers.pool import Pool

_TAIL = 60
"""How many characters of a response that is being written are shown."""
_DRAWING_WIDTH = 100
"""Columns of a drawing where there is no terminal; our choice."""


def display_for(args: argparse.Namespace, pool: Pool | None = None) -> Display | None:
    """What shows a run: a live table if standard error is a terminal, plain lines otherwise, None if `--quiet`."""
    if args.quiet:
        return None
    rounds = Rounds({} if pool is None else pool.labels)
    simulated = pool is not None and bool(pool.tagged(SIMULATED))
    if sys.stderr.isatty():
        return TerminalDisplay(stderr_console(), rounds, simulated=simulated)
    return PlainDisplay(sys.stderr, rounds, simulated=simulated)


class Rounds:
    """What is known so far of the workflows that Conductors write in a run."""

    def __init__(self, workers: Mapping[int, str] | None = None) -> None:
        """`workers` says what to call them in drawings, where it is more than their names."""
        self._workers = workers or {}
        self._names: dict[Path, str] = {}
        self._is_rooted = False

    def add(self, event: RunStarted) -> None:
        """Take in a workflow that begins to run."""
        self._is_rooted = self._is_rooted or event.workflow == ROOT_WORKFLOW
        for step, name in enumerate(event.names or ()):
            self._names[*event.path, step] = name

    def drawing(self, event: RunStarted) -> TerminalDrawing:
        """The drawing of a workflow that a Conductor wrote."""
        steps = zip(event.workflow, event.worker_names, strict=True)
        names = {step.worker: name for step, name in steps if isinstance(step.worker, int)}
        title = self.round(event.path) if event.path else ""
        return to_terminal(event.workflow, title=title, workers={**names, **self._workers}, names=event.names)

    def round(self, path: Path) -> str:
        """What a workflow is called that runs inside a step."""
        *node, number = path
        inside = "" if self._is_rooted and len(node) == 1 else f"{self.step(tuple(node))}, "
        return f"{inside}round {number}"

    def step(self, path: Path) -> str:
        """What a step is called: its name or its number, after the round that it is in."""
        *where, step = path
        name = self._names.get(path, f"step {step}")
        return f"{self.round(tuple(where))}, {name}" if where else name


class PlainDisplay:
    """One line per event, for logs and pipes."""

    def __init__(self, out: TextIO, rounds: Rounds | None = None, *, simulated: bool = False) -> None:
        self._out = out
        self._rounds = rounds or Rounds()
        self._simulated = simulated

    def __enter__(self) -> PlainDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._out.flush()

    def __call__(self, event: Event) -> None:
        """Show an event."""
        if isinstance(event, RunStarted):
            self._rounds.add(event)
        line = self.line(event)
        if line:
            print(line, file=self._out, flush=True)
        if isinstance(event, RunStarted) and event.path:  # a Conductor wrote it
            page = Console(file=self._out, width=_DRAWING_WIDTH, color_system=None)
            page.print("", self._rounds.drawing(event), sep="\n")
            self._out.flush()

    def line(self, event: Event) -> str:
        """The line of an event; empty if it has none."""
        match event:
            case RunStarted():
                return "" if event.path else _opening(event)
            case StepStarted():
                return f"{self._name(event.path)} started: {event.worker_name}"
            case StepFinished() if event.record.status == "failed" and len(event.path) == 1:
                return f"{self._name(event.path)} failed"  # the command ends with the reason
            case StepFinished():
                return f"{self._name(event.path)} {_closing(event.record, simulated=self._simulated)}"
            case Retried():
                return f"{self._name(event.path)} tries again in {duration(event.wait_s)}: {event.reason}"
            case FellBack():
                return f"{self._name(event.path)} goes to {event.worker_name}: {event.reason}"
            case RunFinished() if not event.path:
                return _summary(event, simulated=self._simulated)
            case _:
                return ""

    def _name(self, path: Path) -> str:
        return self._rounds.step(path)


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

    def __init__(self, console: Console, rounds: Rounds | None = None, *, simulated: bool = False) -> None:
        self._rounds = rounds or Rounds()
        self._simulated = simulated
        self._rows: dict[Path, _Row] = {}
        self._summary = ""
        self._console = console
        self._live = Live()

    def __enter__(self) -> TerminalDisplay:
        self._live = Live(console=self._console, get_renderable=self._draw, refresh_per_second=8)
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
            case RunFinished() if not event.path:
                self._summary = _summary(event, simulated=self._simulated)

    def _open(self, event: RunStarted) -> None:
        self._rounds.add(event)
        if event.path:
            self._live.console.print("", self._rounds.drawing(event), sep="\n")
        for step, worker in enumerate(event.worker_names):
            path = (*event.path, step)
            state = "pruned" if step in event.pruned else "waiting"
            self._rows[path] = _Row(self._rounds.step(path), worker, state)

    def _draw(self) -> Group:
        table = Table.grid(padding=(0, 2), expand=True)  # else `ratio` is nothing, and a long note takes from the names
        for _ in range(4):
            table.add_column(no_wrap=True, min_width=1)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        for path in sorted(self._rows):
            self._add_row(table, path, self._rows[path])
        return Group(table, *([Text(self._summary, style="dim")] if self._summary else []))

    def _add_row(self, table: Table, path: Path, row: _Row) -> None:
        indent = "  " * (len(path) - 1)
        mark = row.spinner if row.state == "running" else _MARKS[row.state]
        table.add_row(
            mark,
            Text(indent + row.title),
            Text(row.worker, style="dim"),
            _time_of(row),
            _note_of(row, path, simulated=self._simulated),
        )


_MARKS = {
    "waiting": Text("·", style="dim"),
    "done": Text("✓", style="green"),
    "failed": Text("✗", style="bold red"),
    "stopped": Text("■", style="yellow"),
    "suspended": Text("■", style="yellow"),
    "pruned": Text("-", style="dim"),
}


def _opening(event: RunStarted) -> str:
    count = len(event.workflow) - len(event.pruned)
    dead = f", {len(event.pruned)} left out because they cannot change the answer" if event.pruned else ""
    return f"run {event.run_id}: {counted(count, 'step')}{dead}"


def _closing(record: StepRecord, *, simulated: bool) -> str:
    if record.status == "failed":
        return f"failed: {record.error}"
    seconds = (record.finished or 0.0) - (record.started or 0.0)
    parts = [duration(seconds)]
    if record.usage.total_tokens:
        parts.append(f"{record.usage.total_tokens:,} tokens")
    if record.list_usd:
        parts.append(_cost(record.list_usd, simulated=simulated))
    if record.replayed:
        parts.append("from the journal")
    if record.finish not in ("stop", None):
        parts.append(f"reply ended by: {record.finish}")
    return f"{record.status}: {', '.join(parts)}"


def _cost(usd: float, *, simulated: bool) -> str:
    return f"{dollars(usd)} simulated" if simulated else dollars(usd)


def _summary(event: RunFinished, *, simulated: bool) -> str:
    run = event.run
    ending = "stopped by its budget" if run.status == "budget" else run.status
    parts = [f"{ending} in {duration(run.seconds or 0.0)}"]
    if run.usage.total_tokens:
        parts.append(f"{run.usage.total_tokens:,} tokens")
    if run.paid_usd is None:
        known, unknown = known_costs(run)
        parts += [f"at least {dollars(known)}"] if known else []
        parts.append(f"price of {', '.join(unknown)} not known")
    elif run.paid_usd:
        parts.append(_cost(run.paid_usd, simulated=simulated))
    return f"run {run.id}: {', '.join(parts)}"


def _time_of(row: _Row) -> Text:
    if row.record is not None:
        return Text(duration((row.record.finished or 0.0) - (row.record.started or 0.0)))
    return Text(duration(time.monotonic() - row.since)) if row.state == "running" else Text("")


def _note_of(row: _Row, path: Path, *, simulated: bool) -> Text:
    if row.record is None:
        note = "cannot change the answer" if row.state == "pruned" else " ".join(row.tail.split())
        return Text(note, style="dim")
    if row.record.status == "failed":
        # The command ends with the reason why an outermost step failed.
        return Text(row.record.error if len(path) > 1 else "failed", style="red")
    notes = _closing(row.record, simulated=simulated).split(": ", 1)[1].split(", ")[1:]
    return Text(", ".join(notes), style="dim")


Display: TypeAlias = PlainDisplay | TerminalDisplay
