"""One run of one workflow: steps become calls, replies become records, and the end is a run or an error with one."""

from __future__ import annotations

import platform
from functools import cache
from typing import TYPE_CHECKING, Any

from wfdsl._version import __version__
from wfdsl.graph import graph_of
from wfdsl.interpreter import events
from wfdsl.interpreter.budget import require_bounded
from wfdsl.interpreter.context import messages_for
from wfdsl.interpreter.environment import StepCall, settings_of
from wfdsl.interpreter.executor import execute
from wfdsl.interpreter.failures import CAUSES, StepFailure
from wfdsl.interpreter.nested import ConductorCall
from wfdsl.interpreter.record import Run, StepRecord
from wfdsl.protocols import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wfdsl.interpreter.context import Question
    from wfdsl.interpreter.environment import Environment
    from wfdsl.interpreter.failures import Cause
    from wfdsl.interpreter.record import RunStatus, StepState
    from wfdsl.interpreter.terms import Terms
    from wfdsl.language.workflow import Workflow
    from wfdsl.protocols import Reply


async def run_workflow(
    workflow: Workflow,
    question: Question,
    environment: Environment,
    *,
    names: tuple[str, ...] | None = None,
    prefix: tuple[int, ...] = (),
    previous: tuple[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Run:
    """Run a workflow that has passed `require_runnable`; `prefix` is the path of the step that it is nested in.

    Raises:
        RunFailed: a step failed for good.
        BudgetExhausted: a step could not be paid for.
        UsageError: the budget cannot be kept with the workers that it asks.
    """
    execution = Execution(
        workflow, question, environment, names=names, prefix=prefix, previous=previous, settings=settings or {}
    )
    return await execution.finish()


class Execution:
    """The state of one run. Step i's record is in `_records[i]` once it is over, its call in `_calls[i]` before."""

    __slots__ = (
        "_calls",
        "_environment",
        "_failure",
        "_names",
        "_prefix",
        "_previous",
        "_question",
        "_records",
        "_responses",
        "_schedule",
        "_settings",
        "_started",
        "_workflow",
    )

    def __init__(
        self,
        workflow: Workflow,
        question: Question,
        environment: Environment,
        *,
        names: tuple[str, ...] | None,
        prefix: tuple[int, ...],
        previous: tuple[str, str] | None,
        settings: Mapping[str, Any],
    ) -> None:
        self._workflow = workflow
        self._question = question
        self._environment = environment
        self._names = names
        self._prefix = prefix
        self._previous = previous
        self._settings = settings
        self._schedule = graph_of(workflow).schedule(run_dead_steps=environment.run_dead_steps)
        self._calls: list[StepCall | None] = [None] * len(workflow.steps)
        self._records: list[StepRecord | None] = [None] * len(workflow.steps)
        self._responses: list[str] = [""] * len(workflow.steps)
        self._failure: StepFailure | None = None
        self._started = environment.clock.now()

    async def finish(self) -> Run:
        """Run every step, and give the run."""
        self._require_bounded()
        self._announce()
        status: RunStatus = "stopped"
        try:
            await execute(self._schedule, self._perform)
            status = "done"
        except BaseExceptionGroup as group:
            if self._failure is None:
                raise _single(group) from None
            status = self._failure.status
        finally:
            run = self._record(status)
            self._emit(run)
        if self._failure is not None:
            raise self._failure.error(run) from self._failure.cause
        return run

    def _require_bounded(self) -> None:
        """Under a budget, refuse workers whose calls have no upper bound, before the first of them is made."""
        environment = self._environment
        if environment.ledger is None:
            return
        for worker in self._schedule.workers:
            assert isinstance(worker, int)  # require_runnable has seen to it
            require_bounded(
                environment.line(worker).terms, environment.line, environment.ledger.budget, environment.settings
            )

    async def _perform(self, step: int) -> None:
        environment = self._environment
        worker = self._workflow.steps[step].worker
        assert isinstance(worker, int)  # require_runnable has seen to it
        line = environment.line(worker)
        handle, call = self._prepare(step, line.terms)
        try:
            reply = await line.ask(call)
        except CAUSES as cause:
            self._fail(handle, cause)
            raise
        self._responses[step] = reply.text
        self._end(step, _record_of(handle, line.terms.name, reply, environment.clock.now()))

    def _prepare(self, step: int, terms: Terms) -> tuple[StepCall, Call]:
        environment = self._environment
        messages = messages_for(
            self._workflow,
            step,
            self._responses,
            self._question,
            question_for=environment.question_for,
            previous=self._previous,
        )
        path = (*self._prefix, step)
        deadline = deadline_of(environment)
        if terms.conductor:
            handle: StepCall = ConductorCall(
                environment,
                path,
                terms,
                messages,
                depth=self._workflow.steps[step].depth,
                deadline=deadline,
                run_workflow=run_workflow,
            )
        else:
            handle = StepCall(environment, path, terms.ordinal, messages)
        self._calls[step] = handle
        if environment.listener is not None:
            environment.listener(events.StepStarted(path, terms.name, handle.started))
        sink = delta_sink(environment, path)
        return handle, Call(messages, path, environment.sample, settings_of(environment, path), deadline, sink, handle)

    def _fail(self, handle: StepCall, cause: Cause) -> None:
        if self._failure is None:
            worker = f"worker {handle.worker} ({self._worker_name(handle.worker)})"
            resume = "" if self._environment.journal is None else self._environment.run_id
            self._failure = StepFailure(self._title(handle.step), worker, cause, resume)
        self._end(handle.step, self._unfinished(handle, "failed", str(cause)))

    def _end(self, step: int, record: StepRecord) -> None:
        self._records[step] = record
        self._calls[step] = None
        if self._environment.listener is not None:
            self._environment.listener(events.StepFinished((*self._prefix, step), record))

    def _unfinished(self, handle: StepCall, status: StepState, error: str = "") -> StepRecord:
        return StepRecord(
            step=handle.step,
            worker=handle.worker,
            worker_name=self._worker_name(handle.worker),
            messages=handle.messages,
            status=status,
            started=handle.started,
            finished=self._environment.clock.now(),
            queue_s=handle.queue_s,
            retries=handle.retries,
            retry_s=handle.retry_s,
            error=error,
            nested=handle.nested,
            **_spent_inside(handle),
        )

    def _snapshot(self, step: int) -> StepRecord:
        record = self._records[step]
        if record is not None:
            return record
        handle = self._calls[step]
        if handle is not None:
            return self._unfinished(handle, "stopped")
        worker = self._workflow.steps[step].worker
        assert isinstance(worker, int)  # require_runnable has seen to it
        status: StepState = "pruned" if self._schedule.missing[step] < 0 else "waiting"
        return StepRecord(step=step, worker=worker, worker_name=self._worker_name(worker), status=status)

    def _record(self, status: RunStatus) -> Run:
        return Run(
            id=self._environment.run_id,
            workflow=self._workflow,
            question=self._question,
            steps=tuple(self._snapshot(step) for step in range(len(self._records))),
            status=status,
            started=self._started,
            finished=self._environment.clock.now(),
            names=self._names,
            pool=self._environment.pool.name,
            settings=self._settings,
            error="" if self._failure is None else self._failure.text(),
            lost=self._environment.lost,
            charged=None if self._environment.ledger is None else self._environment.ledger.spent,
            versions=versions(),
        )

    def _title(self, step: int) -> str:
        where = "/".join(map(str, (*self._prefix, step)))
        return f"step {where} ({self._names[step]})" if self._names else f"step {where}"

    def _worker_name(self, worker: int | str) -> str:
        return str(self._environment.pool.entry(worker).name) if isinstance(worker, int) else worker

    def _announce(self) -> None:
        if self._environment.listener is None:
            return
        workers = tuple(self._worker_name(step.worker) for step in self._workflow.steps)
        started = events.RunStarted(
            self._prefix, self._environment.run_id, self._workflow, self._names, workers, self._schedule.pruned
        )
        self._environment.listener(started)

    def _emit(self, run: Run) -> None:
        if self._environment.listener is not None:
            self._environment.listener(events.RunFinished(self._prefix, run))


def delta_sink(environment: Environment, path: tuple[int, ...]) -> Callable[[str], None] | None:
    """Where a worker that streams sends pieces of text; None if nobody listens."""
    listener = environment.listener
    return None if listener is None else lambda text: listener(events.Delta(path, text))


def deadline_of(environment: Environment) -> float | None:
    """When a step that starts now has to be over, on the event loop's clock; None: whenever."""
    if environment.step_timeout_s is None:
        return environment.deadline
    end = environment.clock.steady() + environment.step_timeout_s
    return end if environment.deadline is None else min(end, environment.deadline)


def _record_of(handle: StepCall, worker_name: str, reply: Reply, finished: float) -> StepRecord:
    inside = handle if isinstance(handle, ConductorCall) else reply
    return StepRecord(
        handle.step,
        handle.worker,
        worker_name,
        handle.messages,
        reply.text,
        "done",
        reply.finish,
        handle.started,
        finished,
        handle.queue_s,
        handle.retries,
        handle.retry_s,
        inside.usage,
        inside.paid_usd,
        inside.list_usd,
        reply.model,
        handle.replayed,
        handle.answered_by,
        "",
        handle.nested,
    )


def _spent_inside(handle: StepCall) -> dict[str, Any]:
    """What a Conductor node has spent before it failed."""
    if not isinstance(handle, ConductorCall):
        return {}
    return {"usage": handle.usage, "paid_usd": handle.paid_usd, "list_usd": handle.list_usd}


def _single(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception itself, where a group has only one."""
    return group.exceptions[0] if len(group.exceptions) == 1 else group


@cache
def versions() -> Mapping[str, str]:
    """What wrote a record."""
    return {"wfdsl": __version__, "python": platform.python_version()}
