"""One step of a run asked again from its page: what it would take, and the new run once that is agreed to.

The price is shown before anything is paid, and the new run may spend no more than was shown. A price that changes
between the page and its button is shown again instead of paid. For a step of a Conductor's round, the price contains
the rounds after it: the Conductor is asked for them again, since the answer that it saw has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.estimate import SolveEstimate, estimate_solve
from wfdsl.conductor.named import conductor_of_run
from wfdsl.conductor.policy import ROOT_WORKFLOW, resume_policy
from wfdsl.errors import UsageError, WfdslError
from wfdsl.experiment import Experiment, pool_of_run
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.events import Event, Listener
from wfdsl.interpreter.execution import require_runnable
from wfdsl.interpreter.journal_reading import request_of
from wfdsl.interpreter.record import Run, RunEnded
from wfdsl.interpreter.redoing import Redo, prepare_redo
from wfdsl.interpreter.running import resume
from wfdsl.interpreter.worker_profile import RunEstimate
from wfdsl.viewer.access import form_token, sent_fields
from wfdsl.viewer.page import page, price_field
from wfdsl.viewer.places import Place
from wfdsl.viewer.runs import place_in, run_in
from wfdsl.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked again, and with whom."""

    place: Place
    pool: Pool
    prepared: Redo
    estimate: RunEstimate
    """Of the steps that are asked again."""
    conductor: Conductor | None = None
    """Who wrote the round that the step is in; None: the run has no rounds."""
    later: SolveEstimate | None = None
    """Of the rounds after it; None: the run has no rounds."""

    @property
    def usd(self) -> float | None:
        """US dollars at most; None if a price is not known."""
        parts = [self.estimate.usd, 0.0 if self.later is None else self.later.usd]
        return None if None in parts else sum(filter(None, parts))

    @property
    def calls(self) -> int:
        """Calls at most, without retries."""
        return self.estimate.calls + (0 if self.later is None else self.later.calls)


class Redoing:
    """Starts runs in which a step is asked again, and knows what became of these and of others that pages start."""

    def __init__(self, journal: Path, experiment: Experiment) -> None:
        """The experiment's pool replaces the pools of all runs; without one, each run's own is found by its name.
        Its options of a Conductor, where they are not the defaults, replace the run's.
        """
        self.journal = journal
        """Where runs are kept."""
        self._experiment = experiment
        self._tasks: set[asyncio.Task[Run]] = set()
        self.problems: dict[str, str] = {}
        """Why runs could not be started, by their ids."""
        self.events: dict[str, list[Event]] = {}
        """What has happened in the runs in progress, by their ids."""

    def prepare(self, run: Run, place: Place, form: Mapping[str, str]) -> _Asked:
        """What asking again takes; nothing is written.

        Raises:
            UsageError: the pool, the worker, the step or the Conductor cannot be used.
            WorkflowError: the Conductor's default workflow is not valid.
        """
        request = request_of(self.journal, run.id)
        pool = self._experiment.pool or pool_of_run(request)
        if run.workflow == ROOT_WORKFLOW:
            return self._prepare_round(run, place, request, pool)
        old = place.run.workflow[place.step.step]
        subtask = form.get("subtask", "").replace("\r\n", "\n")
        worker = form.get("worker", "")
        if worker and (not worker.isdecimal() or int(worker) not in pool.indices):
            raise UsageError(f"pool {pool.name!r} has no worker {worker!r}")
        changed_subtask = subtask if subtask.strip() and subtask != old.subtask.replace("\r\n", "\n") else None
        changed_worker = int(worker) if worker and int(worker) != old.worker else None
        prepared = prepare_redo(self.journal, run.id, place.step.step, subtask=changed_subtask, worker=changed_worker)
        require_runnable(prepared.workflow, pool, prepared.request.config.max_depth)
        return _Asked(place, pool, prepared, prepared.estimate(pool))

    def _prepare_round(self, run: Run, place: Place, request: RunRequest, pool: Pool) -> _Asked:
        config = self._experiment.conductor
        if config.model is None and "solve" not in request.origin:
            raise UsageError(
                f"the Conductor of run {run.id} was not found by a name: name it as conductor.model in a file, and "
                "start the viewer with --config FILE"
            )
        conductor, number = conductor_of_run(request, config, pool), place.path[1]
        prepared = prepare_redo(self.journal, run.id, place.step.step, round_number=number)
        require_runnable(prepared.workflow, pool, request.config.max_depth)
        question_for = request.config.question_for
        later = estimate_solve(conductor, request.question, pool, question_for=question_for, first_round=number + 1)
        return _Asked(place, pool, prepared, prepared.estimate(pool), conductor, later)

    async def start(self, asked: _Asked) -> str:
        """Start the new run, which may spend what was shown; gives its id."""
        new_id = await run_in_threadpool(asked.prepared.start, self.journal)
        budget = None if asked.usd is None else Budget(usd=asked.usd)
        hear = self.listener(new_id)
        if asked.conductor is None:
            work = resume(new_id, asked.pool, journal=self.journal, budget=budget, on_event=hear)
        else:
            request = await run_in_threadpool(request_of, self.journal, new_id)
            options = {"journal": self.journal, "budget": budget, "on_event": hear}
            work = resume_policy(asked.conductor, new_id, request, asked.pool, **options)
        self.follow(new_id, work)
        return new_id

    def listener(self, run_id: str) -> Listener:
        """Keeps what happens in a run."""
        return self.events.setdefault(run_id, []).append

    def follow(self, run_id: str, work: Coroutine[Any, Any, Run]) -> asyncio.Task[Run]:
        """Run something in the background, and keep why it could not be started."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._over(run_id, done))
        return task

    def _over(self, run_id: str, task: asyncio.Task[Run]) -> None:
        self._tasks.discard(task)
        self.events.pop(run_id, None)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, WfdslError) and not isinstance(error, RunEnded):
            self.problems[run_id] = str(error)
        elif error is not None and not isinstance(error, RunEnded):
            raise error


def can_redo(run: Run, place: Place) -> bool:
    """Whether the step is one of the outermost workflow, or of a Conductor's round, and was not left out."""
    return len(place.path) == (3 if run.workflow == ROOT_WORKFLOW else 1) and place.step.status != "pruned"


async def redo_step(request: Request) -> Response:
    """The form with the price; sent by POST, the start of the new run."""
    _, run = await run_in_threadpool(run_in, request)
    place = place_in(request, run)
    if not can_redo(run, place):
        raise HTTPException(404, "Only steps of the outermost workflow, or of a Conductor's round, can be asked again.")
    redoing: Redoing = request.app.state.redoing
    form = await sent_fields(request) if request.method == "POST" else dict(request.query_params)
    asked = await run_in_threadpool(redoing.prepare, run, place, form)
    if request.method == "POST" and form.get("price", "none") == price_field(asked.usd):
        new_id = await redoing.start(asked)
        return RedirectResponse(f"{request.scope['root_path']}/runs/{quote(new_id)}", 303)
    return _form(request, run, asked, is_changed=request.method == "POST")


def _form(request: Request, run: Run, asked: _Asked, *, is_changed: bool) -> Response:
    workflow, names = asked.prepared.workflow, asked.prepared.names
    step = workflow[asked.place.step.step]
    return page(
        request,
        "redo.html",
        status=409 if is_changed else 200,
        run=run,
        place=asked.place,
        step=step,
        workers=[(index, asked.pool.entry(index).name) for index in asked.pool.indices],
        again=[names[each.step] if names else f"step {each.step}" for each in asked.estimate.steps],
        asked=asked,
        token=form_token(request.app.state.key),
        is_changed=is_changed,
    )
