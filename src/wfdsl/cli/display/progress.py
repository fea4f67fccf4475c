"""The progress of a run on standard error: a table that redraws itself on a terminal, one line per event elsewhere.

It is made of the event stream alone, so that standard output holds only the answer.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

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
from wfdsl.protocols import Usage
from wfdsl.render.pictures import to_terminal
from wfdsl.render.status import dollars, duration
from wfdsl.render.text import counted
from wfdsl.workers.entry import SIMULATED
from wfdsl.workers.pool import Pool

_TAIL = 60
"""How many characters of a response that is being written are shown."""
_DRAWING_WIDTH = 100
"""Columns of a drawing where there is no terminal; our choice."""
_MARKS = {
    "waiting": Text("·", style="dim"),
    "done": Text("✓", style="green"),
    "failed": Text("✗", style="bold red"),
    "stopped": Text("■", style="yellow"),
    "suspended": Text("■", style="yellow"),
    "pruned": Text("-", style="dim"),
}


def progress_for(pool: Pool) -> Progress:
    """What shows a run on the workers of a pool."""
    live = sys.stderr.isatty()
    console = stderr_console() if live else stderr_console(width=_DRAWING_WIDTH, color_system=None)
    return Progress(console, pool.labels, live=live, simulated=bool(pool.tagged(SIMULATED)))


@dataclass(slots=True)
class _Row:
    """One step in the table."""

    title: str
    worker: str
    state: str = "waiting"
    since: float = 0.0
    note: str = ""


class Progress:
    """Shows a run: a listener of its events, entered while it runs."""

    def __init__(
        self, console: Console, workers: Mapping[int, str] | None = None, *, live: bool, simulated: bool = False
    ) -> None:
        """`workers` says what to call them in drawings, where it is more than their names."""
        self._console = console
        self._workers = workers or {}
        self._simulated = simulated
        self._names: dict[Path, str] = {}
        self._is_rooted = False
        self._rows: dict[Path, _Row] = {}
        self._run = ""
        self._spinner = Spinner("dots", style="cyan")
        self._live = Live(console=console, get_renderable=self._table, refresh_per_second=8) if live else None

    def __enter__(self) -> Progress:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live:
            self._live.stop()

    def __call__(self, event: Event) -> None:
        """Show an event; a table shows it when it is drawn again."""
        if isinstance(event, RunStarted):
            self._begin(event)
        elif isinstance(event, RunFinished) and not event.path:
            self._say(self._summary(event))
        elif event.path in self._rows:
            self._update(self._rows[event.path], event)

    def _begin(self, event: RunStarted) -> None:
        """Take in a workflow that begins to run, and draw it if a Conductor wrote it."""
        self._is_rooted = self._is_rooted or event.workflow == ROOT_WORKFLOW
        for step, name in enumerate(event.names or ()):
            self._names[*event.path, step] = name
        if not event.path:
            dead = f", {len(event.pruned)} left out because they cannot change the answer" if event.pruned else ""
            self._say(f"run {event.run_id}: {counted(len(event.workflow) - len(event.pruned), 'step')}{dead}")
        else:
            steps = zip(event.workflow, event.worker_names, strict=True)
            workers = {step.worker: name for step, name in steps if isinstance(step.worker, int)} | dict(self._workers)
            title = self._round(event.path)
            drawing = to_terminal(event.workflow, title=title, workers=workers, names=event.names)
            self._console.print("", drawing, sep="\n")
        for step, worker in enumerate(event.worker_names):
            path = (*event.path, step)
            row = self._rows[path] = _Row(self._step(path), worker)
            if step in event.pruned:
                row.state, row.note = "pruned", "cannot change the answer"

    def _update(self, row: _Row, event: Event) -> None:
        match event:
            case StepStarted():
                row.state, row.since = "running", time.monotonic()
                said = f"started: {event.worker_name}"
            case Delta():
                row.note, said = " ".join((row.note + event.text)[-_TAIL:].splitlines()), ""
            case StepFinished() if event.record.status == "failed" and len(event.path) == 1:
                row.state = row.note = said = "failed"  # the command ends with the reason
            case StepFinished():
                row.state = event.record.status
                row.note = said = self._closing(event.record)
            case Retried():
                row.note = said = f"tries again in {duration(event.wait_s)}: {event.reason}"
            case FellBack():
                row.note = said = f"goes to {event.worker_name}: {event.reason}"
            case _:
                return
        if said and not self._live:
            self._say(f"{row.title} {said}")

    def _say(self, line: str) -> None:
        if self._live:
            self._run = line
        else:
            self._console.print(Text(line), soft_wrap=True)

    def _round(self, path: Path) -> str:
        """What a workflow is called that runs inside a step."""
        *node, number = path
        inside = "" if self._is_rooted and len(node) == 1 else f"{self._step(tuple(node))}, "
        return f"{inside}round {number}"

    def _step(self, path: Path) -> str:
        """What a step is called: its name or its number, after the round that it is in."""
        *where, step = path
        name = self._names.get(path, f"step {step}")
        return f"{self._round(tuple(where))}, {name}" if where else name

    def _table(self) -> Group:
        table = Table.grid(padding=(0, 2), expand=True)  # else `ratio` is nothing, and a long note takes from the names
        for _ in range(3):
            table.add_column(no_wrap=True, min_width=1)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        for path, row in sorted(self._rows.items()):
            running = row.state == "running"
            note = f"{duration(time.monotonic() - row.since)}  {row.note}" if running else row.note
            table.add_row(
                self._spinner if running else _MARKS[row.state],
                Text("  " * (len(path) - 1) + row.title),
                Text(row.worker, style="dim"),
                Text(note, style="red" if row.state == "failed" else "dim"),
            )
        return Group(table, Text(self._run, style="dim"))

    def _closing(self, record: StepRecord) -> str:
        if record.status == "failed":
            return f"failed: {record.error}"
        parts = [duration(record.seconds or 0.0), *self._amounts(record.usage, record.list_usd)]
        parts += ["from the journal"] if record.replayed else []
        parts += [f"reply ended by: {record.finish}"] if record.finish not in ("stop", None) else []
        return f"{record.status}: {', '.join(parts)}"

    def _summary(self, event: RunFinished) -> str:
        run = event.run
        ending = "stopped by its budget" if run.status == "budget" else run.status
        parts = [f"{ending} in {duration(run.seconds or 0.0)}", *self._amounts(run.usage, run.paid_usd)]
        if run.paid_usd is None:
            known, unknown = known_costs(run)
            parts += [f"at least {dollars(known)}"] if known else []
            parts.append(f"price of {', '.join(unknown)} not known")
        return f"run {run.id}: {', '.join(parts)}"

    def _amounts(self, usage: Usage, usd: float | None) -> list[str]:
        """Tokens and dollars, as far as there are any."""
        tokens = [f"{usage.total_tokens:,} tokens"] if usage.total_tokens else []
        return [*tokens, f"{dollars(usd)}{' simulated' if self._simulated else ''}"] if usd else tokens
