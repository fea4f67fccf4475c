"""Routers: the best worker nearby, a cascade of teams, RouterDC, and Smoothie, which needs no gold answers.

RouterDC trains a small network over the question's vector with two contrastive losses; torch is imported for it.

Smoothie estimates how good workers are from how near their replies are to each other. If replies scatter independently
around an unseen true one, the mean square distance of two workers' replies is the sum of their own distances from it.
Three workers give three such sums, and so each one's own distance; the mean is taken over all pairs of other workers.
The worker with the smallest distance is the best. Source: arXiv 2412.04692. `smoothie-independent` is its
Smoothie-Global, `smoothie-dependent` its Smoothie-Local.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, TypeVar

from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.baseline import SOLVE, SUBTASKS, Selection, alone, workers_of
from wfdsl.evaluation.baselines.fitting import WIDTH, Fitted, Router, TrainingSet, Vectors, embed
from wfdsl.evaluation.trials import Trial
from wfdsl.installation import require_packages
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Step, Workflow
from wfdsl.settings import option
from wfdsl.workers.pool import Pool

T = TypeVar("T")


def share_of(outcomes: Sequence[bool | None]) -> float:
    """The share of right ones among those judged; 0 if none is."""
    judged = [right for right in outcomes if right is not None]
    return sum(judged) / max(len(judged), 1)


@dataclass(frozen=True, slots=True)
class NearestNeighbours(Fitted):
    """The worker that was right most often on the validation tasks nearest to the question."""

    name = "knn-router"
    source = "in the role of MASRouter, arXiv 2502.11133, and RouterDC, arXiv 2409.19886"
    simplifies = "counts over neighbours of a fixed embedding instead of trained networks; one worker a question"
    k: int | None = option(None, "validation questions that count as near; none: the root of twice their number", ge=1)

    async def fitted(self, training_set: TrainingSet) -> Router:
        """Count, and place the questions."""
        workers, results = await training_set.alone()
        return lambda question: alone(self.ranked(workers, results, self.near(training_set, question))[0])

    def near(self, training_set: TrainingSet, question: str) -> list[int]:
        """The validation tasks that count as near."""
        return training_set.near(question, self.k or math.isqrt(2 * len(training_set.tasks)))

    @staticmethod
    def ranked(
        choices: Sequence[T], results: Sequence[Sequence[Trial]], tasks: Sequence[int], price: float = 0
    ) -> list[T]:
        """Choices by falling share of right answers on some tasks, less a price for each place in their order."""
        shares = [share_of([row[task].right for task in tasks]) - price * at for at, row in enumerate(results)]
        return [choices[at] for at in sorted(range(len(choices)), key=lambda at: -shares[at])]


TEAMS: Final = ("S", "SV", "PSV")
"""Ways to work together, by rising calls: alone, then checked, then after a plan. Our choice."""


def team(shape: str, order: Sequence[int]) -> Workflow:
    """The best worker solves, the second best checks and the third plans; each sees all that was done before."""
    seats = {"S": 0, "V": 1, "P": 2}
    return Workflow(tuple(Step(order[seats[kind] % len(order)], SUBTASKS[kind], ALL) for kind in shape))


@dataclass(frozen=True, slots=True)
class Cascade(NearestNeighbours):
    """For each question a way to work together, then who, by counts on the nearest validation tasks."""

    name = "cascade-router"
    calls = "1 to 3; to fit: (workers + 5) * limit"
    source = "in the spirit of MASRouter, arXiv 2502.11133"
    simplifies = "counts instead of trained networks; three ways to work together, our own roles"
    call_price: float = option(0.01, "the share of right answers that a further call has to be worth", ge=0, le=1)

    async def fitted(self, training_set: TrainingSet) -> Router:
        """Count workers alone, then teams of those that are best on all tasks."""
        workers, single = await training_set.alone()
        best = self.ranked(workers, single, range(len(training_set.tasks)))
        teams = [single[workers.index(best[0])], *await training_set.results(team(shape, best) for shape in TEAMS[1:])]

        def chosen(question: str) -> Workflow:
            near = self.near(training_set, question)
            return team(self.ranked(TEAMS, teams, near, self.call_price)[0], self.ranked(workers, single, near))

        return chosen

    def dearest(self, pool: Pool) -> list[Workflow]:
        """The largest team, of each worker."""
        return [team(TEAMS[-1], [worker]) for worker in workers_of(pool)]

    def fit_calls(self, pool: Pool) -> int:
        """Each worker alone, and the teams."""
        return NearestNeighbours.fit_calls(self, pool) + sum(map(len, TEAMS[1:])) * len(self.tasks)


HIDDEN: Final = 64
STEPS: Final = 50
LEARNING_RATE: Final = 3e-3
"""Of AdamW on all tasks at once; our choice, as the numbers above."""
OTHERS: Final = 15
"""Questions that each is compared with; our choice."""


@dataclass(frozen=True, slots=True)
class RouterDC(Fitted):
    """The worker whose vector is nearest to the question's, both trained with two contrastive losses."""

    name = "routerdc"
    source = "RouterDC, arXiv 2409.19886"
    simplifies = "a projection of a fixed embedding as encoder; right or wrong as scores; domains as clusters"

    async def fitted(self, training_set: TrainingSet) -> Router:
        """Train projection and workers' vectors with both losses.

        Raises:
            UsageError: torch is not installed.
        """
        require_packages(self.name, ["torch"], "torch")
        import torch  # noqa: PLC0415  (an extra)

        workers, results = await training_set.alone()
        good, bad = (torch.tensor([[one.right is way for one in row] for row in results]).T for way in (True, False))
        places = torch.from_numpy(training_set.places).float()
        domains = [task.domain for task in training_set.tasks]
        kinds = torch.tensor([domains.index(each) for each in domains])
        draws, normal = torch.Generator().manual_seed(self.seed), torch.nn.functional.normalize
        project, own = (torch.randn(size, HIDDEN, generator=draws) * WIDTH**-0.5 for size in (WIDTH, len(workers)))

        def scores(vectors: Any) -> Any:
            return vectors @ normal(own, dim=-1).T

        def contrast(likeness: Any, alike: Any, others: Any) -> Any:
            against = torch.where(others, likeness.exp(), 0.0).sum(1, keepdim=True)
            return torch.where(alike, torch.log1p(against / likeness.exp()), 0.0).sum() / len(likeness)

        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # in networks as small as these, threads only wait for each other
        optimizer = torch.optim.AdamW([project.requires_grad_(), own.requires_grad_()], lr=LEARNING_RATE)
        for _ in range(STEPS):
            vectors = normal(places @ project, dim=-1)
            drawn = torch.randint(len(places), (len(places), OTHERS), generator=draws)
            same, likeness = kinds[drawn] == kinds[:, None], (vectors[:, None, :] * vectors[drawn]).sum(-1)
            optimizer.zero_grad()
            (contrast(scores(vectors), good, bad) + contrast(likeness, same, ~same)).backward()
            optimizer.step()
        torch.set_num_threads(threads)

        def chosen(question: str) -> Workflow:
            with torch.no_grad():
                vector = normal(torch.from_numpy(embed([question])).float() @ project, dim=-1)
                return alone(workers[int(scores(vector).argmax())])

        return chosen


_RULE: Final = "Give the answer of the worker whose replies scatter least, here and on the nearest known questions."


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

            return Selection(workers, pick, _RULE, name)

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
    return ((vectors[:, None] - vectors) ** 2).sum(-1)


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
