"""`wfdsl eval room` on the gym: in how many of 20 samples its interval holds the exact optimum of one call.

Run with `python -m tests.benchmarks room`.
"""

from __future__ import annotations

import asyncio

from wfdsl.evaluation.equal_cost import room_among
from wfdsl.evaluation.evaluate import evaluate
from wfdsl.evaluation.policy_names import policies_of
from wfdsl.evaluation.statistics import TWO_SIDED
from wfdsl.evaluation.trials import Evaluation, Trial
from wfdsl_rl.gym.optimum import optimum
from wfdsl_rl.gym.source import pools, tasks

SAMPLES = 20
TASKS, REPEATS = 200, 2


def main() -> None:
    """Print the figures."""
    pool, exact, held = pools("gym/seven"), optimum(max_steps=1).value, 0
    for seed in range(SAMPLES):
        found: list[Trial] = []
        evaluation = Evaluation(
            policies=policies_of(["workers"], pool),
            tasks=tasks("gym/seven", TASKS, seed),
            pool=pool,
            repeats=REPEATS,
            seed=seed,
        )
        asyncio.run(evaluate(evaluation, keep=found.append))
        value, error = room_among(found, list(evaluation.policies)).choice.accuracy
        held += abs(value - exact) <= TWO_SIDED * (error or 0.0)
    print(f"{TASKS} questions, {REPEATS} repeats: the interval of the best choice of one call holds the exact", end=" ")
    print(f"{exact:.3f} in {held} of {SAMPLES} samples")
