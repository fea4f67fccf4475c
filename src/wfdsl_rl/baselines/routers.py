"""Routers that learn from right and wrong answers which worker to ask: the best one of all, or the best one nearby."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from wfdsl.conductor.prompt import question_text
from wfdsl_rl.baselines.alone import alone, workers_of
from wfdsl_rl.baselines.counting import Counts, best
from wfdsl_rl.baselines.embeddings import EmbeddingName, embed, nearest
from wfdsl_rl.baselines.learned import solved

if TYPE_CHECKING:
    from wfdsl.conductor.policy import Solution
    from wfdsl.interpreter.context import Question
    from wfdsl.interpreter.running import RunOptions
    from wfdsl.workers.pool import Pool
    from wfdsl_rl.baselines.embeddings import Vectors
    from wfdsl_rl.baselines.learned import Lessons


NEIGHBOURS: Final = (5, 10, 20, 40, 80, 160)
"""Numbers of neighbours to choose between; our choice."""


@dataclass(frozen=True, slots=True)
class BestWorker:
    """The worker that was right most often on the validation tasks, for every question."""

    name: ClassVar[str] = "best-worker-router"

    async def learn(self, lessons: Lessons) -> Always:
        """Count."""
        workers = workers_of(lessons.pool)
        counts = Counts.of(await lessons.results(map(alone, workers)))
        return Always(workers[best(counts.overall)])

    def most_calls(self, pool: Pool) -> int:  # noqa: ARG002  (as every method)
        """One worker is asked."""
        return 1

    def lesson_calls(self, pool: Pool) -> int:
        """Each worker alone."""
        return len(workers_of(pool))


@dataclass(frozen=True, slots=True)
class Always:
    """One worker for every question."""

    worker: int

    async def solve(self, question: Question, pool: Pool, options: RunOptions) -> Solution:
        """Ask it."""
        return await solved(alone(self.worker), question, pool, options)


@dataclass(frozen=True, slots=True)
class NearestNeighbours:
    """The worker that was right most often on the validation tasks whose questions are nearest."""

    name: ClassVar[str] = "knn-router"
    k: int | None = None
    """How many questions count as near; None: what would have been best on the validation tasks themselves."""
    embedding: EmbeddingName = "hashing"

    async def learn(self, lessons: Lessons) -> Nearby:
        """Count, and place the questions."""
        workers = workers_of(lessons.pool)
        counts = Counts.of(await lessons.results(map(alone, workers)))
        places = embed(lessons.questions, self.embedding)
        return Nearby(workers, counts, places, self.k or fitting_k(counts, places), self.embedding)

    def most_calls(self, pool: Pool) -> int:  # noqa: ARG002  (as every method)
        """One worker is asked."""
        return 1

    def lesson_calls(self, pool: Pool) -> int:
        """Each worker alone."""
        return len(workers_of(pool))


@dataclass(frozen=True, slots=True)
class Nearby:
    """Counts, by the questions' places."""

    workers: tuple[int, ...]
    counts: Counts
    places: Vectors
    k: int
    embedding: EmbeddingName

    def worker_for(self, question: str) -> int:
        """The ordinal of the worker to ask."""
        [place] = embed([question], self.embedding)
        return self.workers[best(self.counts.near(nearest(place, self.places, self.k)))]

    async def solve(self, question: Question, pool: Pool, options: RunOptions) -> Solution:
        """Ask the one for this question."""
        return await solved(alone(self.worker_for(question_text(question))), question, pool, options)


def fitting_k(counts: Counts, places: Vectors) -> int:
    """How many neighbours to count, by leaving one validation task out at a time; of equal numbers the largest."""
    around = [nearest(place, places, max(NEIGHBOURS) + 1) for place in places]
    others = [[other for other in near if other != task] for task, near in enumerate(around)]

    def right(k: int) -> int:
        picked = [best(counts.near(near[:k])) for near in others]
        return sum(bool(counts.outcomes[choice][task]) for task, choice in enumerate(picked))

    return max(NEIGHBOURS, key=lambda k: (right(k), k))
