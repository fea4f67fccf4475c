"""A run with the text of every step (`--steps`): each workflow drawn, then what each step was told and replied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from wfdsl.cli.consoles import stderr_console
from wfdsl.cli.live import PlainDisplay
from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.interpreter.events import Event, Path, RunStarted, StepFinished, StepStarted
from wfdsl.pictures import to_terminal


class StepTexts(PlainDisplay):
    """Plain lines, with each workflow drawn, and what each step was told and replied (`--steps`)."""

    def __init__(self, out: TextIO, workers: Mapping[int, str], *, simulated: bool = False) -> None:
        """`workers` says what to call the worker with an index."""
        super().__init__(out, simulated=simulated)
        self._workers = workers
        self._subtasks: dict[Path, str] = {}

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event:
            case RunStarted() if event.workflow != ROOT_WORKFLOW:
                super().__call__(event)
                self._subtasks |= {(*event.path, step): each.subtask for step, each in enumerate(event.workflow)}
                stderr_console().print(to_terminal(event.workflow, names=event.names, workers=self._workers))
            case StepStarted():
                pass
            case StepFinished() if not event.record.nested:
                self._print_step(event)
            case _:
                super().__call__(event)

    def _print_step(self, event: StepFinished) -> None:
        record = event.record
        lines = [f"\n{self._workers.get(record.worker, record.worker_name)}: {self.line(event)}"]
        for title, text in (("told", self._subtasks.get(event.path, "")), ("said", record.response or record.error)):
            lines.append(f"  {title}: " + text.strip().replace("\n", "\n        "))
        print("\n".join(lines), file=self._out, flush=True)
