"""The published optimum of the gym's presets, as `python -m tests.benchmarks optimum` has found it.

`optimum("gym/axes")` has for each family the best workflow of each length, and the best constant workflows: those that
are the same for all questions. `per_family` and `constant` give the best at a price of a step, in points.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.gym_search import Found
from wfdsl_rl.gym.world.families import domain_of

FILE: Final = Path(__file__).parent / "gym_optimum.json"


@dataclass(frozen=True)
class Optimum:
    """The best workflows found for a preset, by their number of steps."""

    families: dict[str, dict[int, Found]]
    """For each family."""
    constants: dict[int, Found]
    """The same one for all questions."""

    def per_family(self, price: float = 0.0) -> dict[str, Found]:
        """The best workflow for each family, at a price of so many points for a step."""
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
    """The best of several lengths, with a price of so many points for a step."""
    return max(found.values(), key=lambda one: 100 * one.accuracy - price * one.steps)


@cache
def optimum(preset: str) -> Optimum:
    """The published optimum of a preset."""
    known = json.loads(FILE.read_text("utf-8"))[preset]
    families = {family: _lengths(found) for family, found in known["families"].items()}
    return Optimum(families, _lengths(known["constants"]))


def _lengths(found: dict[str, Any]) -> dict[int, Found]:
    return {int(length): _found(one) for length, one in found.items()}


def _found(one: dict[str, Any]) -> Found:
    team = tuple((worker, subtask, tuple(view)) for worker, subtask, view in one["team"])
    return Found(team, one["accuracy"], one["error"])


def publish(preset: str, found: Optimum) -> None:
    """Write the optimum of a preset into the file."""
    known = json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {}
    known[preset] = {
        "families": {family: _plain(lengths) for family, lengths in found.families.items()},
        "constants": _plain(found.constants),
    }
    FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", "utf-8")
    optimum.cache_clear()


def _plain(found: dict[int, Found]) -> dict[str, Any]:
    return {
        str(length): {"team": one.team, "accuracy": round(one.accuracy, 4), "error": round(one.error, 5)}
        for length, one in found.items()
    }
