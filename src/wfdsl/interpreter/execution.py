"""Execution of one workflow: each step starts as soon as the steps that it sees have finished.

Steps become calls, replies become records, and the end is a run or an error with one. Each step is a task with context
variables of its own: what its worker sets, neither other steps nor the caller see. The task group ends with nothing
left running, whatever happens.
"""

from __future__ import annotations

import asyncio
import math
import platform
import sys
from contextvars import copy_context
from dataclasses import replace
from typing import Any, cast

from wfdsl._version import __version__
from wfdsl.errors import JournalFailure, UsageError, WfdslError
from wfdsl.graph import Schedule, graph_of
from wfdsl.interpreter.budget import BudgetSpent, BudgetTracker
from wfdsl.interpreter.call import CallPipeline, Environment, Pipelines, StepCall, StepSuspended, ask_with_tools
from wfdsl.interpreter.conductor_node import ConductorCall, Level, sampling_settings
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.events import Path, RunFinished, RunStarted, StepFinished, StepStarted, error_type_of, unheard
from wfdsl.interpreter.record import (
    BudgetExhausted,
    Run,
    RunFailed,
    RunSuspended,
    StepRecord,
    as_unicode,
    worker_title,
)
from wfdsl.interpreter.tools import pending_calls
from wfdsl.interpreter.worker_profile import require_priced
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Call, RunStatus, StepState, WorkerFailure, WorkerPool

CAUSES = (WorkerFailure, BudgetSpent, JournalFailure, RunFailed, BudgetExhausted)
"""What the outside world can do to a step. Anything else is a mistake in a program, and is not caught."""
_VERSIONS = {"wfdsl": __version__, "python": platform.python_version()}


def require_runnable(workflow: Workflow, pool: WorkerPool, depth: int) -> None:
    """Refuse a workflow that cannot run on a pool, before anything is paid for.

    Raises:
        UsageError: it has no steps, or one that cannot be run; or a step's worker is not in the pool, or is a Conductor
            where `depth` is used up.
    """
    if not workflow.steps:
        raise UsageError("an empty workflow has no answer; it needs at least one step")
    if not isinstance(workflow.steps, tuple):
        raise UsageError("the steps of a Workflow must be a tuple; Workflow.from_lists takes lists")
    indices, conductors = pool.indices, getattr(pool, "conductors", ()) if depth <= 0 else ()
    for index, step in enumerate(workflow.steps):
        _check_step(index, step)
        if step.worker in conductors:
            raise UsageError(f"step {index} asks a Conductor, and the recursion depth is used up; increase max_depth")
        if type(step.worker) is not int or step.worker not in indices:
            offered = ", ".join(map(str, indices)) or "none"
            raise UsageError(
                f"step {index} asks worker {step.worker!r}, which pool {pool.name!r} does not have "
                f"(workers: {offered}); check the workflow against the pool that it runs on"
            )


def require_ready(schedule: Schedule, pipelines: Pipelines, budget: BudgetTracker | None) -> None:
    """Build every worker that may be asked, and under a budget in dollars refuse those without prices.

    Both before the first call is made: a missing key is found before anything is paid for.
    """
    for worker in cast(tuple[int, ...], schedule.workers):
        pipeline = pipelines[worker]
        if budget is not None:
            require_priced(pipeline.profiles, budget.budget)
        if pipeline.profile.conductor:  # it may ask any worker of the pool
            for other in pipelines.pool.indices:
                pipelines[other]


def _check_step(index: int, step: Any) -> None:
    if not isinstance(step, Step):
        raise UsageError(f"step {index} must be a Step (got {step!r}); Workflow.from_lists takes three lists")
    subtask: Any = step.subtask
    if not isinstance(subtask, str) or not subtask.strip():
        raise UsageError(f"the subtask of step {index} must be a text that is not blank (got {subtask!r})")
    access: Any = step.access
    if access in (ALL, ()):
        return
    earlier = isinstance(access, tuple) and all(isinstance(seen, int) and 0 <= seen < index for seen in access)
    if not (earlier and list(access) == sorted(set(access))):
        raise UsageError(
            f'the access of step {index} must be "all" or a sorted tuple of earlier steps (got {access!r}); '
            "Workflow.from_lists takes three lists"
        )


