"""What a judged completion is worth.

Source of the default: arXiv 2512.04388, section 4: 0 for lists that cannot be read, 0.5 for a workflow whose answer is
wrong, 1 for the right answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wfdsl_rl.judge import Judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewards:
    """The rewards, in no unit but that of each other."""

    invalid: float = 0.0
    wrong: float = 0.5
    right: float = 1.0
    step: float = 0.0
    """What each step of a valid workflow adds: below 0, the price of a call. Our choice: the paper has none."""

    def of(self, judged: Judged) -> float | None:
        """The reward; None where the outcome is missing, so that the sample is left out."""
        if judged.fate == "missing":
            return None
        steps = 0 if judged.workflow is None else len(judged.workflow)
        return {"invalid": self.invalid, "wrong": self.wrong, "right": self.right}[judged.fate] + self.step * steps

    def mean(self, executions: Iterable[Judged]) -> float | None:
        """The mean reward of a completion's executions; None where the outcome of all of them is missing."""
        known = [reward for judged in executions if (reward := self.of(judged)) is not None]
        return sum(known) / len(known) if known else None
