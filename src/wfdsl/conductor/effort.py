"""Effort: how much a Conductor may spend on a question, by the names that OpenAI's `reasoning_effort` has.

A Conductor that was trained with prices in its prompt is told the price of a step that belongs to the effort: its
template set has a text `effort_NAME` for each. Any other Conductor gets limits. The numbers are our choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

Effort: TypeAlias = Literal["minimal", "low", "medium", "high"]
EFFORTS: Final[tuple[Effort, ...]] = ("minimal", "low", "medium", "high")
DEFAULT_EFFORT: Final[Effort] = "medium"
"""What a Conductor with prices in its prompt is told unless an effort is given."""


class EffortLimits(NamedTuple):
    """What an effort limits. None: as without an effort."""

    max_rounds: int | None = None
    """The most rounds after round 0."""
    max_steps: int | None = None
    """The most steps of a workflow, for a Conductor that is not a checkpoint."""


_LIMITS: Final[Mapping[Effort | None, EffortLimits]] = {
    "minimal": EffortLimits(max_rounds=0, max_steps=1),
    "low": EffortLimits(max_rounds=0, max_steps=3),
    "high": EffortLimits(max_rounds=2),
}


def limits_of(effort: Effort | None) -> EffortLimits:
    """The limits of an effort; none without one."""
    return _LIMITS.get(effort, EffortLimits())
