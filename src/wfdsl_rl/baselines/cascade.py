"""A cascade of choices for each question: how workers work together, how many do, and who they are.

Each stage is a count: how often its choices were right on the validation tasks nearest to the question. The first two
stages are counted with the workers that are best overall in the seats, the last one by what workers do alone.

Source: in the spirit of arXiv 2502.11133, whose stages are trained networks over a larger space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from wfdsl.conductor.prompt import question_text
from wfdsl.language.workflow import Step, Workflow
from wfdsl_rl.baselines.alone import SOLVE, alone, workers_of
from wfdsl_rl.baselines.counting import Counts, best, ranked
from wfdsl_rl.baselines.embeddings import EmbeddingName, embed, nearest
from wfdsl_rl.baselines.learned import solved
from wfdsl_rl.baselines.routers import fitting_k

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wfdsl.conductor.policy import Solution
    from wfdsl.interpreter.context import Question
    from wfdsl.interpreter.running import RunOptions
    from wfdsl.language.tree import Access
    from wfdsl.workers.pool import Pool
    from wfdsl_rl.baselines.embeddings import Vectors
    from wfdsl_rl.baselines.learned import Lessons

TEAMS: Final[Mapping[str, tuple[str, ...]]] = {
    "alone": ("S",),
    "chain": ("SV", "SVV"),
    "plan": ("PS", "PSV"),
    "group": ("SSA", "SSSA"),
}
"""Ways to work together, each in its sizes, a letter a step: solve, verify, plan, aggregate. Our choice."""
SUBTASKS: Final[Mapping[str, str]] = {
    "S": SOLVE,
    "V": "Verify the solution above, correct what is wrong, and give the final answer.",
    "P": "Write a short plan for the task. Do not solve it.",
    "A": "Compare the answers above and give the soundest final answer.",
}


@dataclass(frozen=True, slots=True)
class Cascade:
    """Counts for three choices, one after the other."""

    name: ClassVar[str] = "cascade-router"
    k: int | None = None
    """How many questions count as near; None: what would have been best for choosing workers alone."""
    call_price: float = 0.01
    """The share of right answers that a further call has to be worth; our choice."""
    embedding: EmbeddingName = "hashing"

    async def learn(self, lessons: Lessons) -> Cascaded:
        """Count workers alone, then teams of the best of them."""
        workers = workers_of(lessons.pool)
        single = Counts.of(await lessons.results(map(alone, workers)))
        order = [workers[at] for at in ranked(single.overall)]
        shapes = [shape for sizes in TEAMS.values() for shape in sizes]
        teams = Counts.of(await lessons.results(team(shape, order) for shape in shapes))
        places = embed(lessons.questions, self.embedding)
        return Cascaded(workers, single, shapes, teams, places, self.k or fitting_k(single, places), self)

    def most_calls(self, pool: Pool) -> int:  # noqa: ARG002  (as every method)
        """Those of the largest team."""
        return max(len(shape) for sizes in TEAMS.values() for shape in sizes)

    def lesson_calls(self, pool: Pool) -> int:
        """Each worker alone, then each team of more than one."""
        teams = sum(len(shape) for sizes in TEAMS.values() for shape in sizes if len(shape) > 1)
        return len(workers_of(pool)) + teams


@dataclass(frozen=True, slots=True)
class Cascaded:
    """Counts, by the questions' places."""

    workers: tuple[int, ...]
    single: Counts
    shapes: Sequence[str]
    teams: Counts
    places: Vectors
    k: int
    method: Cascade

    def workflow_for(self, question: str) -> Workflow:
        """The team for a question."""
        [place] = embed([question], self.method.embedding)
        near = nearest(place, self.places, self.k)
        worth = dict(zip(self.shapes, self.teams.near(near), strict=True))
        worth = {shape: share - self.method.call_price * len(shape) for shape, share in worth.items()}
        ways = list(TEAMS.values())
        sizes = ways[best([sum(worth[shape] for shape in sizes) / len(sizes) for sizes in ways])]
        shape = sizes[best([worth[size] for size in sizes])]
        return team(shape, [self.workers[at] for at in ranked(self.single.near(near))])

    async def solve(self, question: Question, pool: Pool, options: RunOptions) -> Solution:
        """Run the team for this question."""
        return await solved(self.workflow_for(question_text(question)), question, pool, options)


def team(shape: str, order: Sequence[int]) -> Workflow:
    """A team with workers in the order of their worth: solvers first, then those who check, then planners."""
    seats = sorted(range(len(shape)), key=lambda at: ("SVAP".index(shape[at]), at))
    dealt = {seat: order[turn % len(order)] for turn, seat in enumerate(seats)}
    return Workflow(tuple(Step(dealt[at], SUBTASKS[letter], _access(shape, at)) for at, letter in enumerate(shape)))


def _access(shape: str, at: int) -> Access:
    """Solvers see the plan, if there is one; who checks or aggregates sees everything."""
    if shape[at] == "S":
        return (0,) if shape[0] == "P" else ()
    return "all" if at else ()
