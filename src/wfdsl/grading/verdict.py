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
    """What the reply states as its answer; None if it states nothing."""
    reason: str = ""
    """One line for readers: the normal forms that were compared, which test failed, or why nothing could be graded."""
    timed_out: bool = False
    """Whether a program ran past its time limit, which another run of it may not."""
    rule: str = ""
    """How the answers were compared, such as `exact numbers`, or by whom, such as `judge`."""
    statement: str = ""
    """The sentence, line or box in which the answer is stated."""
    score: float | None = None
    """Of a grader of one's own that gives part of the credit: from 0 to 1. Without it, right is 1 and wrong is 0."""

    @property
    def is_unanswered(self) -> bool:
        """Whether the reply states no answer, which is wrong."""
        return self.outcome == "wrong" and self.extracted is None and self.rule != "program"

    @property
    def credit(self) -> float:
        """What the answer is worth, from 0 to 1; an unjudged one nothing."""
        return float(self.outcome == "right") if self.score is None else self.score
