"""The best workflow that a search finds on validation tasks: one for all questions, or one for each kind of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wfdsl.evaluation.baselines.baseline import alone, chain, workers_of
from wfdsl.evaluation.baselines.embeddings import embed, nearest
from wfdsl.evaluation.baselines.fitting import Fitted, Router, TrainingSet
from wfdsl.evaluation.baselines.routers import Counts, ranked
from wfdsl.evaluation.baselines.search import CHILDREN, Search
from wfdsl.evaluation.baselines.teams import TEAMS, team
from wfdsl.language.workflow import Workflow
from wfdsl.settings import option
from wfdsl.workers.pool import Pool

SHAPES: Final = tuple(shape for shape in TEAMS if len(shape) > 1)
NEIGHBOURS: Final = 5
"""Validation questions whose kinds decide the kind of a question; our choice."""


@dataclass(frozen=True, slots=True)
class BestFixed(Fitted):
    """The workflow that a search finds to be right most often on validation tasks, for every question."""

    name = "best-fixed"
    calls = "1 to max_steps; to fit: (workers + 32) * limit, and search_calls"
    simplifies = "nothing: it is what a Conductor that reads the question has to beat; our choice"
    search_calls: int = option(60_000, "calls of the search, on all validation tasks together", ge=1)
    max_steps: int = option(5, "the most steps", ge=1)

    async def fit(self, training_set: TrainingSet) -> Router:
        """Search."""
        everything = range(len(training_set.questions))
        [found, *_] = await self._search(training_set, everything, self.search_calls, await self._start(training_set))
        return lambda _: found

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
            max_steps=self.max_steps,
            chance=chance,
        )
        return await search.run(start)

    def dearest(self, pool: Pool) -> list[Workflow]:
        """The longest workflow of each worker."""
        return [chain(worker, self.max_steps) for worker in workers_of(pool)]

    def fit_calls(self, pool: Pool, tasks: int) -> int:
        """Where the search begins, its budget, and the part of it that may be over the budget."""
        start = len(workers_of(pool)) + sum(len(shape) for shape in SHAPES)
        return start * tasks + self.search_calls + CHILDREN * self.max_steps * tasks


@dataclass(frozen=True, slots=True)
class BestFixedByKind(BestFixed):
    """Such a workflow for each kind of question, and the kind of the nearest validation questions."""

    name = "best-fixed-by-kind"
    calls = "as `best-fixed`"
    simplifies = "nothing; a kind is a domain, which has to be known of the validation tasks; our choice"

    async def fit(self, training_set: TrainingSet) -> Router:
        """Search for all questions with half of the calls, and from there for each kind with the rest."""
        kinds = [task.domain for task in training_set.validation.tasks]
        start = await self._start(training_set)
        common = await self._search(training_set, range(len(kinds)), self.search_calls // 2, start)
        known, calls = list(dict.fromkeys([*start, *common])), self.search_calls // 2 // len(set(kinds))
        found = {}
        for kind in dict.fromkeys(kinds):
            own = [at for at, each in enumerate(kinds) if each == kind]
            found[kind] = (await self._search(training_set, own, calls, known))[0]
        places = embed(training_set.questions)

        def chosen(question: str) -> Workflow:
            near = Counter(kinds[at] for at in nearest(embed([question])[0], places, NEIGHBOURS))
            return found[max(near, key=near.__getitem__)]  # of equally many that of the nearest

        return chosen
