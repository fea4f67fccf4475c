"""Effort: how much a Conductor may spend on a question, by the names that OpenAI's `reasoning_effort` has.

A Conductor that was trained with prices in its prompt is told the price of a step that belongs to the effort: its
template set has a text `effort_NAME` for each. Any other Conductor gets limits from a table. Numbers are our choice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from wfdsl.config import check_options, option
from wfdsl.interpreter.budget import Budget

Effort: TypeAlias = Literal["minimal", "low", "medium", "high"]
EFFORTS: Final[tuple[Effort, ...]] = ("minimal", "low", "medium", "high")
DEFAULT_EFFORT: Final[Effort] = "medium"
"""What a Conductor with prices in its prompt is told unless an effort is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffortLimits:
    """What an effort limits. None: as without an effort."""

    max_rounds: int | None = option(None, help="the most rounds after round 0", metavar="N", minimum=0)
    max_steps: int | None = option(
        None, help="the most steps of a workflow, for a Conductor that is no checkpoint", metavar="N", minimum=1
    )
    usd: float | None = option(None, help="the most US dollars of a question", metavar="USD", minimum=0)

    def __post_init__(self) -> None:
        check_options(self)

    def within(self, budget: Budget) -> Budget:
        """A question's budget, with the smaller of both amounts of dollars."""
        amounts = [usd for usd in (self.usd, budget.usd) if usd is not None]
        return replace(budget, usd=min(amounts)) if amounts else budget


NO_LIMITS: Final = EffortLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class EffortTable:
    """The limits of each effort: the table [conductor.efforts]."""

    minimal: EffortLimits = option(
        EffortLimits(max_rounds=0, max_steps=1), help="limits of the effort minimal: one worker answers"
    )
    low: EffortLimits = option(EffortLimits(max_rounds=0, max_steps=3), help="limits of the effort low")
    medium: EffortLimits = option(NO_LIMITS, help="limits of the effort medium: none")
    high: EffortLimits = option(EffortLimits(max_rounds=2), help="limits of the effort high")

    def __post_init__(self) -> None:
        check_options(self)

    def of(self, effort: Effort | None) -> EffortLimits:
        """The limits of an effort; none without one."""
        limits: EffortLimits = NO_LIMITS if effort is None else getattr(self, effort)
        return limits
