"""The steps of a run with their places: every step of every workflow in it, those inside Conductors' steps too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.conductor.round_log import rounds_inside
from wfdsl.interpreter.record import Run, StepRecord, worker_title
from wfdsl.render.html import StepPath, dotted

_PATH: Final = re.compile(r"\d{1,6}(\.\d{1,6}){0,40}")


@dataclass(frozen=True, slots=True)
class Place:
    """A step and where it is."""

    path: StepPath
    """As in the run's record: the step's index, then for each level the round and the index inside."""
    run: Run
    """The run whose workflow has the step."""
    step: StepRecord

    @property
    def id(self) -> str:
        """The path as addresses have it."""
        return dotted(self.path)

    @property
    def name(self) -> str:
        """What the step is called."""
        return "Conductor" if self.run.workflow == ROOT_WORKFLOW else self.run.name_of(self.step.step)

    @property
    def worker(self) -> str:
        """Who was asked."""
        return self.step.worker_name or worker_title(self.step.worker, "")

    @property
    def subtask(self) -> str:
        """What the step was to do."""
        return self.run.workflow[self.step.step].subtask

    @property
    def seen(self) -> tuple[Place, ...]:
        """The steps whose replies its worker saw."""
        return tuple(self.beside(index) for index in self.run.workflow.sees(self.step.step))

    @property
    def seen_by(self) -> tuple[Place, ...]:
        """The steps whose workers saw its reply."""
        later = range(self.step.step + 1, len(self.run.workflow))
        return tuple(self.beside(index) for index in later if self.step.step in self.run.workflow.sees(index))

    def beside(self, index: int) -> Place:
        """Another step of the same workflow."""
        return Place((*self.path[:-1], index), self.run, self.run.steps[index])


def places(run: Run, at: StepPath = ()) -> Iterator[Place]:
    """All steps, each before those inside of it."""
    for step in run.steps:
        own = (*at, step.step)
        yield Place(own, run, step)
        for number, inside, _ in rounds_inside(step):
            yield from places(inside, (*own, number))


def place_at(run: Run, text: str) -> Place | None:
    """The step that an address names; None: there is none."""
    if not _PATH.fullmatch(text):
        return None
    path = tuple(map(int, text.split(".")))
    for end in range(0, len(path), 2):
        if path[end] >= len(run.steps):
            return None
        step = run.steps[path[end]]
        if end == len(path) - 1:
            return Place(path, run, step)
        found = next((inside for number, inside, _ in rounds_inside(step) if number == path[end + 1]), None)
        if found is None:
            return None
        run = found
    return None
