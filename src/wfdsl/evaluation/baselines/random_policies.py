"""Random policies: a worker, or a whole valid workflow, drawn for each question.

The draw follows from the policy's seed, the question and the run's seed: the same evaluation draws the same, and each
repeat of a task draws again.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from wfdsl.conductor.policy import Solution
from wfdsl.conductor.prompt import question_text
from wfdsl.evaluation.baselines.baseline import SOLVE, Baseline, alone, chain, workers_of
from wfdsl.evaluation.baselines.teams import SUBTASKS
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.running import run
from wfdsl.language.tree import ALL, Access
from wfdsl.language.workflow import Step, Workflow
from wfdsl.settings import option
from wfdsl.workers.pool import Pool

_PLANS: Final = 2
"""The most plans of a workflow; our choice."""


class _Drawn(Baseline):
    """A policy that draws a workflow for each question."""

    __slots__ = ()

    def drawn(self, chance: random.Random, workers: Sequence[int]) -> Workflow:
        """The workflow of a question."""
        raise NotImplementedError

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Draw and run; options as for `wfdsl.run`.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
        """
        chance = random.Random(f"{self} {options.get('seed')} {question_text(question)}")
        return Solution(await run(self.drawn(chance, workers_of(pool)), question, pool, **options))


@dataclass(frozen=True, slots=True)
class RandomRouter(_Drawn):
    """A worker drawn for each question, alone."""

    name = "random-router"
    simplifies = "nothing: it is what routing has to beat; our choice"
    seed: int = option(0, "what the draws follow from", ge=0)

    def drawn(self, chance: random.Random, workers: Sequence[int]) -> Workflow:
        """One worker."""
        return alone(chance.choice(workers))


@dataclass(frozen=True, slots=True)
class RandomWorkflow(_Drawn):
    """A workflow drawn for each question: how many plans, attempts and second looks, and whose."""

    name = "random-workflow"
    calls = "1 to max_steps; attempts that no step sees are not run"
    simplifies = "nothing: it is what well-formed workflows are worth without a choice of workers; our choice"
    seed: int = option(0, "what the draws follow from", ge=0)
    max_steps: int = option(5, "the most steps", ge=1)

    def drawn(self, chance: random.Random, workers: Sequence[int]) -> Workflow:
        """A workflow."""
        return random_workflow(chance, workers, max_steps=self.max_steps)

    def dearest(self, pool: Pool) -> list[Workflow]:
        """The longest of each worker."""
        return [chain(worker, self.max_steps) for worker in workers_of(pool)]


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
