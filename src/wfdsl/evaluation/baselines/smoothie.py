"""Smoothie: estimating how good workers are without gold answers, from how near their replies are to each other.

If replies scatter independently around an unseen true one, the mean square distance of two workers' replies is the sum
of their own distances from it. Three workers give three such sums, and so each one's own distance; the mean is taken
over all pairs of other workers. The worker with the smallest distance is the best.

Source: arXiv 2412.04692. `smoothie-independent` is its Smoothie-Global, `smoothie-dependent` its Smoothie-Local.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.baseline import SOLVE, alone, workers_of
from wfdsl.evaluation.baselines.fitting import Fitted, Router, TrainingSet, Vectors, embed
from wfdsl.evaluation.baselines.voting import Selection
from wfdsl.language.workflow import Step, Workflow
from wfdsl.settings import option
from wfdsl.workers.pool import Pool

RULE: Final = "Give the answer of the worker whose replies scatter least, here and on the nearest known questions."


@dataclass(frozen=True, slots=True)
class SmoothieIndependent(Fitted):
    """Without gold answers: the worker whose replies to validation questions are nearest to all others'."""

    name = "smoothie-independent"
    source = "Smoothie-Global, arXiv 2412.04692"
    simplifies = "replies only are embedded, without the question, which shifts all alike"

    async def fitted(self, training_set: TrainingSet) -> Router:
        """Compare the replies; raises what `compared` does."""
        workers, known = await compared(training_set)
        found = alone(workers[_least(known)])
        return lambda _: found


@dataclass(frozen=True, slots=True)
class SmoothieDependent(Fitted):
    """Without gold answers: all workers answer, and the one whose replies are nearest to the others' here and on the
    nearest validation questions is taken."""

    name = "smoothie-dependent"
    calls = "workers of the pool; to fit: workers * limit"
    source = "Smoothie-Local, arXiv 2412.04692"
    simplifies = "as above; the question itself counts as much as each neighbour"
    k: int = option(20, "validation questions that are looked at besides the question itself", ge=1)

    async def fitted(self, training_set: TrainingSet) -> Router:
        """Compare the replies, and place the questions; raises what `compared` does."""
        workers, known = await compared(training_set)
        name = f"smoothie@{self.k} {training_set.key[:20]}"

        def chosen(question: str) -> Selection:
            async def pick(replies: Sequence[str]) -> int:
                near = [known[at] for at in training_set.near(question, self.k)]
                return _least([_distances(replies), *near])

            return Selection(workers, pick, RULE, name)

        return chosen

    def dearest(self, pool: Pool) -> list[Workflow]:
        """All workers are asked."""
        return [Workflow(tuple(Step(worker, SOLVE) for worker in workers_of(pool)))]


async def compared(training_set: TrainingSet) -> tuple[tuple[int, ...], list[Vectors]]:
    """The workers, and the distances of their replies by question.

    Raises:
        UsageError: the pool has fewer than three workers, of which the method needs to hear.
    """
    workers, pool = workers_of(training_set.pool), training_set.pool
    if len(workers) < 3:
        raise UsageError(
            f"Smoothie compares the replies of three workers or more, and pool {pool.name!r} has {len(workers)}: "
            "use another pool, or another baseline"
        )
    _, results = await training_set.alone()
    return workers, [_distances([trial.answer for trial in row]) for row in zip(*results, strict=True)]


def _distances(replies: Sequence[str | None]) -> Vectors:
    """The square distance of each two workers' replies to a question; not a number where one has not replied."""
    vectors = embed([reply or "" for reply in replies])
    vectors[[reply is None for reply in replies]] = float("nan")
    distances: Vectors = ((vectors[:, None] - vectors) ** 2).sum(-1)
    return distances


def _least(known: Sequence[Vectors]) -> int:
    """The worker that scatters least over some questions; pairs of which one has not replied are left out."""
    import numpy as np  # noqa: PLC0415  (an extra)

    own = scatter(np.ma.masked_invalid(known).mean(axis=0).filled(float("nan")))
    return min(range(len(own)), key=lambda at: round(own[at], 9))


def scatter(distances: Vectors) -> list[float]:
    """Each worker's mean square distance from the unseen truth, by the distances of all pairs: (ij + ik - jk) / 2."""
    own = []
    for one in range(len(distances)):
        pairs = combinations([other for other in range(len(distances)) if other != one], 2)
        sums = [float(distances[one, j] + distances[one, k] - distances[j, k]) for j, k in pairs]
        known = [each for each in sums if not math.isnan(each)]
        own.append(sum(known) / (2 * len(known)) if known else float("inf"))
    return own
