"""One step of a run asked again from its page: what it would take, and the new run once that is agreed to.

The price is shown before anything is paid, and the new run may spend no more than was shown. A price that changes
between the page and its button is shown again instead of paid.
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

from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.errors import UsageError, WfdslError
from wfdsl.experiment import pool_of_run
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.estimate import RunEstimate
from wfdsl.interpreter.execution import require_runnable
from wfdsl.interpreter.journal_reading import request_of
from wfdsl.interpreter.record import Run, RunEnded
from wfdsl.interpreter.redoing import Redo, prepare_redo
from wfdsl.interpreter.running import resume
from wfdsl.viewer.access import form_token
from wfdsl.viewer.forms import price_field, rounded_up, sent_fields
from wfdsl.viewer.page import page
from wfdsl.viewer.places import Place
from wfdsl.viewer.runs import place_in, run_in
from wfdsl.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked again, and with whom."""

    place: Place
    subtask: str | None
    worker: int | None
    pool: Pool
    prepared: Redo
    estimate: RunEstimate

    @property
    def price(self) -> str:
        """The price as forms carry it; empty if it is not known."""
        return price_field(self.estimate.usd)


class Redoing:
    """Starts runs in which a step is asked again, and knows what became of these and of others that pages start."""

    def __init__(self, journal: Path, pool: Pool | None) -> None:
        """`pool` replaces the pools of all runs; without it, each run's own is found again by its name."""
        self.journal = journal
        """Where runs are kept."""
        self._pool = pool
        self._tasks: set[asyncio.Task[Run]] = set()
        self.problems: dict[str, str] = {}
        """Why runs could not be started, by their ids."""

    def prepare(self, run: Run, place: Place, form: Mapping[str, str]) -> _Asked:
        """What asking again takes; nothing is written.

        Raises:
            UsageError: the pool, the worker or the step cannot be used.
        """
        pool = self._pool or pool_of_run(request_of(self.journal, run.id))
        old = place.run.workflow[place.step.step]
        subtask = form.get("subtask", "").replace("\r\n", "\n")
        worker = form.get("worker", "")
        if worker and (not worker.isdecimal() or int(worker) not in pool.indices):
            raise UsageError(f"pool {pool.name!r} has no worker {worker!r}")
        changed_subtask = subtask if subtask.strip() and subtask != old.subtask.replace("\r\n", "\n") else None
        changed_worker = int(worker) if worker and int(worker) != old.worker else None
        prepared = prepare_redo(self.journal, run.id, place.step.step, subtask=changed_subtask, worker=changed_worker)
        require_runnable(prepared.workflow, pool, prepared.request.config.max_depth)
        return _Asked(place, changed_subtask, changed_worker, pool, prepared, prepared.estimate(pool))

    async def start(self, asked: _Asked) -> str:
        """Start the new run, which may spend what was shown; gives its id."""
        new_id = await run_in_threadpool(asked.prepared.start, self.journal)
        usd = asked.estimate.usd
        budget = None if usd is None else Budget(usd=usd)
        self.follow(new_id, resume(new_id, asked.pool, journal=self.journal, budget=budget))
        return new_id

    def follow(self, run_id: str, work: Coroutine[Any, Any, Run]) -> asyncio.Task[Run]:
        """Run something in the background, and keep why it could not be started."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._over(run_id, done))
        return task

    def _over(self, run_id: str, task: asyncio.Task[Run]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, WfdslError) and not isinstance(error, RunEnded):
            self.problems[run_id] = str(error)
        elif error is not None and not isinstance(error, RunEnded):
            raise error


async def redo_step(request: Request) -> Response:
    """The form with the price; sent by POST, the start of the new run."""
    _, run = await run_in_threadpool(run_in, request)
    place = place_in(request, run)
    if run.workflow == ROOT_WORKFLOW and len(place.path) == 3:
        return await run_in_threadpool(_of_a_round, request, run, place)
    if len(place.path) != 1 or place.is_root:
        raise HTTPException(404, "Only steps of the outermost workflow can be asked again.")
    redoing: Redoing = request.app.state.redoing
    form = await sent_fields(request) if request.method == "POST" else dict(request.query_params)
    asked = await run_in_threadpool(redoing.prepare, run, place, form)
    if request.method == "POST" and form.get("price", "none") == asked.price:
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
        estimate=asked.estimate,
        price=asked.price,
        at_most=rounded_up(asked.estimate.usd),
        kept=len(asked.prepared.kept),
        token=form_token(request.app.state.key),
        is_changed=is_changed,
    )


def _of_a_round(request: Request, run: Run, place: Place) -> Response:
    """A Conductor's options are not in the journal, so its rounds are continued by the command."""
    command = f"wfdsl solve --from {run.id} --round {place.path[1]} --step {place.step.step}"
    return page(request, "redo_round.html", run=run, place=place, command=command)
