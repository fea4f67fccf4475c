"""Runs as panels: what happened to each step, and each workflow that a Conductor wrote.

The rounds of a Conductor come in order, and the runs inside Conductor nodes below the workflow that they are in. Only
values that are runs import this module: pictures of workflows need neither interpreter nor Conductor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeAlias

from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.conductor.round_log import RoundLog, remarks_on, rounds_inside, rounds_of
from wfdsl.interpreter.record import Run, StepRecord
from wfdsl.render.model import Note, Options, Panel, draw
from wfdsl.render.text import plain

Path: TypeAlias = tuple[int, ...]


def panel_of_value(run: Run, options: Options) -> Panel:
    """The picture of a run, with its file's title if it has one."""
    ending = f"run {run.id}: {ending_of(run)}"
    own = str(run.settings.get("origin", {}).get("title", ""))
    title = options.get("title") or (f"{own} · {ending}" if own else ending)
    return _panel_of_run(run, title, (), (), options.get("opened", ()))


def ending_of(run: Run) -> str:
    """How a run ended, in words."""
    return "stopped by its budget" if run.status == "budget" else run.status


def options_of_run(run: Run) -> Options:
    """Names, workers and what happened to each step of a run."""
    return {
        "names": run.names,
        "status": dict(enumerate(run.statuses())),
        "workers": {step.worker: step.worker_name for step in run.steps if step.worker_name},
        "conductors": {step.worker for step in run.steps if step.nested},
    }


def _panel_of_run(run: Run, title: str, notes: tuple[Note, ...], path: Path, opened: Collection[int] = ()) -> Panel:
    if run.error:
        notes = (*notes, Note(plain(run.error), is_bad=True))
    if run.workflow == ROOT_WORKFLOW:
        notes = (*notes, *(note for log in rounds_of([run]) for note in notes_on(log)))
    own = options_of_run(run)
    own["opened"] = [*opened, *(step.step for step in run.steps if step.nested)]
    return Panel(
        title=plain(title),
        notes=notes,
        drawing=draw(run.workflow, **own),
        inside={step.step: tuple(_round_panels(run, step, path)) for step in run.steps if step.nested},
        path=path,
        is_shell=run.workflow == ROOT_WORKFLOW,
    )


def _round_panels(run: Run, step: StepRecord, path: Path) -> Iterator[Panel]:
    """The panels of the rounds inside a step of the workflow at a path."""
    where = "" if run.workflow == ROOT_WORKFLOW else f"{run.name_of(step.step)}, "
    for number, nested, logs in rounds_inside(step):
        notes = tuple(note for log in logs[:1] for note in notes_on(log))
        title = f"{where}round {number}: {ending_of(nested)}"
        yield _panel_of_run(nested, title, notes, (*path, step.step, number))
        for log in logs[1:]:
            yield Panel(title=plain(f"{where}round {log.round}: {RESULTS[log.result]}"), notes=tuple(notes_on(log)))


RESULTS = {
    "ran": "ran",
    "ran-default": "ran the default workflow",
    "kept": "answer kept (empty revision)",
    "kept-over-limit": "answer kept (revision over the limit of calls)",
    "kept-invalid": "answer kept (revision not valid)",
    "kept-failed": "answer kept (no completion)",
    "failed": "no workflow",
}


def notes_on(log: RoundLog) -> Iterator[Note]:
    """What was unusual in a round, where the title does not say it."""
    if log.result != "kept" or log.reasks:
        yield from (Note(plain(text), is_bad=log.result == "failed") for text in remarks_on(log))
