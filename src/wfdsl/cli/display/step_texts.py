"""A run with the text of every step (`--steps`): each workflow drawn, then what each step was told and replied."""

from __future__ import annotations

from typing import TextIO

from wfdsl.cli.display.live import PlainDisplay
from wfdsl.cli.display.rounds import Rounds
from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.interpreter.events import Event, Path, RunStarted, StepFinished, StepStarted


class StepTexts(PlainDisplay):
    """Plain lines, with each workflow drawn, and what each step was told and replied (`--steps`)."""

    def __init__(self, out: TextIO, rounds: Rounds, *, simulated: bool = False) -> None:
        super().__init__(out, rounds, simulated=simulated)
        self._subtasks: dict[Path, str] = {}

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event:
            case RunStarted():
                super().__call__(event)
                self._subtasks |= {(*event.path, step): each.subtask for step, each in enumerate(event.workflow)}
            case StepStarted():
                pass
            case StepFinished() if not event.record.nested:
                self._print_step(event)
            case _:
                super().__call__(event)

    def draws(self, event: RunStarted) -> bool:
        """Whether a workflow is drawn: all but the one step that stands for a Conductor."""
        return event.workflow != ROOT_WORKFLOW

    def _print_step(self, event: StepFinished) -> None:
        record = event.record
        lines = [f"\n{self._rounds.label(record.worker, record.worker_name)}: {self.line(event)}"]
        for title, text in (("told", self._subtasks.get(event.path, "")), ("said", record.response or record.error)):
            lines.append(f"  {title}: " + text.strip().replace("\n", "\n        "))
        print("\n".join(lines), file=self._out, flush=True)
