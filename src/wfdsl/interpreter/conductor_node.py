"""Conductor node: what a Conductor gets to run workflows inside its step, on the same pool, budget and journal.

A worker of a pool that is a Conductor finds this in `Call.run`. It asks its own model with `ask`, and runs what that
writes with `run`; both count towards the step. A nested step's path is the node's path, a round, and its own index;
the Conductor's own completion has index -1.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from zlib import crc32

from wfdsl.errors import UsageError
from wfdsl.interpreter.call import CallPipeline, Environment, Pipelines, StepCall
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.events import CompletionFinished, CompletionStarted, Path, error_type_of, unheard
from wfdsl.interpreter.record import Run, RunEnded, StepRecord
from wfdsl.interpreter.worker_profile import WorkerProfile
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import Call, Message, Reply, Worker, WorkerPool

OWN_STEP = -1
"""The index of a Conductor's own completions in paths."""


class Level(NamedTuple):
    """What changes from one level of nested runs to the next."""

    pipelines: Pipelines
    depth: int
    """How many levels of Conductor nodes may still be nested."""
    deadline: float | None = None
    """When the run has to be over, on the event loop's clock."""

    @property
    def pool(self) -> WorkerPool:
        """The workers."""
        return self.pipelines.pool

    def inside(self, depth: int | None, deadline: float | None) -> Level:
        """The level inside a Conductor node; without the pool's Conductors where no more levels are allowed."""
        left = (self.depth if depth is None else min(depth, self.depth)) - 1
        pipelines = self.pipelines if left > 0 else Pipelines(without_conductors(self.pool))
        return Level(pipelines=pipelines, depth=left, deadline=deadline)


class ConductorCall(StepCall):
    """A step whose worker is a Conductor."""

    def __init__(
        self,
        environment: Environment,
        path: Path,
        profile: WorkerProfile,
        record: StepRecord,
        began: float,
        *,
        request: RunRequest,
        level: Level,
        run_workflow: Callable[..., Coroutine[Any, Any, Run]],
    ) -> None:
        """`request` is what the workflows inside the node have in common, `level` is theirs; `run_workflow` is the
        execution's, which is above this.
        """
        super().__init__(environment, path, profile, record, began)
        self._own = replace(profile, conductor=False, fallbacks=())
        self._run_workflow = run_workflow
        self.request = request
        """Options, settings of the answer and tools of nested workflows."""
        self.level = level
        """What nested workflows may use, and how deep they may be nested."""
        self.provider = str(profile.entry.provider)
        """Who provides the Conductor's own model; a pool's entry only says that the worker is a Conductor."""

    @property
    def pool(self) -> WorkerPool:
        """What nested workflows may use: the run's pool, at the last level without its Conductors."""
        return self.level.pool

    async def ask(
        self,
        worker: Worker,
        messages: tuple[Message, ...],
        *,
        round_number: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Ask the Conductor's own model, with the node's limits, the run's budget and journal.

        Raises:
            WorkerFailure: it gave no usable reply.
        """
        environment, request = self.environment._replace(emit=unheard), self.request
        path, clock, profile = (*self.path, round_number, OWN_STEP), environment.clock, self._own
        record = StepRecord(OWN_STEP, profile.index, profile.name, messages)
        handle = StepCall(environment, path, profile, record, clock.steady())
        settings = {**sampling_settings(request.config.seed, path), **(settings or {})}
        call = Call(messages, path, request.sample_id, settings, self.level.deadline, None, handle)
        self.environment.emit(CompletionStarted(path, profile.name, clock.now(), self.provider, profile.entry.model))
        try:
            reply = await CallPipeline(worker, profile).ask(call)
        except BaseException as error:
            end = CompletionFinished(path, clock.now(), messages, None, str(error), error_type_of(error))
            raise
        else:
            end = CompletionFinished(path, clock.now(), messages, reply)
            self.record.count(reply)
            return reply
        finally:
            self.record.count(record)
            self.environment.emit(end)

    async def run(
        self,
        workflow: Workflow,
        question: Question | None = None,
        *,
        round_number: int = 0,
        previous: tuple[str, str] | None = None,
    ) -> Run:
        """Run a workflow inside the step. Its question is the step's own messages, unless another one is given.

        `previous` is the final (subtask, response) of the round before, for steps with access "all".

        Raises:
            RunFailed, BudgetExhausted: as for any run; the partial record is kept with the step.
            UsageError: the workflow cannot run on `pool`.
        """
        question = self.record.messages if question is None else question
        request = replace(self.request, workflow=workflow, question=question, names=None, previous=previous)
        try:
            run = await self._run_workflow(request, self.environment, self.level, (*self.path, round_number))
        except RunEnded as error:
            self._keep(error.run)
            raise
        self._keep(run)
        return run

    def _keep(self, run: Run) -> None:
        self.record.nested = (*self.record.nested, run)
        self.record.count(run)


def sampling_settings(seed: int | None, path: Path) -> Mapping[str, Any]:
    """The sampling settings of a call. Each path gets its own seed, so that identical copies of a step differ."""
    return {} if seed is None else {"seed": crc32(repr((seed, path)).encode()) & 0x7FFFFFFF}


def without_conductors(pool: Any) -> WorkerPool:
    """The pool without its Conductors, under the same indices.

    Raises:
        UsageError: it has no other workers.
    """
    conductors = set(getattr(pool, "conductors", ()))
    others = [index for index in pool.indices if index not in conductors]
    if not others:
        raise UsageError(
            f"pool {pool.name!r} has only Conductors, and the recursion depth is used up; "
            "add other workers, or increase max_depth"
        )
    found: WorkerPool = pool.subset(others) if conductors else pool
    return found
