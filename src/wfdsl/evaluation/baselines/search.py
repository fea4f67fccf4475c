"""Search for the workflow that is right most often on validation tasks: random edits, and a race on growing samples.

A workflow's worth is its share of right answers, less a price for each call. Each round edits the best workflows so
far; all edits are run on a few tasks, the better ones on more, and the best on all. All runs of a task have the same
seed, so that an edit is compared with what it was made from under the same randomness. The algorithm is our choice:
successive halving (arXiv 1502.07943) inside a local search.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from wfdsl.evaluation.baselines.teams import INSTRUCTIONS
from wfdsl.graph import graph_of
from wfdsl.language.tree import Access
from wfdsl.language.workflow import Step, Workflow

Measure: TypeAlias = Callable[[Workflow, Sequence[int]], Awaitable[Sequence[bool | None]]]
"""Right or wrong of a workflow on some tasks, given by their indices; None where nothing was judged."""

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


@dataclass
class Search:
    """A search on some tasks, with what has been measured so far."""

    measure: Measure
    tasks: Sequence[int]
    """Indices of the tasks, in an order that is random."""
    workers: Sequence[int]
    calls: int
    """The most calls for edits, apart from where the search begins; a part of a race that has begun is finished."""
    call_price: float
    max_steps: int
    chance: random.Random
    spent: int = 0
    """Calls for edits so far."""
    _outcomes: dict[Workflow, dict[int, bool | None]] = field(default_factory=lambda: defaultdict(dict))
    _finished: dict[Workflow, None] = field(default_factory=dict)

    async def run(self, start: Iterable[Workflow]) -> list[Workflow]:
        """Search from some workflows, which are all measured on all tasks; the best ones, the best first."""
        for workflow in start:
            await self._on(workflow, self.tasks)
        self.spent = 0
        while self.spent < self.calls:
            children = self._children()
            if not children:
                break
            await self._race(children)
        return self.best(PARENTS)

    def best(self, count: int) -> list[Workflow]:
        """The best workflows measured on all tasks; of equally good ones the shorter, then the earlier first."""
        known = sorted(self._finished, key=lambda each: (-self.worth(each, self.tasks), len(each)))
        return known[:count]

    def worth(self, workflow: Workflow, tasks: Iterable[int]) -> float:
        """The share of right answers among those judged, less the price of the calls."""
        known = self._outcomes[workflow]
        counts = Counter(known[task] for task in tasks)
        judged = counts[True] + counts[False]
        return (counts[True] / judged if judged else 0.0) - self.call_price * len(workflow)

    async def _race(self, runners: Sequence[Workflow]) -> None:
        size = min(FIRST, len(self.tasks))
        while True:
            for workflow in runners:
                await self._on(workflow, self.tasks[:size])
            if size == len(self.tasks) or self.spent >= self.calls:
                return
            ranked = sorted(runners, key=lambda each: -self.worth(each, self.tasks[:size]))
            runners = ranked[: max(len(ranked) // FACTOR, 1)]
            size = min(FACTOR * size, len(self.tasks))

    async def _on(self, workflow: Workflow, tasks: Sequence[int]) -> None:
        known = self._outcomes[workflow]
        new = [task for task in tasks if task not in known]
        known.update(zip(new, await self.measure(workflow, new), strict=True))
        self.spent += len(workflow) * len(new)
        if len(known) == len(self.tasks):
            self._finished.setdefault(workflow)

    def _children(self) -> list[Workflow]:
        parents, found = self.best(PARENTS), dict[Workflow, None]()
        for _ in range(_PATIENCE):
            child = self.chance.choice(parents)
            for _ in range(self.chance.choice((1, 1, 2))):
                child = edited(child, self.workers, self.chance)
            known = child in self._outcomes or child in found
            if not known and len(child) <= self.max_steps and graph_of(child).calls == len(child):
                found[child] = None
            if len(found) == CHILDREN:
                break
        return list(found)


def edited(workflow: Workflow, workers: Sequence[int], chance: random.Random) -> Workflow:
    """The workflow with one random edit: another worker, subtask or access, a step more, or a step less."""
    steps = [Step(step.worker, step.subtask, _seen(step, at)) for at, step in enumerate(workflow)]
    at = chance.randrange(len(steps))
    step = steps[at]
    kind = chance.choice(("worker", "subtask", "access", "more", "less"))
    if kind == "worker":
        steps[at] = Step(chance.choice(workers), step.subtask, step.access)
    elif kind == "subtask":
        steps[at] = Step(step.worker, _any_subtask(chance), step.access)
    elif kind == "access":
        steps[at] = Step(step.worker, step.subtask, _any_access(at, chance))
    elif kind == "more":
        place = chance.randrange(len(steps) + 1)
        new = Step(chance.choice(workers), _any_subtask(chance), _any_access(place, chance))
        seen_by = chance.random() < 0.5
        later = [_moved(step, place, seen=seen_by) for step in steps[place:]]
        steps = [*steps[:place], new, *later]
    elif len(steps) > 1:
        steps = [*steps[:at], *(_without(step, at) for step in steps[at + 1 :])]
    return Workflow(tuple(steps))


def _seen(step: Step, at: int) -> tuple[int, ...]:
    return tuple(range(at)) if step.access == "all" else tuple(step.access)


def _any_subtask(chance: random.Random) -> str:
    """An instruction: each kind of step as often, and each instruction of a kind."""
    return chance.choice(INSTRUCTIONS[chance.choice(list(INSTRUCTIONS))])


def _any_access(at: int, chance: random.Random) -> Access:
    """Nothing, everything, the step before, or each earlier step as a coin falls: equally often."""
    ways = ((), tuple(range(at)), tuple(range(at))[-1:], tuple(one for one in range(at) if chance.random() < 0.5))
    return chance.choice(ways)


def _moved(step: Step, place: int, *, seen: bool) -> Step:
    """A step after one that was put at a place; whether it sees the new one."""
    access = [earlier + (earlier >= place) for earlier in step.access if isinstance(earlier, int)]
    return Step(step.worker, step.subtask, tuple(sorted([*access, *([place] if seen else [])])))


def _without(step: Step, place: int) -> Step:
    """A step after one that was taken out."""
    kept = (earlier for earlier in step.access if isinstance(earlier, int) and earlier != place)
    return Step(step.worker, step.subtask, tuple(earlier - (earlier > place) for earlier in kept))
