"""Compare workflows with the published optimum on fresh questions, and publish what is better.

A search compares many workflows, so that its winner is partly the luckiest. Its questions and draws therefore do not
decide what is published: fresh ones do. The published accuracies are those on the frozen questions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks.gym_search import judged, weights_of
from wfdsl.errors import UsageError
from wfdsl_rl.gym.world.accuracy import Questions, right_answers, states_of
from wfdsl_rl.gym.world.optimum import FILE, Found, Optimum, Team, optimum, workflow_of

_DRAWS: Final = 16
_STEP: Final = 0.001
"""A further step has to be worth this much to be published: a tenth of a point, as tables show it."""


def published(preset: str) -> Optimum:
    """The published optimum of a preset; an empty one where none is."""
    try:
        return optimum(preset)
    except UsageError:
        return Optimum({}, {})


def teams_in(known: Optimum, family: str) -> list[Team]:
    """The published workflows of a family, or with '' those for all questions."""
    found = known.families.get(family, {}) if family else known.constants
    return list(dict.fromkeys(one.team for one in found.values()))


def difference(team: Team, other: Team, judges: Sequence[Questions]) -> tuple[float, float]:
    """By how much a team is better than another one on the same questions, and the standard error of that.

    The error is for all questions that there could be, not for these very ones. All domains count alike.
    """
    value = variance = 0.0
    for weight, questions in zip(weights_of(judges), judges, strict=True):
        gaps = _chances(team, questions) - _chances(other, questions)
        value += weight * float(gaps.mean())
        variance += weight**2 * float(gaps.var()) / len(questions)
    return value, sqrt(variance)


def _chances(team: Team, questions: Questions) -> NDArray[np.float64]:
    """Of each question, the share of right answers."""
    drawn = (states_of(workflow_of(team), questions, f"difference {draw}")[-1] for draw in range(_DRAWS))
    shares: NDArray[np.float64] = np.mean([right_answers(final, len(questions)) for final in drawn], axis=0)
    return shares


def best_of(teams: Iterable[Team], fresh: Sequence[Questions], frozen: Sequence[Questions]) -> dict[int, Found]:
    """By number of steps, the best on fresh questions, with accuracies on the frozen ones.

    A longer one is left out unless it is better than all shorter ones, on both.
    """
    chosen = _helpful(sorted((judged(team, fresh) for team in teams), key=lambda one: (one.steps, -one.accuracy)))
    return {one.steps: one for one in _helpful([judged(one.team, frozen) for one in chosen])}


def _helpful(found: Sequence[Found]) -> list[Found]:
    """Those that are better than all before."""
    kept: list[Found] = []
    for one in found:
        if all(one.accuracy > less.accuracy + _STEP for less in kept):
            kept.append(one)
    return kept


def publish(preset: str, family: str, found: dict[int, Found]) -> None:
    """Write the best workflows of a family, or with '' those for all questions, into the file."""
    known = published(preset)
    changed = replace(known, families={**known.families, family: found}) if family else replace(known, constants=found)
    content = json.loads(FILE.read_text("utf-8"))
    content[preset] = {
        "families": {name: _plain(lengths) for name, lengths in changed.families.items()},
        "constants": _plain(changed.constants),
    }
    FILE.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", "utf-8")
    optimum.cache_clear()


def _plain(found: dict[int, Found]) -> dict[str, Any]:
    """By number of steps, each workflow once."""
    return {
        str(one.steps): {"team": one.team, "accuracy": round(one.accuracy, 4), "error": round(one.error, 5)}
        for one in found.values()
    }
