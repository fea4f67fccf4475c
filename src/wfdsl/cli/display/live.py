"""A run of a command: how it is started, shown while it runs, and stopped by Ctrl-C or SIGTERM.

A table that redraws itself shows it on a terminal, and one line per event elsewhere. Displays read only the event
stream. They write to standard error, so that standard output holds only the answer. Commands import this module when
they execute: rich and the interpreter take start-up time.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from types import TracebackType
from typing import Any, TextIO, TypeVar

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from wfdsl.cli.display.answers import Display, print_result
from wfdsl.cli.display.rounds import Rounds
from wfdsl.cli.inputs import STDIN
from wfdsl.cli.output import Interrupted, end_at_once
from wfdsl.experiment import Experiment, run_options
from wfdsl.interpreter.events import (
    BudgetCharged,
    Delta,
    Event,
    FellBack,
    Listener,
    Path,
    Retried,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
)
from wfdsl.interpreter.journal_file import default_path
from wfdsl.interpreter.record import Run, RunEnded, StepRecord, known_costs
from wfdsl.interpreter.running import RunOptions
from wfdsl.render.status import dollars, duration
from wfdsl.render.text import counted

_TAIL = 60
"""How many characters of a response that is being written are shown."""
_DRAWING_WIDTH = 100
"""Columns of a drawing where there is no terminal; our choice."""


_PATIENCE = 2
"""How many times Ctrl-C waits until the calls in flight are closed."""
_T = TypeVar("_T")


def new_run_options(experiment: Experiment, *, run_id: str | None = None, origin: dict[str, str]) -> RunOptions:
    """What a new run is told, except for who hears its events."""
    return {
        **run_options(experiment.run),
        "budget": experiment.budget,
        "journal": default_path() if experiment.run.journal else None,
        "run_id": run_id,
        "origin": origin,
    }


def print_run(run: Run, display: Display | None = None, *, as_json: bool) -> None:
    """The answer, or the trace, on standard output."""
    print_result(run, run.to_json(indent=2) if as_json else None, display)


def followed(work: Coroutine[Any, Any, Run], display: Display, *, as_json: bool, again: str | None) -> Run:
    """Wait for a run, showing it; a run that ends without an answer is printed if JSON was asked for.

    `again` is the command that continues it, None if nothing can.
    """
    hint = "" if again is None else f"continue with: {again}"
    try:
        with display:
            return asyncio.run(stopped_by_signals(work, hint))
    except RunEnded as error:
        if as_json:
            print_run(error.run, as_json=True)
        raise
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise Interrupted(hint) from None


async def stopped_by_signals(work: Coroutine[Any, Any, _T], hint: str) -> _T:
    """Let Ctrl-C, SIGTERM and SIGHUP cancel some work: the system shuts down, or the terminal has gone.

    The third Ctrl-C does not wait until the work has ended: it prints the hint and ends the process.
    """
    task = asyncio.current_task()
    assert task is not None  # asyncio.run has made it
    # Windows has no such signals, and only the main thread may listen to them. `nohup` ignores SIGHUP.
    if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
        for stop in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(stop) is not signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(stop, task.cancel)
        try:
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                return await _stopped_by_ctrl_c(work, task, hint)
            return await work
        finally:
            # The loop closes the pipe that signals write to before it tells Python so; a Ctrl-C between the two would
            # print a traceback. Signals that have a handler of the loop are ignored from here on.
            signal.set_wakeup_fd(-1)
    return await work


async def _stopped_by_ctrl_c(work: Coroutine[Any, Any, _T], task: asyncio.Task[Any], hint: str) -> _T:
    heard, loop = 0, asyncio.get_running_loop()

    def stop(*_: object) -> None:
        nonlocal heard
        heard += 1
        if heard > _PATIENCE:
            end_at_once(hint)
        if not loop.is_closed():
            loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGINT, stop)
    try:
        return await work
    finally:
        if not heard:  # else it still guards the clean-up, until the command says that it was interrupted
            signal.signal(signal.SIGINT, before)


def listener_for(display: Display | None, *, otel: bool, origin: Mapping[str, str]) -> Listener | None:
    """Who hears the events: the display, if any, and OpenTelemetry if it was asked for.

    `origin` says what runs; spans have the name of its workflow file, or `solve` where a Conductor answers.

    Raises:
        UsageError: OpenTelemetry was asked for, and is not installed or has no provider.
    """
    if not otel:
        return display
    from wfdsl.interpreter.telemetry import SpanListener, require_provider  # an optional package

    require_provider()
    file = origin.get("file", STDIN)
    spans = SpanListener(workflow="solve" if "solve" in origin else "" if file == STDIN else PurePath(file).stem)
    if display is None:
        return spans

    def both(event: Event) -> None:
        display(event)
        spans(event)

    return both


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
        if isinstance(event, RunStarted) and self.draws(event):
            page = Console(file=self._out, width=_DRAWING_WIDTH, color_system=None)
            page.print("", self._rounds.drawing(event), sep="\n")
            self._out.flush()

    def draws(self, event: RunStarted) -> bool:
        """Whether a workflow is drawn: one that a Conductor wrote."""
        return bool(event.path)

    def finish(self) -> None:
        """Say nothing: every event has had its line."""

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
        self._budget: BudgetCharged | None = None
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
            case BudgetCharged():
                self._budget = event
            case RunFinished() if not event.path:
                self._summary = _summary(event, simulated=self._simulated)

    def finish(self) -> None:
        """Print what the run cost, which the table could not show yet."""
        self._console.print(Text(self._summary, style="dim"))

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
        footer = [Text(line, style="dim") for line in (self._budget_line(), self._summary) if line]
        return Group(table, *footer)

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

    def _budget_line(self) -> str:
        return "" if self._budget is None else budget_line(self._budget)


_MARKS = {
    "waiting": Text("·", style="dim"),
    "done": Text("✓", style="green"),
    "failed": Text("✗", style="bold red"),
    "stopped": Text("■", style="yellow"),
    "suspended": Text("■", style="yellow"),
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
