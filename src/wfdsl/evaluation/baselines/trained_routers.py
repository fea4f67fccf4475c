"""RouterDC: a small network over a question's vector, trained on which workers were right with two contrastive losses.

torch is imported when it is fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from wfdsl.evaluation.baselines.baseline import alone, workers_of
from wfdsl.evaluation.baselines.embeddings import embed
from wfdsl.evaluation.baselines.fitting import Fitted, Router, TrainingSet
from wfdsl.installation import require_packages
from wfdsl.language.workflow import Workflow

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

    async def fit(self, training_set: TrainingSet) -> Router:
        """Train projection and workers' vectors with both losses.

        Raises:
            UsageError: torch is not installed.
        """
        require_packages(self.name, ["torch"], "torch")
        import torch  # noqa: PLC0415  (an extra)

        workers = workers_of(training_set.pool)
        results = await training_set.results(map(alone, workers))
        good, bad = (torch.tensor([[one.right is way for one in row] for row in results]).T for way in (True, False))
        places = torch.from_numpy(embed(training_set.questions)).float()
        groups = _clusters(places, torch)
        draws = torch.Generator().manual_seed(training_set.validation.seed)
        normal = torch.nn.functional.normalize

        def build() -> Any:
            project = torch.nn.Linear(places.shape[1], HIDDEN, bias=False)
            return torch.nn.ModuleList([project, torch.nn.Linear(HIDDEN, len(workers))])

        def score(net: Any, vectors: Any) -> Any:
            return normal(net[0](vectors), dim=-1) @ normal(net[1].weight, dim=-1).T

        def loss(net: Any, rows: Any) -> Any:
            likeness = score(net, places[rows]) / TEMPERATURE
            wrong = torch.where(bad[rows], likeness.exp(), 0.0).sum(1, keepdim=True)
            by_worker = torch.where(good[rows], torch.log1p(wrong / likeness.exp()), 0.0).sum() / len(rows)
            vectors, kinds = normal(net[0](places[rows]), dim=-1), groups[rows]
            chosen = torch.randint(len(rows), (len(rows), OTHERS + 1), generator=draws)
            alike = (vectors[:, None, :] * vectors[chosen]).sum(-1) / TEMPERATURE
            same = kinds[chosen] == kinds[:, None]
            others = torch.where(same, 0.0, alike.exp()).sum(1, keepdim=True)
            by_group = torch.where(same, torch.log1p(others / alike.exp()), 0.0).sum() / len(rows)
            return by_worker + by_group

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
