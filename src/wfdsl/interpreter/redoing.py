"""Redo one step: a run is copied in the journal, without the replies of the step and of what depends on it.

The copy is then resumed like any run, so that only those calls are made. The old run stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wfdsl.errors import UsageError
from wfdsl.graph import graph_of
from wfdsl.interpreter.conductor_node import OWN_STEP
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.events import Path as CallPath
from wfdsl.interpreter.execution import require_runnable
from wfdsl.interpreter.journal import Attempt, Journal
from wfdsl.interpreter.journal_reading import add_copy, attempts_of, request_of, run_of
from wfdsl.interpreter.record import Run
from wfdsl.interpreter.running import new_run_id, resume
from wfdsl.interpreter.worker_profile import RunEstimate, estimate
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import WorkerPool


@dataclass(frozen=True, slots=True)
class Redo:
    """What it takes to redo a step, before anything is written or paid for."""

    run_id: str
    """The run that has the step; it stays as it is."""
    request: RunRequest
    """What the new run will be asked: the same, except for what was changed of the step, and where it comes from."""
    workflow: Workflow
    """The workflow that the step is in."""
    names: tuple[str, ...] | None
    """What its steps are called."""
    previous: tuple[str, str] | None
    """The final (subtask, response) of the round before it."""
    kept: tuple[Attempt, ...]
    """The replies that the new run takes over."""
    responses: Mapping[int, str]
    """The responses that the other steps of the workflow keep; a Conductor node's is made of several replies."""

    def estimate(self, pool: WorkerPool) -> RunEstimate:
        """What the workflow's steps without a reply are sent, and the most that they cost; later rounds apart."""
        config = self.request.config
        return estimate(
            self.workflow,
            self.request.question,
            pool,
            question_for=config.question_for,
            run_dead_steps=config.run_dead_steps,
            previous=self.previous,
            replies=self.responses,
        )

    def start(self, journal: Path) -> str:
        """Write the new run into the journal; gives its id, under which it is resumed.

        Raises:
            JournalFailure: it cannot be written.
        """
        new_id = new_run_id()
        add_copy(journal, new_id, replace(self.request, sample_id=new_id), self.run_id, self.kept)
        return new_id


def prepare_redo(
    journal: Path,
    run_id: str,
    step: int | str,
    *,
    round_number: int | None = None,
    subtask: str | None = None,
    worker: int | None = None,
) -> Redo:
    """Work out what redoing a step takes; nothing is written.

    Args:
        journal: The journal's path.
        run_id: The run.
        step: The step's index or name.
        round_number: The Conductor's round that it is in, from 0, for a run of a Conductor.
        subtask: What the step is to do instead.
        worker: The index of the worker that is to do it.

    Raises:
        UsageError: the journal has no such run, or the run no such step.
    """
    request, run = request_of(journal, run_id), run_of(journal, run_id)
    if run.status == "running":
        raise UsageError(f"run {run_id} is still running; wait until it has finished, or stop it")
    inside = _inside(run, round_number)
    index = _index(inside, step)
    workflow = inside.workflow
    changes: dict[str, Any] = {"subtask": subtask, "worker": worker}
    changes = {name: value for name, value in changes.items() if value is not None}
    if changes:
        if round_number is not None:
            raise UsageError(
                "a Conductor wrote the steps of its rounds: leave subtask and worker out, or run the round's workflow "
                "as a file"
            )
        steps = [replace(each, **changes) if number == index else each for number, each in enumerate(workflow)]
        workflow = Workflow(tuple(steps))
        request = replace(request, workflow=workflow)
    if index in graph_of(workflow).schedule(run_dead_steps=request.config.run_dead_steps).pruned:
        raise UsageError(f"{inside.name_of(index)} cannot change the answer, so it was left out: redo another step")
    again = {index}  # the step, and all that see it directly or through others
    for later in range(index + 1, len(workflow)):
        if again.intersection(workflow.sees(later)):
            again.add(later)
    at: CallPath = ()
    origin, previous = {"from": run_id, "step": str(index)}, request.previous
    if round_number is not None:
        origin["round"], at = str(round_number), (0, round_number)
        before = run.steps[0].nested[round_number - 1]
        previous = (before.workflow[-1].subtask, before.answer or "") if round_number else None
    count = len(at)

    def is_kept(path: CallPath) -> bool:
        return path[:count] < at or (path[:count] == at and path[count] not in again)

    attempts = attempts_of(journal, run_id)
    kept = tuple(each for each in attempts if each.status == "finished" and is_kept(each.path))
    found = {each.path[count] for each in kept if each.path[:count] == at}
    return Redo(
        run_id=run_id,
        request=replace(request, origin={**request.origin, **origin}),
        workflow=workflow,
        names=inside.names,
        previous=previous,
        kept=kept,
        responses={
            each.step: each.response for each in inside.steps if each.step in found and each.response is not None
        },
    )


async def redo(
    run_id: str,
    step: int | str,
    pool: WorkerPool,
    *,
    journal: Journal | str | Path,
    subtask: str | None = None,
    worker: int | None = None,
    **options: Any,
) -> Run:
    """Ask one step of a run again, and the steps that depend on it, in a new run; all other replies are kept.

    The kept replies cost nothing, and the run that they come from stays as it is. `step`, `subtask` and `worker` are as
    for `prepare_redo`, `options` as for `resume`; a budget counts from zero. Of a Conductor's run, prepare a new run
    with `prepare_redo(..., round_number=N).start(path)`, then solve the question again with that `run_id`.

    Raises:
        RunFailed, BudgetExhausted: as `run` does.
        UsageError: the journal has no such run, the run no such step, or as `resume` does.
    """
    path = journal.path if isinstance(journal, Journal) else Path(journal)
    prepared = prepare_redo(path, run_id, step, subtask=subtask, worker=worker)
    require_runnable(prepared.workflow, pool, prepared.request.config.max_depth)
    return await resume(prepared.start(path), pool, journal=journal, **options)


def _inside(run: Run, round_number: int | None) -> Run:
    """The run that has the step: a Conductor's rounds are nested in its only step."""
    by_conductor = "solve" in run.settings.get("origin", {}) or run.workflow.steps[0].worker == OWN_STEP
    if round_number is None and by_conductor:
        raise UsageError(f"run {run.id} is a Conductor's: say in which round the step is")
    if round_number is None:
        return run
    if not by_conductor:
        raise UsageError(f"run {run.id} has no rounds, since no Conductor wrote it: leave the round out")
    rounds = run.steps[0].nested
    if round_number >= len(rounds):
        raise UsageError(f"run {run.id} has no round {round_number}: it has {len(rounds)}, from round 0")
    return rounds[round_number]


def _index(run: Run, step: int | str) -> int:
    names = run.names or ()
    if isinstance(step, str) and step in names:
        return names.index(step)
    count = len(run.workflow)
    if str(step).isdecimal() and int(step) < count:
        return int(step)
    known = ", ".join(names) or f"0 to {count - 1}"
    raise UsageError(f"run {run.id} has no step {step!r}: its steps are {known}")