async def run_workflow(request: RunRequest, environment: Environment, level: Level, prefix: Path) -> Run:
    """Run a workflow that has not been checked against the level's pool, as those inside a Conductor node.

    Raises:
        RunFailed: a step failed for good.
        BudgetExhausted: a step could not be paid for.
        UsageError: it cannot run on the pool, or the budget cannot be enforced with the workers that it asks.
    """
    require_runnable(request.workflow, level.pool, level.depth)
    return await Execution(request, environment, level, prefix).finish()


class Execution:
    """The state of one run. A step's task is started exactly when its counter in `_missing` reaches zero."""

    def __init__(self, request: RunRequest, environment: Environment, level: Level, prefix: Path = ()) -> None:
        """`prefix` is the path of the step that the workflow is nested in."""
        self.request, self.environment, self.level, self.prefix = request, environment, level, prefix
        workflow, entry_of = request.workflow, level.pool.entry
        self._schedule = graph_of(workflow).schedule(run_dead_steps=request.config.run_dead_steps)
        self._missing = list(self._schedule.missing)
        workers = cast(list[int], [step.worker for step in workflow])  # require_runnable has checked it
        self._records = [StepRecord(step, each, str(entry_of(each).name)) for step, each in enumerate(workers)]
        for step in self._schedule.pruned:
            self._records[step].status = "pruned"
        self._responses = [""] * len(workflow)
        self._group, self._context = asyncio.TaskGroup(), copy_context()
        self._failure: tuple[str, WfdslError] | None = None
        """The first step that failed, as a message, and why."""
        self._started = environment.clock.now()

    async def finish(self) -> Run:
        """Run every step, and give the run."""
        require_ready(self._schedule, self.level.pipelines, self.environment.budget)
        self._announce()
        status: RunStatus = "stopped"
        task = asyncio.current_task()
        before, waits = 0 if task is None else task.cancelling(), False
        try:
            async with self._group:
                for step in self._schedule.first:
                    self._start(step)
                waits = True
            status = self._end_status()
        except BaseExceptionGroup as several:
            _take_back_cancel(before, waits=waits)
            if self._failure is None:
                raise (several.exceptions[0] if len(several.exceptions) == 1 else several) from None
            status = "budget" if isinstance(self._failure[1], BudgetSpent | BudgetExhausted) else "failed"
        finally:
            run = self._run(status)
            self.environment.emit(RunFinished(self.prefix, run))
        if self._failure is not None:
            message, cause = self._failure
            kind = BudgetExhausted if status == "budget" else RunFailed
            raise kind(message, run, resumable=self.environment.journal is not None, cause=cause) from cause
        if status == "suspended":
            waits_for = ", ".join(call.name for call in pending_calls(run))
            raise RunSuspended(f"the run waits for the results of tool calls: {waits_for}", run, resumable=True)
        return run

    def _end_status(self) -> RunStatus:
        """How the run ended, once all tasks are over without an error."""
        if self._records[-1].status == "done":
            return "done"
        if any(record.status == "suspended" for record in self._records):
            return "suspended"
        # The group takes a task that others cancelled for one that has ended.
        lost = WorkerFailure("a step's task was cancelled from outside the run", retryable=False)
        self._failure = f"the run has no answer: {lost}", lost
        return "failed"

    def _start(self, step: int) -> None:
        self._group.create_task(self._perform(step), context=self._context.copy())

    async def _perform(self, step: int) -> None:
        """Run a step, and start those that it has made ready."""
        record = self._records[step]
        pipeline = self.level.pipelines[record.worker]
        handle, call = self._begin(record, pipeline)
        try:
            reply = await (pipeline.ask(call) if handle.tools is None else ask_with_tools(pipeline, call, handle.tools))
        except (StepSuspended, RunSuspended):
            self._end(record, "suspended")
            return
        except CAUSES as cause:
            self._fail(handle, cause)
            raise
        self._responses[step] = reply.text
        record.take(reply)
        if not pipeline.profile.conductor:  # what one says is made of other replies
            record.count(reply)
        self._end(record, "done")
        for later in self._schedule.seen_by[step]:
            self._missing[later] -= 1
            if not self._missing[later]:
                self._start(later)

    def _begin(self, record: StepRecord, pipeline: CallPipeline) -> tuple[StepCall, Call]:
        request, environment, level, profile = self.request, self.environment, self.level, pipeline.profile
        step, asked, path = record.step, request.workflow.steps[record.step], (*self.prefix, record.step)
        messages = request.messages_of(step, self._responses)
        began, latest, seconds = environment.clock.steady(), level.deadline, request.config.step_timeout_s
        deadline = latest if seconds is None else min(began + seconds, math.inf if latest is None else latest)
        record.messages, record.status, record.started = messages, "running", environment.clock.wall(began)
        settings, answers = sampling_settings(request.config.seed, path), step == len(self._records) - 1
        own = request.answer_settings if answers else {}
        tools = request.tools if answers or (request.tools is not None and request.tools.steps == "all") else None
        handle: StepCall
        if profile.conductor:
            inside = replace(request, answer_settings=own, tools=tools)
            below = level.inside(asked.depth, deadline)
            handle = ConductorCall(
                environment, path, profile, record, began, request=inside, level=below, run_workflow=run_workflow
            )
        else:
            handle = StepCall(environment, path, profile, record, began)
            handle.tools = tools
            if asked.temperature is not None or asked.max_tokens is not None:
                settings = {**settings, **asked.settings}
            if own:
                settings = {**settings, **profile.within_limits(own)}
        handle.latest, handle.seconds = latest, seconds
        sink = None
        if environment.emit is not unheard:
            sink, entry = handle, profile.entry
            about = (entry.provider, entry.model, profile.conductor)
            environment.emit(StepStarted(path, profile.name, record.started, *about))
        return handle, Call(messages, path, request.sample_id, settings, deadline, sink, handle)

    def _fail(self, handle: StepCall, cause: WfdslError) -> None:
        reason = as_unicode(str(cause))
        if self._failure is None:
            who = worker_title(handle.profile.index, handle.profile.name)
            what = {BudgetSpent: " was not finished", RunFailed: "", BudgetExhausted: ""}.get(type(cause), " failed")
            self._failure = (f"{self._title(handle.record.step)}{what}, {who}: {reason}", cause)
        self._end(handle.record, "failed", reason, error_type_of(cause))

    def _end(self, record: StepRecord, status: StepState, error: str = "", error_type: str = "") -> None:
        """Finish the record of a step, and tell of it."""
        record.end(status, self.environment.clock.now(), error)
        self.environment.emit(StepFinished((*self.prefix, record.step), record, error_type))

    def _run(self, status: RunStatus) -> Run:
        request, environment, now = self.request, self.environment, self.environment.clock.now()
        for record in self._records:
            if record.status == "running":
                record.end("stopped", now)
        return Run(
            id=environment.run_id,
            workflow=request.workflow,
            question=request.question,
            steps=tuple(self._records),
            status=status,
            started=self._started,
            finished=now,
            names=request.names,
            pool=self.level.pool.name,
            settings={} if self.prefix else request.settings(),
            error="" if self._failure is None else self._failure[0],
            lost=() if environment.journal is None else environment.journal.lost,
            charged=None if environment.budget is None else environment.budget.spent,
            versions=_VERSIONS,
        )

    def _title(self, step: int) -> str:
        where, names = "/".join(map(str, (*self.prefix, step))), self.request.names
        return f"step {where} ({names[step]})" if names else f"step {where}"

    def _announce(self) -> None:
        environment, workflow = self.environment, self.request.workflow
        if environment.emit is not unheard:
            workers = tuple(record.worker_name for record in self._records)
            names, pruned = self.request.names, self._schedule.pruned
            environment.emit(RunStarted(self.prefix, environment.run_id, workflow, names, workers, pruned))


def _take_back_cancel(before: int, *, waits: bool) -> None:
    """Take back the cancel by which a task group has ended its own wait for its tasks; later ones would count it.

    From 3.13 on Python does so itself, but cancels its task once more where that had been cancelled `before`, and went
    on nevertheless.
    """
    task = asyncio.current_task()
    assert task is not None
    if sys.version_info >= (3, 13):
        while 0 < task.cancelling() <= before:
            task.uncancel()
    elif waits and task.cancelling():
        task.uncancel()
