"""Routers: the best worker nearby, a cascade of teams, RouterDC, and Smoothie, which needs no gold answers.

The cascade makes two choices for each question: how workers work together, and who they are. Each stage is a count: how
often its choices were right on the validation tasks nearest to the question. The first stage is counted with the
workers that are best overall, the second one by what workers do alone.

RouterDC trains a small network over the question's vector with two contrastive losses; torch is imported for it.

Smoothie estimates how good workers are from how near their replies are to each other. If replies scatter independently
around an unseen true one, the mean square distance of two workers' replies is the sum of their own distances from it.
Three workers give three such sums, and so each one's own distance; the mean is taken over all pairs of other workers.
The worker with the smallest distance is the best. Source: arXiv 2412.04692. `smoothie-independent` is its
Smoothie-Global, `smoothie-dependent` its Smoothie-Local.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.baseline import SOLVE, TEAMS, alone, chain, team, workers_of
from wfdsl.evaluation.baselines.fitting import Fitted, Router, TrainingSet, Vectors, embed, nearest
from wfdsl.evaluation.baselines.voting import Selection
from wfdsl.evaluation.trials import Trial
from wfdsl.installation import require_packages
from wfdsl.language.workflow import Step, Workflow
from wfdsl.settings import option
from wfdsl.workers.pool import Pool

NEIGHBOURS: Final = (5, 10, 20, 40, 80, 160)
"""Numbers of neighbours to choose between; our choice."""
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
        return [share_of(row) for row in self.outcomes]

    def near(self, tasks: Sequence[int]) -> list[float]:
        """The same on some of the tasks, drawn towards the overall share."""
        pairs = zip(self.outcomes, self.overall, strict=True)
        return [share_of([row[task] for task in tasks], share, PRIOR) for row, share in pairs]


def share_of(outcomes: Sequence[bool | None], prior: float = 0.0, weight: float = 0.0) -> float:
    """The share of right ones among those judged, drawn towards a prior that weighs as much as so many of them."""
    judged = [right for right in outcomes if right is not None]
    known = len(judged) + weight
    return (sum(judged) + weight * prior) / known if known else 0.0


def ranked(scores: Sequence[float]) -> list[int]:
    """The indices by falling score; of equal ones the earlier first."""
    return sorted(range(len(scores)), key=lambda at: -scores[at])


def fitting_k(counts: Counts, places: Vectors) -> int:
    """How many neighbours to count, by leaving one validation task out at a time; of equal numbers the largest."""
    around = [nearest(place, places, max(NEIGHBOURS) + 1) for place in places]
    others = [[other for other in near if other != task] for task, near in enumerate(around)]

    def right(k: int) -> int:
        picked = [ranked(counts.near(near[:k]))[0] for near in others]
        return sum(bool(counts.outcomes[choice][task]) for task, choice in enumerate(picked))

    return max(NEIGHBOURS, key=lambda k: (right(k), k))


@dataclass(frozen=True, slots=True)
class NearestNeighbours(Fitted):
    """The worker that was right most often on the validation tasks nearest to the question."""

    name = "knn-router"
    source = "in the role of RouterDC, arXiv 2409.19886"
    simplifies = "counts over neighbours of a fixed embedding instead of an encoder trained with contrastive losses"
    k: int | None = option(None, "validation questions that count as near; none: chosen by leaving one out", ge=1)

    async def fitted(self, training_set: TrainingSet) -> Router:
        """Count, and place the questions."""
        workers, results = await training_set.alone()
        counts = Counts.of(results)
        k = self.k or fitting_k(counts, training_set.places)
        return lambda question: alone(workers[ranked(counts.near(training_set.near(question, k)))[0]])


@dataclass(frozen=True, slots=True)
class Cascade(Fitted):
    """For each question a way to work together, then who, by counts on the nearest validation tasks."""

    name = "cascade-router"
    calls = "1 to 5; to fit: (workers + 32) * limit"
    source = "in the spirit of MASRouter, arXiv 2502.11133"
    simplifies = "counts instead of trained networks; eleven ways to work together, our own roles"
    k: int | None = option(None, "validation questions that count as near; none: chosen by leaving one out", ge=1)
    call_price: float = option(0.01, "the share of right answers that a further call has to be worth", ge=0, le=1)

    async def fitted(self, training_set: TrainingSet) -> Router:
        """Count workers alone, then teams of the best of them."""
        workers, results = await training_set.alone()
        single = Counts.of(results)
        order = [workers[at] for at in ranked(single.overall)]
        teams = Counts.of(await training_set.results(team(shape, order) for shape in TEAMS))
        k = self.k or fitting_k(single, training_set.places)

        def chosen(question: str) -> Workflow:
            near = training_set.near(question, k)
            pairs = zip(TEAMS, teams.near(near), strict=True)
            shape = TEAMS[ranked([share - self.call_price * len(shape) for shape, share in pairs])[0]]
            return team(shape, [workers[at] for at in ranked(single.near(near))])

        return chosen

    def dearest(self, pool: Pool) -> list[Workflow]:
        """The largest team, of each worker."""
        return [chain(worker, max(map(len, TEAMS))) for worker in workers_of(pool)]

    def fit_calls(self, pool: Pool) -> int:
        """Each worker alone, then each team of more than one."""
        teams = sum(len(shape) for shape in TEAMS if len(shape) > 1)
        return (len(workers_of(pool)) + teams) * len(self.tasks)


HIDDEN: Final = 64
EPOCHS: Final = 150
"""At most."""
FOLDS: Final = 5
"""One part of so many is left out to choose the number of epochs."""
LEARNING_RATE: Final = 3e-3
WEIGHT_DECAY: Final = 1e-2
"""Of AdamW on all tasks at once; our choice, as the numbers above."""
CLUSTERS: Final = 16
"""Groups of like questions, which the second loss keeps together."""
OTHERS: Final = 15
"""Questions of other groups that each is compared with."""
TEMPERATURE: Final = 0.1
"""Of both losses, on cosines; our choice."""


@dataclass(frozen=True, slots=True)
class RouterDC(Fitted):
    """The worker whose vector is nearest to the question's, both trained with two contrastive losses."""

    name = "routerdc"
    source = "RouterDC, arXiv 2409.19886"
    simplifies = "a projection of a fixed embedding instead of an encoder that is trained; right or wrong as scores"

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
        groups = _clusters(places, torch)
        draws = torch.Generator().manual_seed(self.seed)
        normal = torch.nn.functional.normalize

        def build() -> Any:
            project = torch.nn.Linear(places.shape[1], HIDDEN, bias=False)
            return torch.nn.ModuleList([project, torch.nn.Linear(HIDDEN, len(workers))])

        def score(net: Any, vectors: Any) -> Any:
            return normal(net[0](vectors), dim=-1) @ normal(net[1].weight, dim=-1).T

        def contrast(likeness: Any, alike: Any, others: Any) -> Any:
            against = torch.where(others, likeness.exp(), 0.0).sum(1, keepdim=True)
            return torch.where(alike, torch.log1p(against / likeness.exp()), 0.0).sum() / len(likeness)

        def loss(net: Any, rows: Any) -> Any:
            vectors, kinds = normal(net[0](places[rows]), dim=-1), groups[rows]
            chosen = torch.randint(len(rows), (len(rows), OTHERS + 1), generator=draws)
            likeness = (vectors[:, None, :] * vectors[chosen]).sum(-1) / TEMPERATURE
            same = kinds[chosen] == kinds[:, None]
            by_worker = contrast(score(net, places[rows]) / TEMPERATURE, good[rows], bad[rows])
            return by_worker + contrast(likeness, same, ~same)

        net = _trained(build, loss, len(places), torch)

        def chosen(question: str) -> Workflow:
            with torch.no_grad():
                scores = score(net, torch.from_numpy(embed([question])).float())[0]
            return alone(workers[int(scores.argmax())])

        return chosen


