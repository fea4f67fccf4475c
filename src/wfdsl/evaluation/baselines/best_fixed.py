"""The best workflow that a search finds on validation tasks: one for all questions, or one for each kind of them.

A workflow's worth is its share of right answers. Each round of the search edits the best workflows so far at random;
all edits are run on a few tasks, the better ones on more, and the best on all. All runs of a task have the same seed,
so that an edit is compared with what it was made from under the same randomness. The algorithm is our choice:
successive halving (arXiv 1502.07943) inside a local search.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from wfdsl.evaluation.baselines.baseline import SOLVE, SUBTASKS, alone, workers_of
from wfdsl.evaluation.baselines.fitting import Fitted, Router, TrainingSet
from wfdsl.evaluation.baselines.routers import share_of
from wfdsl.evaluation.trials import Trial
from wfdsl.graph import graph_of
from wfdsl.language.workflow import Step, Workflow
from wfdsl.settings import option
from wfdsl.workers.pool import Pool

NEIGHBOURS: Final = 5
"""Validation questions whose kinds decide the kind of a question; our choice."""
CHILDREN: Final = 24
"""Edits that are tried in a round."""
PARENTS: Final = 4
"""The best workflows so far, which are edited."""
FIRST: Final = 60
"""Tasks that every edit is run on at first."""
FACTOR: Final = 4
"""After each part of a race so many times as many tasks, and so many times fewer workflows."""
_PATIENCE: Final = 200
"""Edits in a row that lead to nothing new before a search gives up."""


@dataclass(frozen=True, slots=True)
class BestFixed(Fitted):
    """The workflow that a search finds to be right most often on validation tasks, for every question."""

    name = "best-fixed"
    calls = "1 to max_steps; to fit: workers * limit, and search_calls"
    simplifies = "nothing: it is what a Conductor that reads the question has to beat; our choice"
    search_calls: int = option(60_000, "calls of the search, on all validation tasks together", ge=1)
    max_steps: int = option(5, "the most steps", ge=1)

    async def fitted(self, training_set: TrainingSet) -> Router:
        """Search."""
        [found, *_] = await self._search(training_set, range(len(training_set.tasks)), self.search_calls)
        return lambda _: found

    async def _search(
        self, training_set: TrainingSet, tasks: Sequence[int], calls: int, known: Sequence[Workflow] = ()
    ) -> list[Workflow]:
        """The best workflows on some tasks, from each worker alone and those that are known."""
        chance = random.Random(f"search {training_set.key}")
        order, workers = chance.sample(tasks, len(tasks)), workers_of(training_set.pool)
        search = Search(training_set.results, order, workers, calls, self.max_steps, chance)
        return await search.run([*map(alone, workers), *known])

    def dearest(self, pool: Pool) -> list[Workflow]:
        """The longest workflow of each worker."""
        sees = [tuple(range(at)) for at in range(self.max_steps)]
        return [Workflow(tuple(Step(worker, SOLVE, each) for each in sees)) for worker in workers_of(pool)]

    def fit_calls(self, pool: Pool) -> int:
        """Each worker alone, the search's calls, and the part of it that may be over them."""
        return Fitted.fit_calls(self, pool) + self.search_calls + CHILDREN * self.max_steps * len(self.tasks)


