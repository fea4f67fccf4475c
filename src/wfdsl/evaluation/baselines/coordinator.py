"""TRINITY's coordinator in its simplest form: a small head that says who does what in each turn, evolved by sep-CMA-ES.

In each turn the head scores the workers and three roles (thinker, worker, verifier) by the question's vector and the
turn; the highest scores decide. The turns end after a verifier. The head's weights are evolved on validation tasks.

Source: arXiv 2512.04695. There the vector is a language model's hidden state of the whole conversation; here it is the
question's embedding, reduced by principal components, so that all turns are known before the first call.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from wfdsl.evaluation.baselines.embeddings import EmbeddingName, Vectors, embed
from wfdsl.evaluation.baselines.fitted import Method, TrainingSet, WorkflowRouter
from wfdsl.evaluation.baselines.single_worker import workers_of
from wfdsl.evaluation.baselines.teams import SUBTASKS
from wfdsl.installation import require_packages
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Step, Workflow
from wfdsl.workers.pool import Pool

if TYPE_CHECKING:  # an optional package
    import numpy as np

ROLES: Final = "PSV"
"""Thinker, worker and verifier, as letters of `SUBTASKS`."""
COMPONENTS: Final = 6
"""Principal components of the questions' vectors; our choice."""
BATCH: Final = 32
"""Validation tasks that a generation is judged on; our choice."""
PATIENCE: Final = 40
"""Generations without a new run after which the evolution has converged; our choice."""
SIGMA: Final = 0.5
"""The standard deviation of the first generation; our choice."""


@dataclass(frozen=True, slots=True)
class Coordinator(Method):
    """The head, and how it is evolved."""

    name: ClassVar[str] = "trinity"
    turns: int = 5
    search_calls: int = 60_000
    """Calls after which no new generation begins."""
    call_price: float = 0.0
    """The share of right answers that a further call has to be worth."""
    embedding: EmbeddingName = "hashing"

    async def fit(self, training_set: TrainingSet) -> Coordinated:
        """Evolve the head.

        Raises:
            UsageError: a package is not installed.
        """
        require_packages("trinity", ["cmaes"], "eval")
        import numpy as np  # noqa: PLC0415  (an extra)
        from cmaes import SepCMA  # noqa: PLC0415  (as above)

        workers, places = workers_of(training_set.pool), embed(training_set.questions, self.embedding)
        mean = places.mean(axis=0)
        _, sizes, axes = np.linalg.svd(places - mean, full_matrices=False)
        count = min(COMPONENTS, int((sizes > 1e-6 * sizes[0]).sum()))
        kept = axes[:count].T / (sizes[:count] / len(places) ** 0.5)
        head = Coordinated(workers, mean, kept, np.zeros(0), self.turns, self.embedding)
        features = head.features(places)
        width = (len(workers) + len(ROLES)) * (features.shape[1] + self.turns)
        evolution = SepCMA(mean=np.zeros(width), sigma=SIGMA, seed=training_set.validation.seed)
        chance = random.Random(f"trinity {training_set.validation.key}")
        spent = [0]
        while spent[-1] < self.search_calls and (len(spent) <= PATIENCE or spent[-1] > spent[-PATIENCE]):
            tasks = chance.sample(range(len(places)), min(BATCH, len(places)))
            weights = [evolution.ask() for _ in range(evolution.population_size)]
            pairs = [(head.turns_for(features[at], each), at) for each in weights for at in tasks]
            results = await training_set.results_of_pairs(pairs)
            gains = [
                float(result.right or 0) - self.call_price * len(workflow)
                for (workflow, _), result in zip(pairs, results, strict=True)
            ]
            losses = [-sum(gains[at : at + len(tasks)]) for at in range(0, len(gains), len(tasks))]
            evolution.tell(list(zip(weights, losses, strict=True)))
            spent.append(training_set.spent.calls)
        return Coordinated(workers, mean, kept, evolution.mean, self.turns, self.embedding)

    def most_calls(self, pool: Pool) -> int:  # noqa: ARG002  (as every method)
        """One for each turn."""
        return self.turns

    def fit_calls(self, pool: Pool, tasks: int) -> int:
        """The budget, and the last generation, which may be over it."""
        width = (len(workers_of(pool)) + len(ROLES)) * (COMPONENTS + 1 + self.turns)
        population = 4 + int(3 * math.log(width))
        return self.search_calls + population * min(BATCH, tasks) * self.turns


@dataclass(frozen=True, slots=True, eq=False)
class Coordinated(WorkflowRouter):
    """A head with its weights."""

    workers: tuple[int, ...]
    mean: Vectors
    axes: Vectors
    """Principal components, each scaled to a standard deviation of 1."""
    weights: Vectors
    turns: int
    embedding: EmbeddingName

    def workflow_for(self, question: str) -> Workflow:
        """The turns for a question."""
        return self.turns_for(self.features(embed([question], self.embedding))[0], self.weights)

    def features(self, places: Vectors) -> Vectors:
        """What the head sees of questions: their components, and a constant."""
        import numpy as np  # noqa: PLC0415  (an extra)

        return np.concatenate([(places - self.mean) @ self.axes, np.ones((len(places), 1))], axis=1)

    def turns_for(self, features: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> Workflow:
        """The turns that weights give; each sees all before it."""
        table = weights.reshape(len(self.workers) + len(ROLES), -1)
        fixed, by_turn = table[:, : len(features)] @ features, table[:, len(features) :]
        steps = []
        for turn in range(self.turns):
            scores = fixed + by_turn[:, turn]
            worker = self.workers[int(scores[: len(self.workers)].argmax())]
            role = ROLES[int(scores[len(self.workers) :].argmax())]
            steps.append(Step(worker, SUBTASKS[role], ALL if turn else ()))
            if role == "V":
                break
        return Workflow(tuple(steps))
