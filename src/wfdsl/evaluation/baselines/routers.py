"""Routers fitted on right and wrong answers: the best worker of all, the best one nearby, and a cascade of teams.

The cascade makes two choices for each question: how workers work together, and who they are. Each stage is a count: how
often its choices were right on the validation tasks nearest to the question. The first stage is counted with the
workers that are best overall, the second one by what workers do alone.

Source of the cascade: in the spirit of arXiv 2502.11133, whose stages are trained networks over a larger space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

from wfdsl.evaluation.baselines.embeddings import EmbeddingName, Vectors, embed, nearest
from wfdsl.evaluation.baselines.fitted import Fixed, Method, TrainingSet, WorkflowRouter
from wfdsl.evaluation.baselines.single_worker import alone, workers_of
from wfdsl.evaluation.baselines.teams import TEAMS, team
from wfdsl.evaluation.baselines.validation import Result
from wfdsl.language.workflow import Workflow
from wfdsl.workers.pool import Pool

NEIGHBOURS: Final = (5, 10, 20, 40, 80, 160)
"""Numbers of neighbours to choose between; our choice."""


@dataclass(frozen=True, slots=True)
class BestWorker(Method):
    """The worker that was right most often on the validation tasks, for every question."""

    name: ClassVar[str] = "best-worker-router"

    async def fit(self, training_set: TrainingSet) -> Fixed:
        """Count."""
        workers = workers_of(training_set.pool)
        counts = Counts.of(await training_set.results(map(alone, workers)))
        return Fixed(alone(workers[best(counts.overall)]))


@dataclass(frozen=True, slots=True)
class NearestNeighbours(Method):
    """The worker that was right most often on the validation tasks whose questions are nearest."""

    name: ClassVar[str] = "knn-router"
    k: int | None = None
    """How many questions count as near; None: what would have been best on the validation tasks themselves."""
    embedding: EmbeddingName = "hashing"

    async def fit(self, training_set: TrainingSet) -> Nearby:
        """Count, and place the questions."""
        workers = workers_of(training_set.pool)
        counts = Counts.of(await training_set.results(map(alone, workers)))
        places = embed(training_set.questions, self.embedding)
        return Nearby(workers, counts, places, self.k or fitting_k(counts, places), self.embedding)


@dataclass(frozen=True, slots=True)
class Nearby(WorkflowRouter):
    """Counts, by the questions' places."""

    workers: tuple[int, ...]
    counts: Counts
    places: Vectors
    k: int
    embedding: EmbeddingName

    def workflow_for(self, question: str) -> Workflow:
        """The worker that was best near the question, alone."""
        [place] = embed([question], self.embedding)
        return alone(self.workers[best(self.counts.near(nearest(place, self.places, self.k)))])


def fitting_k(counts: Counts, places: Vectors) -> int:
    """How many neighbours to count, by leaving one validation task out at a time; of equal numbers the largest."""
    around = [nearest(place, places, max(NEIGHBOURS) + 1) for place in places]
    others = [[other for other in near if other != task] for task, near in enumerate(around)]

    def right(k: int) -> int:
        picked = [best(counts.near(near[:k])) for near in others]
        return sum(bool(counts.outcomes[choice][task]) for task, choice in enumerate(picked))

    return max(NEIGHBOURS, key=lambda k: (right(k), k))


PRIOR: Final = 5.0
"""So many tasks' worth of the overall share are added to counts near a question; our choice."""


@dataclass(frozen=True)
class Counts:
    """Right and wrong by choice, then by task; None where nothing was judged."""

    outcomes: tuple[tuple[bool | None, ...], ...]

    @classmethod
    def of(cls, results: Sequence[Sequence[Result]]) -> Counts:
        """The outcomes of results."""
        return cls(tuple(tuple(result.right for result in row) for row in results))

    @cached_property
    def overall(self) -> list[float]:
        """The share of right answers of each choice; a choice of which nothing is known counts as always wrong."""
        return [_share(row, range(len(row)), prior=0.0, weight=0.0) for row in self.outcomes]

    def near(self, tasks: Sequence[int]) -> list[float]:
        """The same on some of the tasks, drawn towards the overall share."""
        pairs = zip(self.outcomes, self.overall, strict=True)
        return [_share(row, tasks, prior=share, weight=PRIOR) for row, share in pairs]


def best(scores: Sequence[float]) -> int:
    """The index of the highest score; of equal ones the earliest."""
    return max(range(len(scores)), key=lambda at: (scores[at], -at))


def ranked(scores: Sequence[float]) -> list[int]:
    """The indices by falling score; of equal ones the earlier first."""
    return sorted(range(len(scores)), key=lambda at: (-scores[at], at))


def _share(row: Sequence[bool | None], tasks: Sequence[int], *, prior: float, weight: float) -> float:
    judged = [row[task] for task in tasks if row[task] is not None]
    known = len(judged) + weight
    return (sum(map(bool, judged)) + weight * prior) / known if known else 0.0


@dataclass(frozen=True, slots=True)
class Cascade(Method):
    """Counts for two choices, one after the other."""

    name: ClassVar[str] = "cascade-router"
    k: int | None = None
    """How many questions count as near; None: what would have been best for choosing workers alone."""
    call_price: float = 0.01
    """The share of right answers that a further call has to be worth; our choice."""
    embedding: EmbeddingName = "hashing"

    async def fit(self, training_set: TrainingSet) -> Cascaded:
        """Count workers alone, then teams of the best of them."""
        workers = workers_of(training_set.pool)
        single = Counts.of(await training_set.results(map(alone, workers)))
        order = [workers[at] for at in ranked(single.overall)]
        teams = Counts.of(await training_set.results(team(shape, order) for shape in TEAMS))
        places = embed(training_set.questions, self.embedding)
        return Cascaded(workers, single, teams, places, self.k or fitting_k(single, places), self)

    def most_calls(self, pool: Pool) -> int:  # noqa: ARG002  (as every method)
        """Those of the largest team."""
        return max(map(len, TEAMS))

    def fit_calls(self, pool: Pool, tasks: int) -> int:
        """Each worker alone, then each team of more than one."""
        teams = sum(len(shape) for shape in TEAMS if len(shape) > 1)
        return (len(workers_of(pool)) + teams) * tasks


@dataclass(frozen=True, slots=True)
class Cascaded(WorkflowRouter):
    """Counts, by the questions' places."""

    workers: tuple[int, ...]
    single: Counts
    teams: Counts
    places: Vectors
    k: int
    method: Cascade

    def workflow_for(self, question: str) -> Workflow:
        """The team for a question."""
        [place] = embed([question], self.method.embedding)
        near = nearest(place, self.places, self.k)
        price = self.method.call_price
        worth = [share - price * len(shape) for shape, share in zip(TEAMS, self.teams.near(near), strict=True)]
        shape = TEAMS[best(worth)]
        return team(shape, [self.workers[at] for at in ranked(self.single.near(near))])
