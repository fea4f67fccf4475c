"""Policies that are fitted on validation tasks before the first question, and what fitting has cost.

The calls of fitting go through the same budget and journal as the answers. Their cost is kept per policy, in a file of
the evaluation's folder and in a table.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol
from weakref import WeakKeyDictionary

from wfdsl.conductor.policy import Policy, Solution
from wfdsl.conductor.prompt import question_text
from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.single_worker import workers_of
from wfdsl.evaluation.baselines.validation import FitCost, Result, Validation
from wfdsl.interpreter.budget import Budget, BudgetTracker
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.running import RunOptions, run
from wfdsl.language.workflow import Workflow
from wfdsl.render.status import dollars
from wfdsl.workers.pool import Pool


class Router(Protocol):
    """A fitted router."""

    async def solve(self, question: Question, pool: Pool, options: RunOptions) -> Solution:
        """Answer a question."""
        ...


class WorkflowRouter(ABC):
    """A router that chooses a workflow by the question's text."""

    __slots__ = ()

    @abstractmethod
    def workflow_for(self, question: str) -> Workflow:
        """The workflow for a question."""

    async def solve(self, question: Question, pool: Pool, options: RunOptions) -> Solution:
        """Run the workflow for this question.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
        """
        return Solution(await run(self.workflow_for(question_text(question)), question, pool, **options))


@dataclass(frozen=True, slots=True)
class Fixed(WorkflowRouter):
    """The same workflow for every question."""

    workflow: Workflow

    def workflow_for(self, question: str) -> Workflow:  # noqa: ARG002  (as every router)
        """The workflow."""
        return self.workflow


class Method(ABC):
    """How to fit: a frozen dataclass of its parameters."""

    __slots__ = ()
    name: ClassVar[str]

    @abstractmethod
    async def fit(self, training_set: TrainingSet) -> Router:
        """Fit to the results of workflows on the validation tasks."""

    def most_calls(self, pool: Pool) -> int:  # noqa: ARG002  (others depend on it)
        """Calls of workers for a question at most, fitting apart: one worker is asked."""
        return 1

    def fit_calls(self, pool: Pool, tasks: int) -> int:
        """Calls of workers to fit on a number of validation tasks, at most: each worker alone."""
        return len(workers_of(pool)) * tasks


@dataclass(slots=True)
class TrainingSet:
    """Validation tasks and the pool they are run on, as a fitting method sees them."""

    validation: Validation
    pool: Pool
    options: RunOptions
    _costs: dict[str, FitCost] = field(default_factory=dict)
    """By run: what is looked at twice has been paid for once."""

    @property
    def spent(self) -> FitCost:
        """What the results so far have cost."""
        return sum(self._costs.values(), FitCost())

    @property
    def questions(self) -> list[str]:
        """The validation questions."""
        return [task.question for task in self.validation.tasks]

    async def results(
        self, workflows: Iterable[Workflow], tasks: Sequence[int] | None = None, *, graded: bool = True
    ) -> list[list[Result]]:
        """The results of workflows: by workflow, then by task; `tasks` are indices, all unless given.

        Raises:
            BudgetExhausted, UsageError: as `Validation.results` does.
        """
        found = await self.validation.results(workflows, self.pool, self.options, tasks, graded=graded)
        self._costs.update((result.run_id, result.cost) for results in found for result in results)
        return found

    async def results_of_pairs(self, pairs: Sequence[tuple[Workflow, int]]) -> list[Result]:
        """The results of workflows on tasks, which are given by their indices.

        Raises:
            BudgetExhausted, UsageError: as `Validation.results_of_pairs` does.
        """
        found = await self.validation.results_of_pairs(pairs, self.pool, self.options)
        self._costs.update((result.run_id, result.cost) for result in found)
        return found


