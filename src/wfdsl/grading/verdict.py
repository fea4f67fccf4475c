"""The verdict of a grader on an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Outcome: TypeAlias = Literal["right", "wrong", "unjudged"]
"""`unjudged`: the grader could not tell, which is neither right nor wrong."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an answer is right, and why."""

    outcome: Outcome
    """`right`, `wrong` or `unjudged`."""
    extracted: str | None = None
    """What was taken as the final answer; None if nothing was found."""
    reason: str = ""
    """One line for readers: what was compared, which test failed, or why nothing could be graded."""
    timed_out: bool = False
    """Whether a program ran past its time limit, which another run of it may not."""
