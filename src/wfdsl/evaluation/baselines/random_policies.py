"""Random policies: a worker, or a whole valid workflow, drawn for each question.

The draw follows from the policy's seed, the question and the run's seed: the same evaluation draws the same, and each
repeat of a task draws again.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from wfdsl.conductor.policy import Solution
from wfdsl.conductor.prompt import question_text
from wfdsl.evaluation.baselines.single_worker import SOLVE, alone, workers_of
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.running import RunOptions, run
from wfdsl.language.tree import ALL, Access
from wfdsl.language.workflow import Step, Workflow
from wfdsl.workers.pool import Pool

Form: TypeAlias = Literal["sensible", "any"]
"""`sensible`: plans come first, then attempts, then second looks. `any`: whatever is valid."""

PLAN: Final = "Write a short plan for the task. Do not solve it."
LOOKS: Final = (
    "Verify what stands above, correct what is wrong, and give the final answer.",
    "Improve what stands above and give the final answer.",
    "Compare the answers above and give the soundest final answer.",
)
"""What second looks are asked for; our choice."""
_PLANS: Final = 2
"""The most plans of a sensible workflow; our choice."""


@dataclass(frozen=True, slots=True)
class RandomRouter:
    """A worker at random, alone: what routing has to beat."""

    seed: int = 0

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Draw a worker and ask it; options as for `wfdsl.run`.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
        """
        chance = _chance("router", self.seed, question, options)
        return Solution(await run(alone(chance.choice(workers_of(pool))), question, pool, **options))

    def most_calls(self, pool: Pool) -> int:  # noqa: ARG002  (as every policy that knows)
        """Calls of workers for a question."""
        return 1

    def describe(self) -> dict[str, Any]:
        """What it is, as plain values."""
        return {"kind": "random-router", "seed": self.seed}


@dataclass(frozen=True, slots=True)
class RandomWorkflow:
    """A valid workflow at random: the worth of a Conductor that has learned the form only."""

    seed: int = 0
    max_steps: int = 5
    form: Form = "sensible"

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Draw a workflow and run it; options as for `wfdsl.run`.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
        """
        chance = _chance("workflow", self.seed, question, options)
        workflow = random_workflow(chance, workers_of(pool), max_steps=self.max_steps, form=self.form)
        return Solution(await run(workflow, question, pool, **options))

    def most_calls(self, pool: Pool) -> int:  # noqa: ARG002  (as every policy that knows)
        """Calls of workers for a question at most."""
        return self.max_steps

    def describe(self) -> dict[str, Any]:
        """What it is, as plain values."""
        return {"kind": "random-workflow", "seed": self.seed, "max_steps": self.max_steps, "form": self.form}


def random_workflow(
    chance: random.Random, workers: Sequence[int], *, max_steps: int = 5, form: Form = "sensible"
) -> Workflow:
    """A workflow of one to `max_steps` steps, as many as often; workers are drawn evenly."""
    count = chance.randint(1, max_steps)
    steps = _any(chance, count) if form == "any" else _sensible(chance, count)
    return Workflow(tuple(Step(chance.choice(workers), subtask, access) for subtask, access in steps))


def _sensible(chance: random.Random, count: int) -> list[tuple[str, Access]]:
    """Attempts see the plans, second looks everything."""
    plans = chance.randint(0, min(_PLANS, count - 1))
    attempts = chance.randint(1, count - plans)
    looks = LOOKS if attempts > 1 else LOOKS[:-1]
    steps: list[tuple[str, Access]] = [(PLAN, ())] * plans + [(SOLVE, tuple(range(plans)))] * attempts
    return [*steps, *((chance.choice(looks), ALL) for _ in range(count - len(steps)))]


def _any(chance: random.Random, count: int) -> list[tuple[str, Access]]:
    return [(chance.choice((SOLVE, PLAN, *LOOKS)), _access(chance, at)) for at in range(count)]


def _access(chance: random.Random, at: int) -> Access:
    """Nothing, everything, or each earlier step as a coin falls: one time in three each."""
    kind = chance.randrange(3)
    if kind == 0:
        return ()
    return ALL if kind == 1 else tuple(earlier for earlier in range(at) if chance.random() < 0.5)


def _chance(what: str, seed: int, question: Question, options: RunOptions) -> random.Random:
    return random.Random(f"{what} {seed} {options.get('seed')} {question_text(question)}")
