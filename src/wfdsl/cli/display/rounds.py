"""The workflows that Conductors write while a run is shown: their drawings, and what their steps are called."""

from __future__ import annotations

from collections.abc import Mapping

from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.interpreter.events import Path, RunStarted
from wfdsl.pictures import to_terminal
from wfdsl.render.terminal import TerminalDrawing


class Rounds:
    """What is known so far of the workflows of a run."""

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
        workers = {worker: self.label(worker, name) for worker, name in names.items()}
        title = self.round(event.path) if event.path else ""
        return to_terminal(event.workflow, title=title, workers=workers, names=event.names)

    def label(self, worker: int, name: str) -> str:
        """What to call a worker."""
        return self._workers.get(worker, name)

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
