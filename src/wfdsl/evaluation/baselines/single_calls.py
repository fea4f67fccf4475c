"""Baselines of one call: a worker that is drawn, or one with a larger token limit; and workflows that are drawn."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from wfdsl.conductor.policy import Solution
from wfdsl.conductor.prompt import question_text
from wfdsl.evaluation.baselines.answer_selection import WrappedPool
from wfdsl.evaluation.baselines.baseline import SOLVE, Baseline, alone, worker_option, workers_of
from wfdsl.evaluation.baselines.teams import SUBTASKS
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.running import run
from wfdsl.language.tree import ALL, Access
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Call, Reply, Worker
from wfdsl.settings import option
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool

_PLANS: Final = 2
"""The most plans of a workflow; our choice."""


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


def random_workflow(chance: random.Random, workers: Sequence[int], *, max_steps: int = 5) -> Workflow:
    """A workflow of one to `max_steps` steps, as many as often; workers are drawn evenly.

    Attempts see the plans, second looks everything.
    """
    count = chance.randint(1, max_steps)
    plans = chance.randint(0, min(_PLANS, count - 1))
    attempts = chance.randint(1, count - plans)
    looks = "VRA" if attempts > 1 else "VR"
    steps: list[tuple[str, Access]] = [(SUBTASKS["P"], ())] * plans + [(SOLVE, tuple(range(plans)))] * attempts
    steps += [(SUBTASKS[chance.choice(looks)], ALL) for _ in range(count - len(steps))]
    return Workflow(tuple(Step(chance.choice(workers), subtask, access) for subtask, access in steps))


@dataclass(frozen=True, slots=True)
class LongContext(Baseline):
    """One worker alone, with five times its token limit."""

    name = "long-context"
    source = "5x context of arXiv 2512.04388"
    simplifies = "nothing; thinking budgets stay as they are"
    worker: int = worker_option()
    factor: int = option(5, "times the worker's own token limit", ge=1)

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Ask once; options as for `wfdsl.run`.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
        """
        return Solution(await run(alone(self.worker), question, _WidePool(pool, self.factor), **options))

    def dearest(self, pool: Pool) -> list[Workflow]:  # noqa: ARG002  (as every baseline)
        """As many calls as the one call has limits."""
        return [Workflow((Step(self.worker, SOLVE),) * self.factor)]


class _WidePool(WrappedPool):
    """A pool whose workers may write longer replies."""

    def __init__(self, pool: Pool, factor: int) -> None:
        super().__init__(pool)
        self._factor = factor

    def entry(self, index: int) -> WorkerEntry:
        """The entry with the wider limit, which budgets reserve and the journal tells apart."""
        entry = super().entry(index)
        return entry.model_copy(update={"max_tokens": entry.max_tokens * self._factor})

    def worker(self, index: int) -> Worker:
        return _Wide(super().worker(index), self.entry(index).max_tokens)


class _Wide:
    """A worker with another token limit in each call."""

    def __init__(self, worker: Worker, max_tokens: int) -> None:
        self.worker = getattr(worker, "worker", worker)
        """The worker itself, by which the layers around it tell whose limits count."""
        self._policed = worker
        self._max_tokens = max_tokens

    async def __call__(self, call: Call) -> Reply:
        return await self._policed(call._replace(settings={**call.settings, "max_tokens": self._max_tokens}))
