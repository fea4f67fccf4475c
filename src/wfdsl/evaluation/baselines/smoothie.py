"""Smoothie: estimating how good workers are without gold answers, from how near their replies are to each other.

If replies scatter independently around an unseen true one, the mean square distance of two workers' replies is the sum
of their own distances from it. Three workers give three such sums, and so each one's own distance; the mean is taken
over all pairs of other workers. The worker with the smallest distance is the best.

Source: arXiv 2412.04692. `smoothie-independent` is its Smoothie-Global, `smoothie-dependent` its Smoothie-Local.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Final

from wfdsl.conductor.policy import Solution
from wfdsl.conductor.prompt import question_text
from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.answer_selection import picked_from, run_and_pick
from wfdsl.evaluation.baselines.embeddings import EmbeddingName, Vectors, embed, nearest
from wfdsl.evaluation.baselines.fitted import Fixed, Method, TrainingSet
from wfdsl.evaluation.baselines.single_worker import SOLVE, alone, workers_of
from wfdsl.evaluation.baselines.validation import Result
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.running import RunOptions
from wfdsl.language.workflow import Step
from wfdsl.workers.pool import Pool

RULE: Final = "Give the answer of the worker whose replies scatter least, here and on the nearest known questions."
_FEWEST: Final = 3


@dataclass(frozen=True, slots=True)
class SmoothieIndependent(Method):
    """One worker for all questions: the one whose replies to the validation questions scatter least."""

    name: ClassVar[str] = "smoothie-independent"
    embedding: EmbeddingName = "hashing"

    async def fit(self, training_set: TrainingSet) -> Fixed:
        """Compare the replies.

        Raises:
            UsageError: the pool has fewer than three workers, of which the method needs to hear.
        """
        workers = _enough(training_set.pool)
        scattered = await _scattered(training_set, workers, self.embedding)
        return Fixed(alone(workers[_least(_mean(scattered, len(workers)))]))


@dataclass(frozen=True, slots=True)
class SmoothieDependent(Method):
    """All workers answer, and the answer of one is given: the one whose replies scatter least near the question."""

    name: ClassVar[str] = "smoothie-dependent"
    k: int = 20
    """Validation questions that are looked at besides the question itself."""
    embedding: EmbeddingName = "hashing"

    async def fit(self, training_set: TrainingSet) -> Scattering:
        """Compare the replies, and place the questions.

        Raises:
            UsageError: the pool has fewer than three workers, of which the method needs to hear.
        """
        workers = _enough(training_set.pool)
        scattered = await _scattered(training_set, workers, self.embedding)
        return Scattering(
            workers, scattered, embed(training_set.questions, self.embedding), self, training_set.validation.key[:20]
        )

    def most_calls(self, pool: Pool) -> int:
        """All workers are asked."""
        return len(workers_of(pool))


@dataclass(frozen=True, slots=True)
class Scattering:
    """How far workers' replies were from each other, by the questions' places."""

    workers: tuple[int, ...]
    scattered: list[dict[tuple[int, int], float]]
    """For each question the square distance of each two workers' replies, by their indices in `workers`."""
    places: Vectors
    method: SmoothieDependent
    key: str
    """The validation tasks, as a hash."""

    async def solve(self, question: Question, pool: Pool, options: RunOptions) -> Solution:
        """Ask all, and pick."""

        async def pick(replies: Sequence[str]) -> int:
            return self.picked(question_text(question), replies)

        workflow = picked_from([Step(worker, SOLVE) for worker in self.workers], RULE)
        picker = f"smoothie@{self.method.embedding} {self.method.k} {self.key}"
        return await run_and_pick(workflow, pick, question, pool, options, picker=picker)

    def picked(self, question: str, replies: Sequence[str]) -> int:
        """The index of the worker whose reply is given."""
        [place] = embed([question], self.method.embedding)
        near = [self.scattered[at] for at in nearest(place, self.places, self.method.k)]
        here = _distances(embed(replies, self.method.embedding))
        return _least(_mean([here, *near], len(self.workers)))


def scatter(distances: dict[tuple[int, int], float], count: int) -> list[float]:
    """Each worker's mean square distance from the unseen truth, by the distances of all pairs: (ij + ik - jk) / 2."""
    own = []
    for one in range(count):
        others = [other for other in range(count) if other != one]
        sums = [
            distances[_pair(one, j)] + distances[_pair(one, k)] - distances[_pair(j, k)]
            for j, k in combinations(others, 2)
            if {_pair(one, j), _pair(one, k), _pair(j, k)} <= distances.keys()
        ]
        own.append(sum(sums) / (2 * len(sums)) if sums else float("inf"))
    return own


def _pair(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)


def _least(own: Sequence[float]) -> int:
    return min(range(len(own)), key=lambda at: (round(own[at], 9), at))


def _mean(scattered: Sequence[dict[tuple[int, int], float]], count: int) -> list[float]:
    """The scatter of each worker over some questions; pairs of which one has not replied are left out."""
    means = {}
    for pair in combinations(range(count), 2):
        known = [each[pair] for each in scattered if pair in each]
        if known:
            means[pair] = sum(known) / len(known)
    return scatter(means, count)


async def _scattered(
    training_set: TrainingSet, workers: Sequence[int], embedding: EmbeddingName
) -> list[dict[tuple[int, int], float]]:
    results = await training_set.results(map(alone, workers), graded=False)
    return [_of_task(replies, embedding) for replies in zip(*results, strict=True)]


def _of_task(results: Sequence[Result], embedding: EmbeddingName) -> dict[tuple[int, int], float]:
    said = [at for at, result in enumerate(results) if result.reply is not None]
    found = _distances(embed([results[at].reply or "" for at in said], embedding)) if said else {}
    return {(said[one], said[other]): distance for (one, other), distance in found.items()}


def _distances(vectors: Vectors) -> dict[tuple[int, int], float]:
    """The square distance of each two rows."""
    return {
        (one, other): float(((vectors[one] - vectors[other]) ** 2).sum())
        for one, other in combinations(range(len(vectors)), 2)
    }


def _enough(pool: Pool) -> tuple[int, ...]:
    workers = workers_of(pool)
    if len(workers) < _FEWEST:
        raise UsageError(
            f"Smoothie compares the replies of three workers or more, and pool {pool.name!r} has {len(workers)}: "
            "use another pool, or another baseline"
        )
    return workers
