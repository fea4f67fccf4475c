"""The best workflow that a search finds on validation tasks: one for all questions, or one for each kind of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from wfdsl.evaluation.baselines.embeddings import EmbeddingName, Vectors, embed, nearest
from wfdsl.evaluation.baselines.fitted import Fixed, Method, TrainingSet, WorkflowRouter
from wfdsl.evaluation.baselines.routers import Counts, ranked
from wfdsl.evaluation.baselines.search import CHILDREN, Search
from wfdsl.evaluation.baselines.single_worker import alone, workers_of
from wfdsl.evaluation.baselines.teams import TEAMS, team
from wfdsl.language.workflow import Workflow
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool

"""What questions of a kind have in common: a field of a task's metadata, or else the task's own kind."""
SHAPES: Final = tuple(shape for shape in TEAMS if len(shape) > 1)
NEIGHBOURS: Final = 5
"""Validation questions whose kinds decide the kind of a question; our choice."""


@dataclass(frozen=True, slots=True)
class BestFixed(Method):
    """One workflow for all questions."""

    name: ClassVar[str] = "best-fixed"
    max_steps: int = 5
    search_calls: int = 60_000
    """Calls after which no new part of the search begins, apart from where it begins."""
    call_price: float = 0.0
    """The share of right answers that a further call has to be worth."""

    async def fit(self, training_set: TrainingSet) -> Fixed:
        """Search."""
        everything = range(len(training_set.validation.tasks))
        found = await self._search(training_set, everything, self.search_calls, await self._start(training_set))
        return Fixed(found[0])

    async def _start(self, training_set: TrainingSet) -> list[Workflow]:
        """Each worker alone, and teams of the best of them."""
        workers = workers_of(training_set.pool)
        counts = Counts.of(await training_set.results(map(alone, workers)))
        order = [workers[at] for at in ranked(counts.overall)]
        teams = [team(shape, order) for shape in SHAPES if len(shape) <= self.max_steps]
        return [*map(alone, workers), *teams]

    async def _search(
        self, training_set: TrainingSet, tasks: Sequence[int], calls: int, start: Sequence[Workflow]
    ) -> list[Workflow]:
        async def measure(workflow: Workflow, asked: Sequence[int]) -> list[bool | None]:
            [results] = await training_set.results([workflow], asked)
            return [result.right for result in results]

        chance = random.Random(f"search {training_set.validation.key}")
        search = Search(
            measure=measure,
            tasks=chance.sample(tasks, len(tasks)),
            workers=workers_of(training_set.pool),
            calls=calls,
            call_price=self.call_price,
            max_steps=self.max_steps,
            chance=chance,
        )
        return await search.run(start)

    def most_calls(self, pool: Pool) -> int:  # noqa: ARG002  (as every method)
        """Those of the longest workflow."""
        return self.max_steps

    def fit_calls(self, pool: Pool, tasks: int) -> int:
        """Where the search begins, its budget, and the part of it that may be over the budget."""
        start = len(workers_of(pool)) + sum(len(shape) for shape in SHAPES)
        return start * tasks + self.search_calls + CHILDREN * self.max_steps * tasks


@dataclass(frozen=True, slots=True)
class BestFixedByKind(BestFixed):
    """One workflow for each kind of question; the kind is that of the nearest validation questions."""

    name: ClassVar[str] = "best-fixed-by-kind"
    embedding: EmbeddingName = "hashing"

    async def fit(self, training_set: TrainingSet) -> ByKind:  # type: ignore[override]  # another router
        """Search for all questions with half of the calls, and from there for each kind with the rest."""
        kinds = [kind_of(task) for task in training_set.validation.tasks]
        start = await self._start(training_set)
        common = await self._search(training_set, range(len(kinds)), self.search_calls // 2, start)
        known, calls = list(dict.fromkeys([*start, *common])), self.search_calls // 2 // len(set(kinds))
        found = {}
        for kind in dict.fromkeys(kinds):
            own = [at for at, each in enumerate(kinds) if each == kind]
            found[kind] = (await self._search(training_set, own, calls, known))[0]
        return ByKind(found, kinds, embed(training_set.questions, self.embedding), self.embedding)


def kind_of(task: Task) -> str:
    """The kind of a task's question."""
    return str(task.metadata.get("domain") or task.kind)


@dataclass(frozen=True, slots=True)
class ByKind(WorkflowRouter):
    """Workflows by kind, and the kinds of the validation questions by their places."""

    workflows: dict[str, Workflow]
    kinds: Sequence[str]
    places: Vectors
    embedding: EmbeddingName

    def workflow_for(self, question: str) -> Workflow:
        """The workflow for the kind that most of the nearest questions have; of equally many that of the nearest."""
        [place] = embed([question], self.embedding)
        near = Counter(self.kinds[at] for at in nearest(place, self.places, NEIGHBOURS))
        return self.workflows[max(near, key=near.__getitem__)]
