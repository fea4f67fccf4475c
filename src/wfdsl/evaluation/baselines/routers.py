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
from typing import Final

from wfdsl.evaluation.baselines.baseline import alone, chain, workers_of
from wfdsl.evaluation.baselines.embeddings import Vectors, embed, nearest
from wfdsl.evaluation.baselines.fitting import Fitted, Router, TrainingSet
from wfdsl.evaluation.baselines.teams import TEAMS, team
from wfdsl.evaluation.trials import Trial
from wfdsl.language.workflow import Workflow
from wfdsl.settings import option
from wfdsl.workers.pool import Pool

NEIGHBOURS: Final = (5, 10, 20, 40, 80, 160)
"""Numbers of neighbours to choose between; our choice."""


@dataclass(frozen=True, slots=True)
class BestWorker(Fitted):
    """The worker that was right most often on validation tasks, for every question."""

    name = "best-worker-router"

    async def fit(self, training_set: TrainingSet) -> Router:
        """Count."""
        workers = workers_of(training_set.pool)
        counts = Counts.of(await training_set.results(map(alone, workers)))
        found = alone(workers[best(counts.overall)])
        return lambda _: found


@dataclass(frozen=True, slots=True)
class NearestNeighbours(Fitted):
    """The worker that was right most often on the validation tasks nearest to the question."""

    name = "knn-router"
    source = "in the role of RouterDC, arXiv 2409.19886"
    simplifies = "counts over neighbours of a fixed embedding instead of an encoder trained with contrastive losses"
    k: int | None = option(None, "validation questions that count as near; none: chosen by leaving one out", ge=1)

    async def fit(self, training_set: TrainingSet) -> Router:
        """Count, and place the questions."""
        workers = workers_of(training_set.pool)
        counts = Counts.of(await training_set.results(map(alone, workers)))
        places = embed(training_set.questions)
        k = self.k or fitting_k(counts, places)
        return lambda question: alone(workers[best(counts.near(nearest(embed([question])[0], places, k)))])


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

    outcomes: Sequence[Sequence[bool | None]]

    @classmethod
    def of(cls, results: Sequence[Sequence[Trial]]) -> Counts:
        """The outcomes of results."""
        return cls([[trial.right for trial in row] for row in results])

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
    return ranked(scores)[0]


def ranked(scores: Sequence[float]) -> list[int]:
    """The indices by falling score; of equal ones the earlier first."""
    return sorted(range(len(scores)), key=lambda at: -scores[at])


def _share(row: Sequence[bool | None], tasks: Sequence[int], *, prior: float, weight: float) -> float:
    judged = [row[task] for task in tasks if row[task] is not None]
    known = len(judged) + weight
    return (sum(map(bool, judged)) + weight * prior) / known if known else 0.0


@dataclass(frozen=True, slots=True)
class Cascade(Fitted):
    """For each question a way to work together, then who, by counts on the nearest validation tasks."""

    name = "cascade-router"
    calls = "1 to 5; to fit: (workers + 32) * limit"
    source = "in the spirit of MASRouter, arXiv 2502.11133"
    simplifies = "counts instead of trained networks; eleven ways to work together, our own roles"
    k: int | None = option(None, "validation questions that count as near; none: chosen by leaving one out", ge=1)
    call_price: float = option(0.01, "the share of right answers that a further call has to be worth", ge=0, le=1)

    async def fit(self, training_set: TrainingSet) -> Router:
        """Count workers alone, then teams of the best of them."""
        workers = workers_of(training_set.pool)
        single = Counts.of(await training_set.results(map(alone, workers)))
        order = [workers[at] for at in ranked(single.overall)]
        teams = Counts.of(await training_set.results(team(shape, order) for shape in TEAMS))
        places = embed(training_set.questions)
        k = self.k or fitting_k(single, places)

        def chosen(question: str) -> Workflow:
            near = nearest(embed([question])[0], places, k)
            pairs = zip(TEAMS, teams.near(near), strict=True)
            shape = TEAMS[best([share - self.call_price * len(shape) for shape, share in pairs])]
            return team(shape, [workers[at] for at in ranked(single.near(near))])

        return chosen

    def dearest(self, pool: Pool) -> list[Workflow]:
        """The largest team, of each worker."""
        return [chain(worker, max(map(len, TEAMS))) for worker in workers_of(pool)]

    def fit_calls(self, pool: Pool, tasks: int) -> int:
        """Each worker alone, then each team of more than one."""
        teams = sum(len(shape) for shape in TEAMS if len(shape) > 1)
        return (len(workers_of(pool)) + teams) * tasks
