"""Policies that are fitted on validation tasks before the first question, and questions as vectors.

A workflow is run on a validation task once: within a process the result is kept, and across processes the journal has
the calls, since a run's id follows from pool, workflow, task and seed. The calls go through the same budget and journal
as the answers; what they cost is told apart, wherever the results came from.
"""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Final, TypeAlias
from weakref import WeakKeyDictionary
from zlib import crc32

from wfdsl.conductor.policy import Solution, WorkflowPolicy
from wfdsl.conductor.prompt import question_text
from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.baseline import Baseline, Selection, alone, workers_of
from wfdsl.evaluation.evaluate import run_trials
from wfdsl.evaluation.manifest import FitCost, pool_description
from wfdsl.evaluation.trials import Evaluation, Trial, TrialKey, hash_of, task_hash, task_name
from wfdsl.installation import require_packages
from wfdsl.interpreter.budget import Budget, BudgetTracker
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.record import workflow_to_list
from wfdsl.interpreter.running import RunOptions, run
from wfdsl.language.workflow import Workflow
from wfdsl.settings import option, to_table
from wfdsl.tasks.loading import load_tasks
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool

Vectors: TypeAlias = Any
"""One row of length 1 for each text: an array of numpy, which is an extra."""
Router: TypeAlias = Callable[[str], Workflow | Selection]
"""What is run for a question, by its text."""
TASKS: Final = 960
"""Validation tasks that are used unless a limit is given: as many as a Conductor is trained on. Source: arXiv
2512.04388, section 4."""
_GYM_TASKS: Final = "gym/seven@train"
"""What simulated workers, those of the provider `gym`, are fitted on unless tasks are named."""
WIDTH: Final = 1024
"""Columns of a vector; our choice."""
GRAMS: Final = (3, 4, 5)
"""Letters in a row, spaces at the ends of words included; our choice."""
_PASSED_ON: Final = (
    "budget", "journal", "timeout_s", "step_timeout_s", "longest_wait_s", "limiter", "question_for", "max_depth",
)  # fmt: skip
"""What a measurement takes over from the run for whose sake it is made."""


