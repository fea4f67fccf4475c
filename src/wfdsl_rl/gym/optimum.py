"""The exact optimum: the chance of a right answer of every workflow of at most three steps, by enumeration.

A workflow is enumerated once for each kind by what counts: workers, roles and access. Subtasks with the same role are
the same, and a step that the last one does not build on is left out, because it changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple, TypeAlias

from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Workflow
from wfdsl_rl.gym.questions import KINDS, Kind
from wfdsl_rl.gym.world import RIGHT, ROLES, WORKERS, Role, State, results_of, role_of

MAX_STEPS: Final = 3


class Step(NamedTuple):
    """One step, by what counts."""

    worker: int
    role: Role
    sees: tuple[int, ...] = ()


Plan: TypeAlias = tuple[Step, ...]


class Optimum(NamedTuple):
    """What workflows of at most a number of steps can reach."""

    by_kind: dict[Kind, tuple[float, Plan]]
    """The best chance of a right answer and a workflow that has it, for each kind."""
    constant: tuple[float, Plan]
    """The best workflow that is the same for all kinds, with its mean over the kinds."""

    @property
    def value(self) -> float:
        """The mean over the kinds of the best workflow of each."""
        return sum(best for best, _ in self.by_kind.values()) / len(self.by_kind)


def right_chance(workflow: Workflow, kind: Kind, previous: State | None = None) -> float:
    """The chance that a workflow's answer to a question of a kind is right.

    `previous` is the answer of the round before, which steps with access to all see first.
    """
    return outcomes(workflow, kind, previous).get(RIGHT, 0.0)


def outcomes(workflow: Workflow, kind: Kind, previous: State | None = None) -> Mapping[State, float]:
    """The chance of each result of a workflow's last step, as `right_chance` computes it."""
    before = () if previous is None else (previous,)
    steps = [
        Step(
            step.worker,
            role_of(step.subtask),
            (*range(len(before) if step.access == ALL else 0), *(len(before) + seen for seen in workflow.sees(at))),
        )
        for at, step in enumerate(workflow.steps)
        if isinstance(step.worker, int)
    ]
    return _outcomes(steps, kind, before)


def value_of(steps: Sequence[Step], kind: Kind) -> float:
    """The chance of a right answer of some steps."""
    return _outcomes(steps, kind, ()).get(RIGHT, 0.0)


def _outcomes(steps: Sequence[Step], kind: Kind, before: tuple[State, ...]) -> Mapping[State, float]:
    """The chance of each result of the last step, where all may see what is there before them."""
    spread: dict[tuple[State, ...], float] = {before: 1.0}
    for step in steps:
        later: defaultdict[tuple[State, ...], float] = defaultdict(float)
        for states, chance in spread.items():
            for result in results_of(kind, step.worker, step.role, tuple(states[at] for at in step.sees)):
                later[*states, result.state] += chance * result.chance
        spread = later
    last: defaultdict[State, float] = defaultdict(float)
    for states, chance in spread.items():
        last[states[-1]] += chance
    return last


def plans(max_steps: int = MAX_STEPS, workers: Sequence[int] = tuple(range(len(WORKERS)))) -> Iterator[Plan]:
    """Every workflow of at most three steps in which all steps count; the last one never plans."""
    does = [(worker, role) for worker in workers for role in ROLES]
    last = [(worker, role) for worker, role in does if role != "plan"]
    for shape in _SHAPES[:max_steps]:
        for sees in shape:
            for doing in product(*[does] * (len(sees) - 1), last):
                yield tuple(Step(*each, seen) for each, seen in zip(doing, sees, strict=True))


_SHAPES: Final[tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]] = (
    (((),),),
    (((), (0,)),),
    (((), (0,), (1,)), ((), (0,), (0, 1)), ((), (), (0, 1))),
)
"""What each step sees, for one, two and three steps."""


def optimum(max_steps: int = MAX_STEPS, workers: Sequence[int] = tuple(range(len(WORKERS)))) -> Optimum:
    """The best workflows of at most `max_steps` steps, of some workers; the first one where several are equal."""
    best: dict[Kind, tuple[float, Plan]] = {}
    constant: tuple[float, Plan] = (0.0, ())
    for plan in plans(max_steps, workers):
        values = {kind: value_of(plan, kind) for kind in KINDS}
        for kind, value in values.items():
            if value > best.get(kind, (0.0, ()))[0] + 1e-12:
                best[kind] = (value, plan)
        mean = sum(values.values()) / len(KINDS)
        if mean > constant[0] + 1e-12:
            constant = (mean, plan)
    return Optimum(best, constant)
