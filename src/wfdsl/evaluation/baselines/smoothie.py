"""Smoothie: estimating how good workers are without gold answers, from how near their replies are to each other.

If replies scatter independently around an unseen true one, the mean square distance of two workers' replies is the sum
of their own distances from it. Three workers give three such sums, and so each one's own distance; the mean is taken
over all pairs of other workers. The worker with the smallest distance is the best.

Source: arXiv 2412.04692. `smoothie-independent` is its Smoothie-Global, `smoothie-dependent` its Smoothie-Local.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias

from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.answer_selection import Selection
from wfdsl.evaluation.baselines.baseline import SOLVE, alone, workers_of
from wfdsl.evaluation.baselines.embeddings import embed, nearest
from wfdsl.evaluation.baselines.fitting import Fitted, Router, TrainingSet
from wfdsl.language.workflow import Step, Workflow
from wfdsl.settings import option
from wfdsl.workers.pool import Pool

RULE: Final = "Give the answer of the worker whose replies scatter least, here and on the nearest known questions."
_FEWEST: Final = 3
Distances: TypeAlias = Mapping[frozenset[int], float]
"""The square distance of each two workers' replies, by their places; a worker that has not replied is in none."""


@dataclass(frozen=True, slots=True)
class SmoothieIndependent(Fitted):
    """Without gold answers: the worker whose replies to validation questions are nearest to all others'."""

    name = "smoothie-independent"
    source = "Smoothie-Global, arXiv 2412.04692"
    simplifies = "replies only are embedded, without the question, which shifts all alike"

    async def fit(self, training_set: TrainingSet) -> Router:
        """Compare the replies.

        Raises:
            UsageError: the pool has fewer than three workers, of which the method needs to hear.
        """
        workers, known = await _compared(training_set)
        found = alone(workers[_least(known, len(workers))])
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

    async def fit(self, training_set: TrainingSet) -> Router:
        """Compare the replies, and place the questions.

        Raises:
            UsageError: the pool has fewer than three workers, of which the method needs to hear.
        """
        workers, known = await _compared(training_set)
        places = embed(training_set.questions)
        name = f"smoothie@{self.k} {training_set.validation.key[:20]}"

        def chosen(question: str) -> Selection:
            async def pick(replies: Sequence[str]) -> int:
                near = [known[at] for at in nearest(embed([question])[0], places, self.k)]
                return _least([_distances(replies), *near], len(workers))

            return Selection(workers, pick, RULE, name)

        return chosen

    def dearest(self, pool: Pool) -> list[Workflow]:
        """All workers are asked."""
        return [Workflow(tuple(Step(worker, SOLVE) for worker in workers_of(pool)))]


def scatter(distances: Distances, count: int) -> list[float]:
    """Each worker's mean square distance from the unseen truth, by the distances of all pairs: (ij + ik - jk) / 2."""
    own = []
    for one in range(count):
        sums = []
        for j, k in combinations([other for other in range(count) if other != one], 2):
            pairs = frozenset({one, j}), frozenset({one, k}), frozenset({j, k})
            if distances.keys() >= set(pairs):
                sums.append(distances[pairs[0]] + distances[pairs[1]] - distances[pairs[2]])
        own.append(sum(sums) / (2 * len(sums)) if sums else float("inf"))
    return own


def _least(known: Sequence[Distances], count: int) -> int:
    """The worker that scatters least over some questions; pairs of which one has not replied are left out."""
    means = {}
    for pair in map(frozenset, combinations(range(count), 2)):
        if found := [each[pair] for each in known if pair in each]:
            means[pair] = sum(found) / len(found)
    own = scatter(means, count)
    return min(range(count), key=lambda at: round(own[at], 9))


def _distances(replies: Sequence[str | None]) -> Distances:
    """The distances of replies to a question; None: the worker has not replied."""
    said = [at for at, reply in enumerate(replies) if reply is not None]
    vectors = embed([replies[at] or "" for at in said])
    return {
        frozenset({said[one], said[other]}): float(((vectors[one] - vectors[other]) ** 2).sum())
        for one, other in combinations(range(len(said)), 2)
    }


async def _compared(training_set: TrainingSet) -> tuple[tuple[int, ...], list[Distances]]:
    """The workers, and the distances of their replies by question."""
    workers, pool = workers_of(training_set.pool), training_set.pool
    if len(workers) < _FEWEST:
        raise UsageError(
            f"Smoothie compares the replies of three workers or more, and pool {pool.name!r} has {len(workers)}: "
            "use another pool, or another baseline"
        )
    results = await training_set.results(map(alone, workers))
    return workers, [_distances([trial.answer for trial in row]) for row in zip(*results, strict=True)]
