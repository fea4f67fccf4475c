"""Policies that learn once, on validation tasks, how to answer questions on a pool.

Learning happens before the first question, and counts as what it is: its calls go through the same budget and journal,
and `fitting` says what they cost.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Unpack
from weakref import WeakKeyDictionary

from wfdsl.conductor.policy import Solution
from wfdsl.interpreter.budget import Budget, BudgetTracker
from wfdsl.interpreter.running import RunOptions, run
from wfdsl_rl.baselines.validation import Fitting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wfdsl.interpreter.context import Question
    from wfdsl.language.workflow import Workflow
    from wfdsl.workers.pool import Pool
    from wfdsl_rl.baselines.validation import Result, Validation


class Router(Protocol):
    """What has been learned."""

    async def solve(self, question: Question, pool: Pool, options: RunOptions) -> Solution:
        """Answer a question."""
        ...


class Method(Protocol):
    """How to learn: a value, with what may be set of it."""

    name: ClassVar[str]

    async def learn(self, lessons: Lessons) -> Router:
        """Learn from what workflows made of the validation tasks."""
        ...

    def most_calls(self, pool: Pool) -> int:
        """Calls of workers for a question at most, learning apart."""
        ...

    def lesson_calls(self, pool: Pool) -> int:
        """Calls of workers for each validation task."""
        ...


@dataclass(slots=True)
class Lessons:
    """Validation tasks before a pool, as a method sees them."""

    validation: Validation
    pool: Pool
    options: RunOptions
    _costs: dict[str, Fitting] = field(default_factory=dict)
    """By run: what is looked at twice has been paid for once."""

    @property
    def spent(self) -> Fitting:
        """What the results so far have cost."""
        return sum(self._costs.values(), Fitting())

    @property
    def questions(self) -> list[str]:
        """The validation questions."""
        return [task.question for task in self.validation.tasks]

    async def results(self, workflows: Iterable[Workflow], *, graded: bool = True) -> list[list[Result]]:
        """What came of workflows: by workflow, then by task.

        Raises:
            BudgetExhausted, UsageError: as `Validation.results` does.
        """
        found = await self.validation.results(workflows, self.pool, self.options, graded=graded)
        self._costs.update((result.run_id, result.cost) for results in found for result in results)
        return found


@dataclass(slots=True)
class LearnedPolicy:
    """A method with its validation tasks. Equal policies have the same method and tasks."""

    method: Any
    """A `Method`: a frozen dataclass."""
    validation: Validation
    fitting: Fitting | None = field(default=None, init=False, compare=False)
    """What learning has cost; None before it."""
    _routers: WeakKeyDictionary[Pool, Router] = field(default_factory=WeakKeyDictionary, init=False, compare=False)
    _locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = field(
        default_factory=WeakKeyDictionary, init=False, compare=False, repr=False
    )

    async def solve(self, question: Question, pool: Pool, **options: Unpack[RunOptions]) -> Solution:
        """Answer a question, after having learned if this is the first; options as for `wfdsl.run`.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
        """
        router = self._routers.get(pool)
        if router is None:
            options = _with_account(options)
            router = await self._learned(pool, options)
        return await router.solve(question, pool, options)

    async def learn(self, pool: Pool, **options: Unpack[RunOptions]) -> Fitting:
        """Learn before the first question, and give what it cost.

        Raises:
            BudgetExhausted, UsageError: as `wfdsl.run` does.
        """
        if pool not in self._routers:
            await self._learned(pool, _with_account(options))
        assert self.fitting is not None  # there is a router
        return self.fitting

    async def _learned(self, pool: Pool, options: RunOptions) -> Router:
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            router = self._routers.get(pool)
            if router is None:
                lessons = Lessons(self.validation, pool, options)
                router = self._routers[pool] = await self.method.learn(lessons)
                self.fitting = lessons.spent
        return router

    def most_calls(self, pool: Pool) -> int:
        """Calls of workers for a question at most, learning apart."""
        most: int = self.method.most_calls(pool)
        return most

    def learning_calls(self, pool: Pool) -> int:
        """Calls of workers for learning, if the journal has none of them."""
        each: int = self.method.lesson_calls(pool)
        return each * len(self.validation.tasks)

    def describe(self) -> dict[str, Any]:
        """What it is, as plain values."""
        return {
            "kind": self.method.name,
            **asdict(self.method),
            "validation": self.validation.key,
            "tasks": len(self.validation.tasks),
        }


def _with_account(options: RunOptions) -> RunOptions:
    """A budget is for everything that a question leads to: learning is a part of the first one."""
    budget = options.get("budget")
    return {**options, "budget": BudgetTracker(budget)} if isinstance(budget, Budget) else options


async def solved(workflow: Workflow, question: Question, pool: Pool, options: RunOptions) -> Solution:
    """The solution of a workflow.

    Raises:
        RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
    """
    return Solution(await run(workflow, question, pool, **options))
