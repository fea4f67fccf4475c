"""Baselines of one call: a worker that is drawn, or one with a larger token limit."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from wfdsl.conductor.policy import Solution
from wfdsl.conductor.prompt import question_text
from wfdsl.evaluation.baselines.baseline import SOLVE, Baseline, alone, worker_option, workers_of
from wfdsl.evaluation.baselines.voting import PoolWith
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.running import run
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Call, Reply, Worker
from wfdsl.settings import option
from wfdsl.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class RandomRouter(Baseline):
    """A worker drawn for each question, alone."""

    name = "random-router"
    simplifies = "nothing: it is what routing has to beat; our choice"
    seed: int = option(0, "what the draws follow from, with the question and the run's seed", ge=0)

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Draw and ask; options as for `wfdsl.run`.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
        """
        chance = random.Random(f"router {self.seed} {options.get('seed')} {question_text(question)}")
        return Solution(await run(alone(chance.choice(workers_of(pool))), question, pool, **options))


@dataclass(frozen=True, slots=True)
class LongContext(Baseline):
    """One worker alone, with five times its token limit."""

    name = "long-context"
    source = "5x context of arXiv 2512.04388"
    simplifies = "nothing; thinking budgets stay as they are"
    worker: int = worker_option()
    factor: int = option(5, "times the worker's own token limit", ge=1)

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Ask once; options as for `wfdsl.run`. Budgets reserve the longer reply, and the journal tells it apart.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
        """
        entry = pool.entry(self.worker)
        entry = entry.model_copy(update={"max_tokens": entry.max_tokens * self.factor})
        wide = PoolWith(pool, self.worker, entry, _Wide(pool.worker(self.worker), entry.max_tokens))
        return Solution(await run(alone(self.worker), question, wide, **options))

    def dearest(self, pool: Pool) -> list[Workflow]:  # noqa: ARG002  (as every baseline)
        """As many calls as the one call has limits."""
        return [Workflow((Step(self.worker, SOLVE),) * self.factor)]


class _Wide:
    """A worker with another token limit in each call."""

    def __init__(self, worker: Worker, max_tokens: int) -> None:
        self.worker = getattr(worker, "worker", worker)
        """The worker itself, by which the layers around it tell whose limits count."""
        self._policed = worker
        self._max_tokens = max_tokens

    async def __call__(self, call: Call) -> Reply:
        return await self._policed(call._replace(settings={**call.settings, "max_tokens": self._max_tokens}))
