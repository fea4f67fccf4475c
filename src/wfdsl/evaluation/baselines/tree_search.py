"""AB-MCTS: for each question a tree of answers that grows wider (a new attempt) or deeper (an answer is improved).

Each call goes where a draw from what is known is best (Thompson sampling): at a node, each worker's next attempt and
each branch below it have a beta distribution of how good their answers are. There is no gold answer, so an answer's
score is the share of the other answers that agree with it. The answer that most agree on is given.

Source: AB-MCTS-A with several models, arXiv 2503.04412. Scores by agreement, and what workers got right on validation
tasks as prior, are our choice.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from wfdsl.conductor.policy import ROOT, ROOT_WORKFLOW, Solution
from wfdsl.conductor.prompt import question_text
from wfdsl.evaluation.baselines.answer_selection import PickingPool
from wfdsl.evaluation.baselines.fitted import Method, TrainingSet
from wfdsl.evaluation.baselines.routers import Counts
from wfdsl.evaluation.baselines.single_worker import SOLVE, alone, workers_of
from wfdsl.evaluation.baselines.teams import SUBTASKS
from wfdsl.evaluation.baselines.voting import agreeing, ballot, kind_of
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.running import RunOptions, run
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Call, Reply
from wfdsl.workers.pool import Pool

PRIOR: Final = 4.0
"""So many answers' worth of what is known beforehand; our choice."""


@dataclass(frozen=True, slots=True)
class TreeSearch(Method):
    """The tree search, with the workers' shares of right answers as prior."""

    name: ClassVar[str] = "ab-mcts"
    n: int = 8
    """Answers in the tree, which are calls."""

    async def fit(self, training_set: TrainingSet) -> TreeSearcher:
        """Count how often each worker alone was right."""
        workers = workers_of(training_set.pool)
        counts = Counts.of(await training_set.results(map(alone, workers)))
        return TreeSearcher(dict(zip(workers, counts.overall, strict=True)), self.n)

    def most_calls(self, pool: Pool) -> int:  # noqa: ARG002  (as every method)
        """One for each answer of the tree."""
        return self.n


@dataclass(frozen=True, slots=True)
class TreeSearcher:
    """Grows a tree for each question."""

    shares: dict[int, float]
    """The share of right answers of each worker."""
    n: int

    async def solve(self, question: Question, pool: Pool, options: RunOptions) -> Solution:
        """Grow a tree; each answer is a round of one step."""
        chance = random.Random(f"tree {options.get('seed')} {question_text(question)}")
        tree = _Tree(self.shares, self.n, question, chance)
        name = f"ab-mcts@{self.n} {sorted(self.shares.items())}"
        return Solution(await run(ROOT_WORKFLOW, question, PickingPool(pool, tree, name, ROOT), **options))


class Node(NamedTuple):
    """An answer."""

    worker: int
    text: str
    parent: int | None
    """The index of the answer that it improves."""


class _Tree:
    """The worker of the root step: it runs the rounds, and answers with the best answer."""

    conductor = True
    """Only the calls that it makes are charged and journaled."""

    def __init__(self, shares: dict[int, float], n: int, question: Question, chance: random.Random) -> None:
        self._shares = shares
        self._n = n
        self._question = question
        self._chance = chance

    async def __call__(self, call: Call) -> Reply:
        """Grow the tree."""
        handle: Any = call.run
        nodes: list[Node] = []
        for number in range(self._n):
            groups = await self._groups(nodes)
            worker, parent = chosen(nodes, scores_of(groups, len(nodes)), self._shares, self._chance)
            wider = parent is None
            workflow = Workflow((Step(worker, SOLVE if wider else SUBTASKS["R"], () if wider else ALL),))
            previous = None if parent is None else (SOLVE, nodes[parent].text)
            done = await handle.run(workflow, self._question, round_number=number, previous=previous)
            nodes.append(Node(worker, done.answer or "", parent))
        groups = await self._groups(nodes)
        best = max(groups, key=len)[0] if groups else 0
        return Reply(nodes[best].text)

    async def _groups(self, nodes: Sequence[Node]) -> list[list[int]]:
        replies = [node.text for node in nodes]
        kind = kind_of(question_text(self._question), replies)
        return await agreeing([ballot(reply, kind) for reply in replies])


def scores_of(groups: Sequence[Sequence[int]], count: int) -> list[float]:
    """The share of the other answers that agree with each; one half where there is no other."""
    scores = [0.0 if count > 1 else 0.5] * count
    for group in groups:
        for index in group:
            scores[index] = (len(group) - 1) / (count - 1) if count > 1 else 0.5
    return scores


def chosen(
    nodes: Sequence[Node], scores: Sequence[float], shares: dict[int, float], chance: random.Random
) -> tuple[int, int | None]:
    """Who is asked next, and which answer it improves; None: it makes a new attempt."""
    at: int | None = None
    while True:
        draws: list[tuple[float, int, int | None]] = []
        for worker, share in shares.items():
            known = [score for node, score in zip(nodes, scores, strict=True) if node.worker == worker]
            draws.append((_draw(share, known, chance), worker, None))
        for child, node in enumerate(nodes):
            if node.parent == at:
                below = [scores[other] for other in range(child, len(nodes)) if _is_below(nodes, other, child)]
                draws.append((_draw(shares[node.worker], below, chance), node.worker, child))
        _, worker, child_or_new = max(draws, key=lambda draw: draw[0])
        if child_or_new is None:
            return worker, at
        at = child_or_new


def _draw(share: float, scores: Sequence[float], chance: random.Random) -> float:
    """A draw from the beta distribution of a mean score, by the prior and the scores so far."""
    right = PRIOR * share + sum(scores)
    return chance.betavariate(right + 0.5, PRIOR + len(scores) - right + 0.5)


def _is_below(nodes: Sequence[Node], index: int | None, top: int) -> bool:
    """Whether a node is another one, or in the branch below it."""
    while index is not None and index != top:
        index = nodes[index].parent
    return index == top
