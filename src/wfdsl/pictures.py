"""Pictures of workflows and runs: terminal, Mermaid, DOT, SVG and JSON, of whatever has a workflow in it.

A picture of a run shows what happened to each step, and each workflow that a Conductor wrote in it: the rounds in
order, and the runs inside Conductor nodes below the workflow that they are in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias, Unpack

from wfdsl.api import Checked
from wfdsl.conductor.policy import ROOT_WORKFLOW, Solution
from wfdsl.conductor.round_log import RoundLog, remarks_on, rounds_inside, rounds_of
from wfdsl.errors import UsageError
from wfdsl.interpreter.record import Run, StepRecord, shortened
from wfdsl.language.workflow import Workflow
from wfdsl.render.dot import dot_of
from wfdsl.render.mermaid import mermaid_of
from wfdsl.render.model import Note, Options, Panel, draw, json_of, panel_of
from wfdsl.render.svg import svg_of
from wfdsl.render.text import plain

if TYPE_CHECKING:  # start-up: rich is only needed for terminals
    from wfdsl.render.terminal import TerminalDrawing

_NO_OPTIONS: Options = {}
Drawable: TypeAlias = Workflow | Checked | Run | Solution


def to_svg(value: Drawable, **options: Unpack[Options]) -> str:
    """Draw a workflow, a checked text, a run or a solution as a complete SVG document.

    `names`, `title`, `description`, `workers` (index to name), `status` and `conductors` say what a workflow itself
    may not hold; runs and solutions know them, and so does a workflow that was loaded from a file.
    `all_copies=True` draws each copy of a step by itself, `opened` those of the steps with these indices.

    Raises:
        ValueError: `names` has not one name for each step.
        UsageError: a checked text holds no workflow, or the value is something else, such as a path.
    """
    return svg_of(picture_of(value, **options))


def to_mermaid(value: Drawable, **options: Unpack[Options]) -> str:
    """Write a picture as a Mermaid flowchart, for Markdown pages. Arguments and errors as for `to_svg`."""
    return mermaid_of(picture_of(value, **options))


def to_dot(value: Drawable, **options: Unpack[Options]) -> str:
    """Write a picture as a Graphviz DOT graph. Arguments and errors as for `to_svg`."""
    return dot_of(picture_of(value, **options))


def to_terminal(value: Drawable, **options: Unpack[Options]) -> TerminalDrawing:
    """Draw for a terminal: print it for plain text, or with a rich console for colour.

    Arguments and errors as for `to_svg`.
    """
    from wfdsl.render.terminal import TerminalDrawing  # noqa: PLC0415  (start-up: rich)

    return TerminalDrawing(picture_of(value, **options))


def to_json(value: Drawable, **options: Unpack[Options]) -> str:
    """Write a picture as one JSON object, as `wfdsl show --format json` does. Arguments and errors as for `to_svg`."""
    return json_of(picture_of(value, **options))


def picture_of(value: Drawable, **options: Unpack[Options]) -> Panel:
    """What every format shows. Arguments and errors as for `to_svg`."""
    if isinstance(value, Solution):
        value = value.run
    if isinstance(value, Run):
        title = options.get("title") or f"run {value.id}: {ending_of(value)}"
        return _panel_of_run(value, title, (), options)
    if isinstance(value, Checked):
        if value.workflow is None:
            raise UsageError(f"{value.source.name} holds no valid workflow to draw; see its diagnostics")
        value = value.workflow
    if not isinstance(value, Workflow):
        wanted = "a Workflow, a Checked, a Run or a Solution can be drawn"
        raise UsageError(f"{wanted} (got {shortened(str(value))}): write wfdsl.load(FILE) or wfdsl.parse(TEXT)")
    own = _options_of_labels(value)
    own.update(options)
    return panel_of(value, **own)


def _options_of_labels(workflow: Workflow) -> Options:
    labels = workflow.labels
    if labels is None:
        return {}
    return {
        "names": labels.names,
        "title": labels.title,
        "description": labels.description,
        "workers": labels.workers,
    }


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


def _panel_of_run(run: Run, title: str, notes: tuple[Note, ...], options: Options) -> Panel:
    if run.error:
        notes = (*notes, Note(plain(run.error), is_bad=True))
    if run.workflow == ROOT_WORKFLOW:
        notes = (*notes, *(note for log in rounds_of([run]) for note in notes_on(log)))
    own = options_of_run(run)
    own["all_copies"] = options.get("all_copies", False)
    return Panel(
        title=plain(title),
        notes=notes,
        drawing=draw(run.workflow, **own),
        inside={step.step: tuple(round_panels(run, step, options)) for step in run.steps if step.nested},
        is_shell=run.workflow == ROOT_WORKFLOW,
    )


def round_panels(run: Run, step: StepRecord, options: Options = _NO_OPTIONS) -> Iterator[Panel]:
    """The panels of the rounds inside a step."""
    where = "" if run.workflow == ROOT_WORKFLOW else f"{run.name_of(step.step)}, "
    for number, nested, logs in rounds_inside(step):
        notes = tuple(note for log in logs[:1] for note in notes_on(log))
        yield _panel_of_run(nested, f"{where}round {number}: {ending_of(nested)}", notes, options)
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
