"""States of replies, without texts: a plan of some quality, or an attempt with its answer and visible evidence.

Each field is one value, or an array with one value a question (`wfdsl_rl.gym.world.simulate`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from wfdsl_rl.gym.world.randomness import Numbers, Truths

STRANGER: Final = -1
"""The agent id of a text that no worker of the gym has written."""

MISLEADING, THIN, SOUND = -1, 0, 1
"""The quality of a plan."""

RIGHT, OTHER, NO_ANSWER = 0, 4, -1
"""Answers: the right one; 1 to 3, the item's wrong answers; one that is none of these; none at all."""
WRONG: Final = 3
"""How many of an item's wrong answers the workers give."""

UNCHECKED, PASSES, FAILS = 0, 1, 2
"""What a reply says of a check of its own."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A way to go, without an answer."""

    agent: int
    """Who has written it: an index of `wfdsl_rl.gym.world.profiles.PROFILES`."""
    quality: Numbers


@dataclass(frozen=True, slots=True)
class Attempt:
    """A reply that gives an answer, or at least tries."""

    agent: int
    answer: Numbers
    check: Numbers = UNCHECKED
    hedged: Truths = False
    """It says that it is not sure."""
    slipped: Truths = False
    """It leaves something open, such as a unit or a special case."""
    cut: Truths = False
    """It ended at the token limit, before its answer."""
    part: int = 0
    """Which part of the question it answers, from 1; 0 is the whole."""


State: TypeAlias = Plan | Attempt