@dataclass(slots=True)
class FittedPolicy:
    """A method with its validation tasks. Equal policies have the same method and tasks."""

    method: Method
    validation: Validation
    fit_cost: FitCost | None = field(default=None, init=False, compare=False)
    """What fitting has cost; None before it."""
    _routers: WeakKeyDictionary[Pool, Router] = field(default_factory=WeakKeyDictionary, init=False, compare=False)
    _locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = field(
        default_factory=WeakKeyDictionary, init=False, compare=False, repr=False
    )

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Answer a question, after fitting if this is the first; options as for `wfdsl.run`.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
        """
        router = self._routers.get(pool)
        if router is None:
            options = _with_tracker(options)
            router = await self._fitted(pool, options)
        return await router.solve(question, pool, options)

    async def fit(self, pool: Pool, **options: Any) -> FitCost:
        """Fit before the first question; the cost.

        Raises:
            BudgetExhausted, UsageError: as `wfdsl.run` does.
        """
        if pool not in self._routers:
            await self._fitted(pool, _with_tracker(options))
        assert self.fit_cost is not None  # there is a router
        return self.fit_cost

    async def _fitted(self, pool: Pool, options: RunOptions) -> Router:
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            router = self._routers.get(pool)
            if router is None:
                training_set = TrainingSet(self.validation, pool, options)
                router = self._routers[pool] = await self.method.fit(training_set)
                self.fit_cost = training_set.spent
        return router

    def most_calls(self, pool: Pool) -> int:
        """Calls of workers for a question at most, fitting apart."""
        return self.method.most_calls(pool)

    def fit_calls(self, pool: Pool) -> int:
        """Calls of workers for fitting, if the journal has none of them."""
        return self.method.fit_calls(pool, len(self.validation.tasks))

    def describe(self) -> dict[str, Any]:
        """What it is, as plain values."""
        return {
            "kind": self.method.name,
            **asdict(self.method),  # type: ignore[call-overload]  # every method is a dataclass
            "validation": self.validation.key,
            "tasks": len(self.validation.tasks),
        }


def _with_tracker(options: RunOptions) -> RunOptions:
    """A budget covers everything that a question leads to: fitting is a part of the first one."""
    budget = options.get("budget")
    return {**options, "budget": BudgetTracker(budget)} if isinstance(budget, Budget) else options


FILE: Final = "fit_costs.json"
TRAINING_COST: Final = "training_cost.json"
"""The file of a checkpoint that says what the workers have cost that trained it."""


def fit_costs(policies: Mapping[str, Policy]) -> dict[str, FitCost]:
    """What each fitted policy has spent on fitting, and what training each Conductor from a checkpoint has cost.

    Raises:
        UsageError: a checkpoint's file cannot be read.
    """
    found = {name: getattr(policy, "fit_cost", None) or _training_cost(policy) for name, policy in policies.items()}
    return {name: fit_cost for name, fit_cost in found.items() if isinstance(fit_cost, FitCost)}


def _training_cost(policy: Policy) -> FitCost | None:
    model = getattr(getattr(policy, "entry", None), "model", None)
    path = Path(str(model or ""), TRAINING_COST)
    if not model or not path.is_file():
        return None
    try:
        return FitCost(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path} does not hold the cost of a training ({error}); export the model again") from error


def write_fit_costs(folder: Path, costs: Mapping[str, FitCost]) -> None:
    """Write costs to the folder, beside those that are there already; without any nothing is written.

    Raises:
        UsageError: what is there cannot be read.
    """
    if costs:
        every = {name: asdict(cost) for name, cost in {**read_fit_costs(folder), **costs}.items()}
        (folder / FILE).write_text(json.dumps(every, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def read_fit_costs(folder: Path) -> dict[str, FitCost]:
    """The costs in the folder; none if no policy was fitted.

    Raises:
        UsageError: the file is damaged.
    """
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        return {name: FitCost(**cost) for name, cost in json.loads(path.read_text(encoding="utf-8")).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} does not hold the costs of fitting ({error}); delete it, then continue with --resume"
        ) from error


def fit_cost_table(costs: Mapping[str, FitCost]) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of a table."""
    rows = [
        [name, f"{cost.calls:,}", f"{cost.tokens:,}", "-" if cost.usd is None else dollars(cost.usd)]
        for name, cost in costs.items()
    ]
    return ["policy, to fit or train", "calls", "tokens", "cost"], rows