@dataclass(frozen=True, slots=True)
class BestFixedByKind(BestFixed):
    """Such a workflow for each kind of question, and the kind of the nearest validation questions."""

    name = "best-fixed-by-kind"
    calls = "as `best-fixed`"
    simplifies = "nothing; a kind is a domain, which has to be known of the validation tasks; our choice"

    async def fitted(self, training_set: TrainingSet) -> Router:
        """Search for all questions with half of the calls, and from there for each kind with the rest."""
        kinds = [task.domain for task in training_set.tasks]
        common = await self._search(training_set, range(len(kinds)), self.search_calls // 2)
        calls = self.search_calls // 2 // len(set(kinds))
        found = {}
        for kind in dict.fromkeys(kinds):
            own = [at for at, each in enumerate(kinds) if each == kind]
            found[kind] = (await self._search(training_set, own, calls, common))[0]

        def chosen(question: str) -> Workflow:
            near = Counter(kinds[at] for at in training_set.near(question, NEIGHBOURS))
            return found[max(near, key=near.__getitem__)]  # of equally many that of the nearest

        return chosen


@dataclass
class Search:
    """A search on some tasks, with what has been measured so far."""

    results: Callable[[Sequence[Workflow], Sequence[int]], Awaitable[list[list[Trial]]]]
    """Of workflows on some tasks, as `TrainingSet.results` gives them."""
    tasks: Sequence[int]
    """Indices of the tasks, in an order that is random."""
    workers: Sequence[int]
    calls: int
    """The most calls for edits, apart from where the search begins; a part of a race that has begun is finished."""
    max_steps: int
    chance: random.Random
    spent: int = 0
    """Calls for edits so far."""
    _outcomes: dict[Workflow, dict[int, bool | None]] = field(default_factory=lambda: defaultdict(dict))

    async def run(self, start: Iterable[Workflow]) -> list[Workflow]:
        """Search from some workflows, which are all measured on all tasks; the best ones, the best first."""
        await self._measure(start, self.tasks)
        self.spent = 0
        while self.spent < self.calls and (runners := self._children()):
            size = min(FIRST, len(self.tasks))
            await self._measure(runners, self.tasks[:size])
            while size < len(self.tasks) and self.spent < self.calls:
                best = sorted(runners, key=lambda each: -self._worth(each, self.tasks[:size]))
                runners = best[: max(len(best) // FACTOR, 1)]
                size = min(FACTOR * size, len(self.tasks))
                await self._measure(runners, self.tasks[:size])
        return self._best()

    def _best(self) -> list[Workflow]:
        """The best workflows measured on all tasks; of equally good ones the shorter, then the earlier first."""
        whole = [workflow for workflow, known in self._outcomes.items() if len(known) == len(self.tasks)]
        return sorted(whole, key=lambda each: (-self._worth(each, self.tasks), len(each)))[:PARENTS]

    def _worth(self, workflow: Workflow, tasks: Iterable[int]) -> float:
        """The share of right answers among those judged."""
        return share_of([self._outcomes[workflow][task] for task in tasks])

    async def _measure(self, workflows: Iterable[Workflow], tasks: Sequence[int]) -> None:
        for workflow in workflows:
            known = self._outcomes[workflow]
            new = [task for task in tasks if task not in known]
            [results] = await self.results([workflow], new)
            known.update(zip(new, (each.right for each in results), strict=True))
            self.spent += len(workflow) * len(new)

    def _children(self) -> list[Workflow]:
        parents, found = self._best(), dict[Workflow, None]()
        for _ in range(_PATIENCE):
            child = self.chance.choice(parents)
            for _ in range(self.chance.choice((1, 1, 2))):
                child = edited(child, self.workers, self.chance)
            if child not in self._outcomes and len(child) <= self.max_steps and len(graph_of(child).live) == len(child):
                found[child] = None
            if len(found) == CHILDREN:
                break
        return list(found)


def edited(workflow: Workflow, workers: Sequence[int], chance: random.Random) -> Workflow:
    """The workflow with one random edit: another worker, subtask or access, a step more, or a step less."""
    steps, order, subtasks = list(workflow), list(range(len(workflow))), list(SUBTASKS.values())
    seen = [list(workflow.sees(at)) for at in order]  # by the places of steps in `steps`, which stay as they are
    at = chance.randrange(len(order))
    kind = chance.choice(("worker", "subtask", "access", "more", "less"))
    if kind == "worker":
        steps[at] = replace(steps[at], worker=chance.choice(workers))
    elif kind == "subtask":
        steps[at] = replace(steps[at], subtask=chance.choice(subtasks))
    elif kind == "access":
        seen[at] = _any_seen(order[:at], chance)
    elif kind == "more":
        at, new = chance.randrange(len(order) + 1), len(order)
        steps.append(Step(chance.choice(workers), chance.choice(subtasks)))
        seen.append(_any_seen(order[:at], chance))
        for later in order[at:] if chance.random() < 0.5 else ():
            seen[later].append(new)
        order.insert(at, new)
    elif len(order) > 1:
        order.remove(at)
    place = {step: at for at, step in enumerate(order)}
    access = {step: tuple(sorted(place[other] for other in seen[step] if other in place)) for step in order}
    return Workflow(tuple(replace(steps[step], access=access[step]) for step in order))


def _any_seen(earlier: Sequence[int], chance: random.Random) -> list[int]:
    """Nothing, everything, the step before, or each earlier step as a coin falls: equally often."""
    return list(chance.choice(([], earlier, earlier[-1:], [each for each in earlier if chance.random() < 0.5])))
