"""What a baseline is, a frozen dataclass of its parameters, which says by itself what it does and what it calls; and
the workflows that baselines are made of: who plans, who solves, who looks again, and what a second look sees.

A team's shape is a text with a letter for each step: P plan, S solve, R refine, V verify, A aggregate. A small letter
is a look that sees only the step before it, so that earlier mistakes are out of its sight; a capital one sees all.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from wfdsl.api import load
from wfdsl.conductor.policy import Policy, WorkflowPolicy
from wfdsl.errors import UsageError
from wfdsl.language.tree import ALL, Access
from wfdsl.language.workflow import Step, Workflow
from wfdsl.settings import Option, Table, option, to_table
from wfdsl.workers.pool import Pool

SOLVE: Final = "Solve the task and give the final answer."
"""What a worker is asked that solves the task by itself, in every baseline; our choice."""
FOLDER: Final = Path(__file__).parent
"""Where the `.wf` files are."""
_WORKER: Final = "WORKER"


def alone(worker: int) -> Workflow:
    """The workflow of one call."""
    return Workflow((Step(worker, SOLVE),))


SUBTASKS: Final[Mapping[str, str]] = {
    "P": "Write a short plan for the task. Do not solve it.",
    "S": SOLVE,
    "R": "Improve the solution above and give the final answer.",
    "V": "Verify the solution above, correct what is wrong, and give the final answer.",
    "A": "Compare the answers above and give the soundest final answer.",
}
"""What each kind of step is asked; our choice."""


def random_workflow(chance: random.Random, workers: Sequence[int], *, max_steps: int = 5) -> Workflow:
    """A workflow of one to `max_steps` steps, as many as often; workers are drawn evenly.

    Attempts see the plans, at most two, and second looks see everything; our choice.
    """
    count = chance.randint(1, max_steps)
    plans = chance.randint(0, min(2, count - 1))
    attempts = chance.randint(1, count - plans)
    looks = "VRA" if attempts > 1 else "VR"
    steps: list[tuple[str, Access]] = [(SUBTASKS["P"], ())] * plans + [(SOLVE, tuple(range(plans)))] * attempts
    steps += [(SUBTASKS[chance.choice(looks)], ALL) for _ in range(count - len(steps))]
    return Workflow(tuple(Step(chance.choice(workers), subtask, access) for subtask, access in steps))


def workers_of(pool: Pool) -> tuple[int, ...]:
    """The workers that baselines ask, by index: all but the Conductors, which would write workflows of their own.

    Raises:
        UsageError: the pool has Conductors only.
    """
    found = tuple(index for index in pool.indices if index not in pool.conductors)
    if not found:
        raise UsageError(f"pool {pool.name!r} has Conductors only: a baseline asks plain workers, so give it one")
    return found


def worker_option(place: int | None = 0, about: str = "who is asked: a name or an index") -> Any:
    """A parameter that is a worker; by default the one at a place in the pool, counted from 0 and around."""
    return option(place, about, metavar=_WORKER, ge=0)


def is_worker(parameter: Option) -> bool:
    """Whether a parameter is a worker."""
    return parameter.metavar == _WORKER


class Baseline(Table):
    """A row of the table of baselines. The first line of its docstring says what it does."""

    __slots__ = ()
    name: ClassVar[str]
    calls: ClassVar[str] = "1"
    """Calls of workers for each question, by its parameters."""
    source: ClassVar[str] = "none"
    """The paper."""
    simplifies: ClassVar[str] = "nothing; our choice"
    """What is left out of the paper's method, or replaced."""

    def policy(self, pool: Pool) -> Policy:  # noqa: ARG002  (others read files for the pool)
        """What answers questions on a pool."""
        assert isinstance(self, Policy)
        return self

    def dearest(self, pool: Pool) -> Iterable[Workflow]:
        """Workflows of which one costs at least as much, with all its steps, as what a question leads to."""
        return map(alone, workers_of(pool))

    def describe(self) -> dict[str, Any]:
        """What it is, as plain values."""
        return {"kind": self.name, **to_table(self)}


class WorkflowFile(Baseline):
    """A `.wf` file of this folder, which has the parameters."""

    __slots__ = ()

    def policy(self, pool: Pool) -> WorkflowPolicy:
        """The workflow of the file for the plain workers of a pool."""
        params = {name: str(value) for name, value in to_table(self).items()}
        return WorkflowPolicy(load(FOLDER / f"{self.name}.wf", pool=pool.subset(workers_of(pool)), params=params))


@dataclass(frozen=True, slots=True)
class SelfReflection(WorkflowFile):
    """One worker answers, then checks and corrects its latest attempt, again and again."""

    name = "self-reflection"
    calls = "rounds + 1"
    source = "Self-Refine, arXiv 2303.17651; Reflexion, arXiv 2303.11366; 5x self-reflection of arXiv 2512.04388"
    simplifies = "always all rounds, where the papers stop once the worker is satisfied; no memory between tasks"
    worker: int = worker_option()
    rounds: int = option(4, "corrections", ge=1)


@dataclass(frozen=True, slots=True)
class Consensus(WorkflowFile):
    """Independent attempts by one worker, and a call that finds what they agree on."""

    name = "consensus"
    calls = "n + 1"
    source = "5x consensus of arXiv 2512.04388; Universal self-consistency, arXiv 2311.17311"
    simplifies = "an aggregator instead of the count of answers; `majority-vote` counts"
    worker: int = worker_option()
    aggregator: int = worker_option(0, "who compares")
    n: int = option(5, "attempts", ge=1)


@dataclass(frozen=True, slots=True)
class MixtureOfAgents(WorkflowFile):
    """Every worker answers by itself, and an aggregator makes one answer of them all."""

    name = "moa"
    calls = "layers * workers of the pool + 1"
    source = "Mixture-of-Agents, arXiv 2406.04692"
    simplifies = "one layer of proposals unless told, as in arXiv 2512.04388; the paper has three"
    aggregator: int = worker_option(0, "who makes one answer of them: name your best worker")
    layers: int = option(1, "layers of proposals, each of which sees the one before", ge=1)


@dataclass(frozen=True, slots=True)
class Debate(WorkflowFile):
    """Two workers answer, each answers again with both views before it, and a judge decides."""

    name = "debate"
    calls = "2 * rounds + 3"
    source = "Multiagent debate, arXiv 2305.14325"
    simplifies = "two debaters and one round unless told; a judge instead of agreement among the debaters"
    first: int = worker_option(0, "a debater")
    second: int = worker_option(1, "the other one")
    judge: int = worker_option(2, "who decides")
    rounds: int = option(1, "in which each answers again", ge=1)


@dataclass(frozen=True, slots=True)
class TreeOfAgents(WorkflowFile):
    """Two branches of attempts, each made one answer, and a root that compares the two."""

    name = "tree-of-agents"
    calls = "2 * leaves + 3"
    source = "after Tree of Thoughts, arXiv 2305.10601"
    simplifies = "a tree of whole answers, fixed beforehand; the paper searches a tree of steps and goes back"
    left: int = worker_option(0, "who makes the left branch")
    right: int = worker_option(1, "who makes the right branch")
    root: int = worker_option(0, "who compares them")
    leaves: int = option(3, "attempts of each branch", ge=1)
