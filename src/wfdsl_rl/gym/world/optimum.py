"""The best workflows known for presets of the gym, for each family of questions and for all of them alike.

`python -m tests.benchmarks optimum` searched for them, and judged them on the frozen questions with other randomness;
they are lower bounds. `optimum("gym/axes")` has for each family the best workflow with at most 1, 2 ... steps, and the
best constant workflows: those that are the same for all questions. `per_family` and `constant` give the best at a price
of a step, in points.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from wfdsl.errors import UsageError
from wfdsl.language.workflow import Step, Workflow
from wfdsl_rl.gym.world.families import domain_of

FILE: Final = Path(__file__).parent / "optimum.json"
MAX_STEPS: Final = 5

Choice: TypeAlias = tuple[int, str, tuple[int, ...]]
"""A step: worker, subtask, and the earlier steps in view."""
Team: TypeAlias = tuple[Choice, ...]


def workflow_of(team: Team) -> Workflow:
    """The workflow of a team."""
    return Workflow(tuple(Step(worker, subtask, access) for worker, subtask, access in team))


def live(team: Team) -> tuple[int, ...]:
    """The steps that the answer depends on."""
    needed = {len(team) - 1}
    for at in reversed(range(len(team))):
        if at in needed:
            needed.update(team[at][2])
    return tuple(sorted(needed))


def pruned(team: Team) -> Team:
    """A team without the steps that its answer does not depend on."""
    place = {at: number for number, at in enumerate(live(team))}
    return tuple(
        (worker, subtask, tuple(place[seen] for seen in view)) for worker, subtask, view in (team[at] for at in place)
    )


@dataclass(frozen=True)
class Found:
    """A team and how good it is, on questions and with randomness that no search has seen."""

    team: Team
    accuracy: float
    error: float

    def __str__(self) -> str:
        return "; ".join(_shown(choice) for choice in self.team)

    @property
    def steps(self) -> int:
        """Steps, all of which are run."""
        return len(self.team)


def _shown(choice: Choice) -> str:
    worker, subtask, view = choice
    return f"{worker} {subtask.rstrip('.').lower()} [{' '.join(map(str, view))}]"


@dataclass(frozen=True)
class Optimum:
    """The best workflows found for a preset, by the most steps that they may have."""

    families: dict[str, dict[int, Found]]
    """For each family."""
    constants: dict[int, Found]
    """The same one for all questions."""

    def per_family(self, price: float = 0.0) -> dict[str, Found]:
        """The best workflow for each family, at a price of a step in points."""
        return {family: at_price(found, price) for family, found in self.families.items()}

    def constant(self, price: float = 0.0) -> Found:
        """The best constant workflow."""
        return at_price(self.constants, price)

    def accuracy(self, price: float = 0.0) -> float:
        """The mean accuracy of the best workflows for each family: what a Conductor could reach."""
        return self.mean({family: one.accuracy for family, one in self.per_family(price).items()})

    @staticmethod
    def mean(values: Mapping[str, float]) -> float:
        """The mean over families; all domains count alike, as they are asked alike often."""
        by_domain: dict[str, list[float]] = defaultdict(list)
        for family, value in values.items():
            by_domain[domain_of(family)].append(value)
        return sum(sum(found) / len(found) for found in by_domain.values()) / len(by_domain)


def at_price(found: dict[int, Found], price: float) -> Found:
    """The best of several lengths, at a price of a step in points."""
    return max(found.values(), key=lambda one: 100 * one.accuracy - price * one.steps)


@cache
def optimum(preset: str) -> Optimum:
    """The published optimum of a preset.

    Raises:
        UsageError: none has been searched for.
    """
    published = json.loads(FILE.read_text("utf-8"))
    if preset not in published:
        raise UsageError(f"no best workflows of {preset} were searched for; there are those of {', '.join(published)}")
    known = published[preset]
    families = {family: _lengths(found) for family, found in known["families"].items()}
    return Optimum(families, _lengths(known["constants"]))


def _lengths(published: dict[str, Any]) -> dict[int, Found]:
    """By the most steps: where one more does not help, the shorter workflow again."""
    known = {int(steps): _found(one) for steps, one in published.items()}
    enough = {most: [steps for steps in known if steps <= most] for most in range(1, MAX_STEPS + 1)}
    return {most: known[max(shorter)] for most, shorter in enough.items() if shorter}


def _found(one: dict[str, Any]) -> Found:
    team = tuple((worker, subtask, tuple(view)) for worker, subtask, view in one["team"])
    return Found(team, one["accuracy"], one["error"])
