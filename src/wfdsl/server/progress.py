"""What a client sees while a run is in progress: a line as each step starts and ends, and the answer as it comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wfdsl.interpreter.conductor_node import OWN_STEP
from wfdsl.interpreter.events import (
    CompletionFinished,
    CompletionStarted,
    Delta,
    Event,
    FellBack,
    Path,
    Retried,
    RunStarted,
    StepFinished,
    StepStarted,
)
from wfdsl.interpreter.record import Run
from wfdsl.render.text import counted


class Said(NamedTuple):
    """A piece of the reasoning, or of the answer."""

    text: str
    reasoning: bool
    choice: int = 0
    """Which of several answers to one request it belongs to."""


class Progress:
    """Turns the events of a run into reasoning and answer.

    The answer is shown while it is written only if it cannot be revised: it is that of a workflow file's last step, or
    of the last step of a Conductor's last round.
    """

    def __init__(self, last_round: int | None, before: Run | None = None) -> None:
        """`before` is the run as an earlier turn left it; of what was over then, nothing is said."""
        self._last_round = last_round
        self._over = frozenset(_over(before, ())) if before is not None else frozenset()
        self._runs: dict[Path, RunStarted] = {}
        self._answering: Path | None = None

    def said(self, event: Event) -> Iterator[Said]:
        """What an event adds."""
        if isinstance(event, Delta):
            if event.path == self._answering:
                yield Said(event.text, reasoning=False)
            return
        line = self._line(event)
        if line and event.path not in self._over:
            yield Said(f"{line}\n", reasoning=True)

    def _line(self, event: Event) -> str:
        match event:
            case RunStarted():
                return self._begun(event)
            case StepStarted() if not event.conductor:
                return f"{self._title(event.path)}: worker {event.worker_name}"
            case StepFinished() if event.path[:-1] in self._runs and not event.record.nested:
                took = "" if event.record.seconds is None else f" after {event.record.seconds:.1f} s"
                why = f": {event.record.error}" if event.record.error else ""
                return f"{self._title(event.path)}: {event.record.status}{took}{why}"
            case CompletionStarted():
                return f"round {event.path[-2]}: {event.worker_name} writes the workflow"
            case CompletionFinished() if event.error:
                return f"round {event.path[-2]}: the Conductor failed: {event.error}"
            case Retried():
                return f"{self._title(event.path)}: tried again in {event.wait_s:.0f} s: {event.reason}"
            case FellBack():
                return f"{self._title(event.path)}: worker {event.worker_name} is asked instead: {event.reason}"
        return ""

    def _begun(self, event: RunStarted) -> str:
        self._runs[event.path] = event
        count = len(event.workflow)
        if event.path == (() if self._last_round is None else (0, self._last_round)):
            self._answering = (*event.path, count - 1)
        if not event.path:
            return ""
        return f"round {event.path[-1]}: a workflow of {counted(count, 'step')}"

    def _title(self, path: Path) -> str:
        run = self._runs.get(path[:-1])
        if run is None or path[-1] < 0:
            return "the Conductor"
        inside = "  " * (len(path) // 2 - (self._last_round is not None))
        name = f" ({run.names[path[-1]]})" if run.names else ""
        return f"{inside}step {path[-1] + 1} of {len(run.workflow)}{name}"


def _over(run: Run, path: Path) -> Iterator[Path]:
    """The paths of what was over in a run that is suspended: steps that are done, and the beginnings of nested runs."""
    for step in run.steps:
        at = (*path, step.step)
        if step.status == "done":
            yield at
        for number, nested in enumerate(step.nested):
            yield (*at, number)
            yield (*at, number, OWN_STEP)
            yield from _over(nested, (*at, number))
