"""How often each of some choices was right on validation tasks: over all of them, and near a question."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl_rl.baselines.validation import Result

PRIOR: Final = 5.0
"""So many tasks' worth of the overall share are added to counts near a question; our choice."""


@dataclass(frozen=True)
class Counts:
    """Right and wrong by choice, then by task; None where nothing was judged."""

    outcomes: tuple[tuple[bool | None, ...], ...]

    @classmethod
    def of(cls, results: Sequence[Sequence[Result]]) -> Counts:
        """The outcomes of results."""
        return cls(tuple(tuple(result.right for result in row) for row in results))

    @cached_property
    def overall(self) -> list[float]:
        """The share of right answers of each choice; a choice of which nothing is known counts as always wrong."""
        return [_share(row, range(len(row)), prior=0.0, weight=0.0) for row in self.outcomes]

    def near(self, tasks: Sequence[int]) -> list[float]:
        """The same on some of the tasks, drawn towards the overall share."""
        pairs = zip(self.outcomes, self.overall, strict=True)
        return [_share(row, tasks, prior=share, weight=PRIOR) for row, share in pairs]


def best(scores: Sequence[float]) -> int:
    """The index of the highest score; of equal ones the earliest."""
    return max(range(len(scores)), key=lambda at: (scores[at], -at))


def ranked(scores: Sequence[float]) -> list[int]:
    """The indices by falling score; of equal ones the earlier first."""
    return sorted(range(len(scores)), key=lambda at: (-scores[at], at))


def _share(row: Sequence[bool | None], tasks: Sequence[int], *, prior: float, weight: float) -> float:
    judged = [row[task] for task in tasks if row[task] is not None]
    known = len(judged) + weight
    return (sum(map(bool, judged)) + weight * prior) / known if known else 0.0