def _trained(build: Callable[[], Any], loss: Callable[[Any, Any], Any], tasks: int, torch: Any) -> Any:
    """A network that is trained on all tasks, for as long as was best for a part of them when trained on the others.

    Nothing else runs meanwhile, so routers that are fitted at the same time begin with the same weights as alone.
    """
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # in networks as small as these, threads only wait for each other
    rows = torch.arange(tasks)
    held = rows % FOLDS == 0 if tasks >= FOLDS else rows < 0
    left_out: list[float] = []
    if held.any():
        for net in _epochs(build(), loss, rows[~held], EPOCHS, torch):
            with torch.no_grad():
                left_out.append(float(loss(net, rows[held])))
    count = left_out.index(min(left_out)) + 1 if left_out else EPOCHS
    *_, net = _epochs(build(), loss, rows, count, torch)
    torch.set_num_threads(threads)
    return net


def _epochs(net: Any, loss: Callable[[Any, Any], Any], rows: Any, count: int, torch: Any) -> Iterator[Any]:
    """The network after each epoch, which is one step on all rows."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    for _ in range(count):
        optimizer.zero_grad()
        loss(net, rows).backward()
        optimizer.step()
        yield net


def _clusters(places: Any, torch: Any) -> Any:
    """The group of each question, by spherical k-means from evenly chosen questions."""
    count = min(CLUSTERS, len(places))
    centres = places[torch.linspace(0, len(places) - 1, count).long()]
    groups = (places @ centres.T).argmax(1)
    for _ in range(20):
        sums = torch.zeros_like(centres).index_add_(0, groups, places)
        centres = torch.nn.functional.normalize(sums, dim=1)
        groups = (places @ centres.T).argmax(1)
    return groups


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
