"""The hand that writes test texts: every free choice of spelling goes through it.

It draws from a `random.Random`. Under hypothesis that is one of hypothesis's own, so that a failing text is found again
and made smaller; the first of several options is always the plainest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Pen:
    """Makes choices, and knows which repairs the text that it writes is to need."""

    def __init__(self, chooser: Random, repairs: Collection[str] = ()) -> None:
        self.used: set[str] = set()
        """The codes of the repairs that the text needs so far."""
        self._chooser = chooser
        self._repairs = frozenset(repairs)

    def number(self, low: int, high: int) -> int:
        """One of the integers from `low` to `high`, both included."""
        return low if low == high else self._chooser.randint(low, high)

    def choose(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.number(0, len(options) - 1)]

    def seldom(self, one_in: int) -> bool:
        """True once in so many times."""
        return self.number(1, one_in) == one_in

    def mends(self, code: str) -> bool:
        """Whether to write the next thing so that it needs this repair: the first time surely, later at times."""
        if code not in self._repairs or (code in self.used and not self.seldom(2)):
            return False
        self.used.add(code)
        return True

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in any order; in their own more often than not."""
        order = list(items)
        if len(order) > 1 and self.seldom(3):
            for last in range(len(order) - 1, 0, -1):
                other = self.number(0, last)
                order[last], order[other] = order[other], order[last]
        return order
