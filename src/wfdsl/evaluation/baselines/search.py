"""Search for the workflow that is right most often on validation tasks: random edits, and a race on growing samples.

A workflow's worth is its share of right answers. Each round edits the best workflows so
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
        """The share of right answers among those judged."""
        known = self._outcomes[workflow]
        counts = Counter(known[task] for task in tasks)
        judged = counts[True] + counts[False]
        return counts[True] / judged if judged else 0.0

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
    nodes = [_Node(int(step.worker), step.subtask) for step in workflow]
    for at, node in enumerate(nodes):
        node.seen = [nodes[earlier] for earlier in workflow.sees(at)]
    at = chance.randrange(len(nodes))
    kind = chance.choice(("worker", "subtask", "access", "more", "less"))
    if kind == "worker":
        nodes[at].worker = chance.choice(workers)
    elif kind == "subtask":
        nodes[at].subtask = _any_subtask(chance)
    elif kind == "access":
        nodes[at].seen = _any_seen(nodes[:at], chance)
    elif kind == "more":
        at = chance.randrange(len(nodes) + 1)
        new = _Node(chance.choice(workers), _any_subtask(chance), _any_seen(nodes[:at], chance))
        for later in nodes[at:] if chance.random() < 0.5 else ():
            later.seen.append(new)
        nodes.insert(at, new)
    elif len(nodes) > 1:
        gone = nodes.pop(at)
        for node in nodes:
            node.seen = [each for each in node.seen if each is not gone]
    places = {id(node): at for at, node in enumerate(nodes)}
    return Workflow(
        tuple(Step(each.worker, each.subtask, tuple(sorted(places[id(seen)] for seen in each.seen))) for each in nodes)
    )


@dataclass(eq=False)
class _Node:
    """A step that knows the steps it sees, wherever they are."""

    worker: int
    subtask: str
    seen: list[_Node] = field(default_factory=list)


def _any_subtask(chance: random.Random) -> str:
    """An instruction: each kind of step as often, and each instruction of a kind."""
    return chance.choice(INSTRUCTIONS[chance.choice(list(INSTRUCTIONS))])


def _any_seen(earlier: Sequence[_Node], chance: random.Random) -> list[_Node]:
    """Nothing, everything, the step before, or each earlier step as a coin falls: equally often."""
    return list(chance.choice(([], earlier, earlier[-1:], [each for each in earlier if chance.random() < 0.5])))
