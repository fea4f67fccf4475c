"""What a Conductor node is given: the means to run workflows inside its step, on the same pool, budget and journal.

A worker of a pool that is a Conductor finds this in `Call.run`. It asks its own model with `ask`, and runs what that
writes with `run`; both count towards the step. A nested step's path is the node's path, a round, and its own index;
the Conductor's own completion stands at index -1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from wfdsl.errors import BudgetExhausted, RunFailed, UsageError
from wfdsl.interpreter.environment import StepCall, settings_of
from wfdsl.interpreter.lines import Lines, line_for
from wfdsl.interpreter.record import NOTHING, total_usd
from wfdsl.interpreter.runnable import require_runnable
from wfdsl.protocols import Call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfdsl.interpreter.context import Question
    from wfdsl.interpreter.environment import Ask, Environment, WorkerPool
    from wfdsl.interpreter.events import Path
    from wfdsl.interpreter.record import Run
    from wfdsl.interpreter.terms import Terms
    from wfdsl.language.workflow import Workflow
    from wfdsl.protocols import Message, Reply, Usage

OWN_STEP = -1
"""The index of a Conductor's own completions in paths."""


class WorkflowRunner(Protocol):
    """What runs a workflow in an environment."""

    async def __call__(
        self,
        workflow: Workflow,
        question: Question,
        environment: Environment,
        *,
        names: tuple[str, ...] | None,
        prefix: Path,
        previous: tuple[str, str] | None,
    ) -> Run:
        """Run it."""
        ...


class ConductorCall(StepCall):
    """A step whose worker is a Conductor."""

    __slots__ = ("_inner", "_run_workflow", "_terms", "replies")

    def __init__(
        self,
        environment: Environment,
        path: Path,
        terms: Terms,
        messages: tuple[Message, ...],
        *,
        depth: int | None,
        deadline: float | None,
        run_workflow: WorkflowRunner,
    ) -> None:
        """`depth` is what the workflow's writer allows the node; None: what the run allows."""
        super().__init__(environment, path, terms.ordinal, messages)
        self._terms = terms
        self._run_workflow = run_workflow
        self._inner = _inside(environment, depth, deadline)
        self.replies: list[Reply] = []
        """The Conductor's own completions."""

    @property
    def pool(self) -> WorkerPool:
        """What nested workflows may use: the run's pool, at the cap without its Conductors, under the same ordinals."""
        return self._inner.pool

    @property
    def depth(self) -> int:
        """How many levels of Conductor nodes a nested workflow may have."""
        return self._inner.depth

    def limit_steps(self, step_timeout_s: float | None) -> None:
        """Give the steps of nested workflows so many seconds each; None: no limit."""
        self._inner = replace(self._inner, step_timeout_s=step_timeout_s)

    async def ask(
        self,
        worker: Ask,
        messages: tuple[Message, ...],
        *,
        round_number: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Ask the model behind the node, with the node's limits, the run's budget and journal.

        Raises:
            WorkerFailure: it gave no usable reply.
        """
        environment = replace(self._inner, listener=None)
        handle = StepCall(environment, (*self.path, round_number, OWN_STEP), self.worker, messages)
        call = Call(
            messages,
            handle.path,
            environment.sample,
            {**settings_of(environment, handle.path), **(settings or {})},
            environment.deadline,
            None,
            handle,
        )
        reply = await line_for(worker, self._terms)(call)
        self.replies.append(reply)
        return reply

    async def run(
        self,
        workflow: Workflow,
        question: Question | None = None,
        *,
        round_number: int = 0,
        names: tuple[str, ...] | None = None,
        previous: tuple[str, str] | None = None,
    ) -> Run:
        """Run a workflow inside the step. Its question is the step's own messages, unless another one is given.

        `previous` is the final (subtask, response) of the round before, for steps with access "all".

        Raises:
            RunFailed, BudgetExhausted: as for any run; the partial record is kept with the step.
            UsageError: the workflow cannot run on `pool`.
        """
        require_runnable(workflow, self._inner.pool, self._inner.depth)
        try:
            run = await self._run_workflow(
                workflow,
                self.messages if question is None else question,
                self._inner,
                names=names,
                prefix=(*self.path, round_number),
                previous=previous,
            )
        except (RunFailed, BudgetExhausted) as error:
            self.nested = (*self.nested, error.run)
            raise
        self.nested = (*self.nested, run)
        return run

    @property
    def usage(self) -> Usage:
        """Tokens of the Conductor's completions and of the nested runs."""
        own = sum((reply.usage for reply in self.replies), NOTHING)
        return sum((run.usage for run in self.nested), own)

    @property
    def paid_usd(self) -> float | None:
        """What completions and nested runs cost, in US dollars; None if a price is not known."""
        return total_usd([*(reply.paid_usd for reply in self.replies), *(run.paid_usd for run in self.nested)])

    @property
    def list_usd(self) -> float | None:
        """The same by the price list."""
        return total_usd([*(reply.list_usd for reply in self.replies), *(run.list_usd for run in self.nested)])


def _inside(environment: Environment, depth: int | None, deadline: float | None) -> Environment:
    """The environment of the workflows inside a node."""
    left = (environment.depth if depth is None else min(depth, environment.depth)) - 1
    pool = environment.pool if left > 0 else without_conductors(environment.pool)
    return replace(environment, pool=pool, line=Lines(pool), depth=left, deadline=deadline)


def without_conductors(pool: Any) -> WorkerPool:
    """The pool without its Conductors, under the same ordinals.

    Raises:
        UsageError: it has no other workers.
    """
    conductors = set(getattr(pool, "conductors", ()))
    if not conductors:
        found: WorkerPool = pool
        return found
    others = [ordinal for ordinal in pool.ordinals if ordinal not in conductors]
    if not others:
        raise UsageError(
            f"pool {pool.name!r} has Conductors only, and the recursion depth is used up: "
            f"give it other workers, or allow a larger max_depth"
        )
    rest: WorkerPool = pool.subset(others)
    return rest