@dataclass(frozen=True, slots=True)
class Fitted(Baseline):
    """A method that is fitted, with its validation tasks: a frozen dataclass of its parameters, and what it learns."""

    calls: ClassVar[str] = "1; to fit: workers * limit"
    validation: str | None = option(None, "the tasks to fit on; a pool of the gym has its own", path=True)
    limit: int = option(TASKS, "how many of them at most; a Conductor is trained on as many", ge=1)
    seed: int = option(0, "which of them, and the calls' random numbers", ge=0)
    tasks: tuple[Task, ...] = field(default=(), kw_only=True, repr=False)
    """The validation tasks, once they are read."""
    routers: WeakKeyDictionary[Pool, Router] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )
    """What was fitted, by pool."""
    costs: list[FitCost] = field(default_factory=list, init=False, repr=False, compare=False)
    """What each fit has cost."""

    @abstractmethod
    async def fitted(self, training_set: TrainingSet) -> Router:
        """Fit to the results of workflows on the validation tasks."""

    def policy(self, pool: Pool) -> Fitted:
        """The policy, with its validation tasks: those of a file or data set, or a gym's own training questions.

        Raises:
            UsageError: none are named and the pool is none of the gym's, or they cannot be read.
        """
        named = self.validation or (_GYM_TASKS if any(entry.provider == "gym" for entry in pool) else None)
        if named is None:
            raise UsageError(
                f"{self.name} is fitted on validation tasks, and pool {pool.name!r} has none of its own: write "
                f"{self.name}:validation=FILE, where FILE holds tasks that are not evaluated"
            )
        return replace(self, tasks=tuple(load_tasks(named, limit=self.limit, seed=self.seed)))

    @property
    def key(self) -> str:
        """What tells the tasks, and the random numbers on them, from others: a hash."""
        return hash_of([*map(task_hash, self.tasks), self.seed])

    @property
    def fit_cost(self) -> FitCost | None:
        """What the latest fit has cost; None before it."""
        return self.costs[-1] if self.costs else None

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Answer a question, after fitting if this is the first; options and errors as for `wfdsl.run`."""
        budget = options.get("budget")
        if isinstance(budget, Budget):  # fitting is a part of the first question
            options["budget"] = BudgetTracker(budget)
        await self.fit(pool, **options)
        chosen = self.routers[pool](question_text(question))
        if isinstance(chosen, Selection):
            return await chosen.run(question, pool, **options)
        return Solution(await run(chosen, question, pool, **options))

    async def fit(self, pool: Pool, **options: Any) -> None:
        """Fit before the first question; BudgetExhausted and UsageError as for `wfdsl.run`."""
        if pool in self.routers:
            return
        async with _LOCKS.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            if pool not in self.routers:
                training_set = TrainingSet(self, pool, options)
                self.routers[pool] = await self.fitted(training_set)
                self.costs.append(training_set.spent)

    def fit_calls(self, pool: Pool) -> int:
        """Calls of workers to fit, at most, if the journal has none of them: each worker alone."""
        return len(workers_of(pool)) * len(self.tasks)

    def describe(self) -> dict[str, Any]:
        """What it is, as plain values."""
        return {"kind": self.name, **to_table(self), "validation": self.key, "tasks": len(self.tasks)}


_LOCKS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]] = WeakKeyDictionary()
"""One policy at a time is fitted, so that what two of them ask is asked once."""


class TrainingSet:
    """Validation tasks and the pool they are run on, as a fitting method sees them."""

    def __init__(self, method: Fitted, pool: Pool, options: RunOptions) -> None:
        """Take over from a run what a measurement for its sake needs.

        Raises:
            UsageError: there are no tasks.
        """
        if not method.tasks:
            raise UsageError("there are no validation tasks: a router is fitted on tasks with gold answers")
        self.tasks, self.key, self.pool = method.tasks, method.key, pool
        for_whom = {key: value for key, value in options.get("origin", {}).items() if key in ("evaluation", "policy")}
        self._options = {name: value for name, value in options.items() if name in _PASSED_ON}
        self._options["origin"] = {**for_whom, "fit": self.key[:20]}
        self._seed = None if options.get("seed") is None else method.seed
        shown = options.get("question_for", "all")
        self._id = f"fit-{hash_of([pool_description(pool)['hash'], self._seed, shown])[:20]}"
        self._known = _KNOWN.setdefault(pool, {}).setdefault((self._id, self.key), {})
        self._used: dict[TrialKey, Trial] = {}
        """What is looked at twice has been paid for once."""

    @property
    def spent(self) -> FitCost:
        """What the results so far have cost."""
        costs = (FitCost(each.calls, each.tokens, each.list_usd) for each in self._used.values())
        return sum(costs, FitCost(0, 0, 0.0))

    @cached_property
    def places(self) -> Vectors:
        """The validation questions as vectors."""
        return embed([task.asked for task in self.tasks])

    def near(self, question: str, k: int) -> list[int]:
        """The validation tasks with the questions most like one, the nearest first; of equal ones the earlier."""
        likeness = (self.places @ embed([question])[0]).round(9)
        return [int(at) for at in (-likeness).argsort(kind="stable")[:k]]

    async def alone(self) -> tuple[tuple[int, ...], list[list[Trial]]]:
        """The pool's workers, and the results of each alone on every task; raises what `results` does."""
        workers = workers_of(self.pool)
        return workers, await self.results(map(alone, workers))

    async def results(self, workflows: Iterable[Workflow], tasks: Sequence[int] | None = None) -> list[list[Trial]]:
        """The results of workflows: by workflow, then by task; `tasks` are indices, all unless given.

        All runs of a task have the same seed, so that differences between workflows are less noisy.

        Raises:
            BudgetExhausted: the budget does not cover the next call.
            UsageError: a workflow cannot run on the pool, or a task cannot be graded at all.
        """
        wanted = self.tasks if tasks is None else [self.tasks[at] for at in tasks]
        policies = {hash_of(workflow_to_list(each))[:20]: WorkflowPolicy(each) for each in workflows}
        evaluation = Evaluation(
            policies=policies, tasks=wanted, pool=self.pool, seed=self._seed, id=self._id, options=self._options
        )
        keys = [[TrialKey(name, task_name(task), 0) for task in wanted] for name in policies]
        await run_trials(evaluation, lambda trial: self._known.__setitem__(trial.key, trial), done=self._known)
        self._used |= {key: self._known[key] for row in keys for key in row}
        return [[self._known[key] for key in row] for row in keys]


_KNOWN: WeakKeyDictionary[Pool, dict[tuple[str, str], dict[TrialKey, Trial]]] = WeakKeyDictionary()
"""What has been measured on a pool, by what else it depends on: policies with the same tasks share it."""


def embed(texts: Sequence[str]) -> Vectors:
    """The vectors of some texts: counts of words and of letters in a row, hashed with a sign, by their roots.

    Raises:
        UsageError: numpy is not installed.
    """
    require_packages("a router", ["numpy"], "eval")
    import numpy as np  # noqa: PLC0415  (an extra, which fixed workflows can do without)

    vectors = np.zeros((len(texts), WIDTH))
    for row, text in enumerate(texts):
        for word in re.findall(r"[^\W_]+|[^\w\s]", text.casefold()):
            spaced = f" {word} "
            grams = (spaced[at : at + length] for length in GRAMS for at in range(len(spaced) - length + 1))
            for gram in (f"={word}", *grams):
                code = crc32(gram.encode(errors="surrogatepass"))
                vectors[row, code % WIDTH] += 1 if code & 0x80000000 else -1
    rooted = np.sign(vectors) * np.sqrt(np.abs(vectors))
    return rooted / np.maximum(np.linalg.norm(rooted, axis=1, keepdims=True), 1e-12)
