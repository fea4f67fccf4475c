"""Which texts are nearly the same: exact, over all pairs, without looking at all pairs.

Texts are sets of shingles (three tokens in a row). Two of them are alike if they share most of their shingles, so a
text must share at least one of its rarest ones with each text that is like it, and only those are compared.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ALIKE = 0.7
"""The least share of shingles, of those of both texts, that they have in common. Our choice."""
CONTAINED = 0.8
"""The same of the shorter text alone, for a text that is quoted in a longer one. Our choice."""
QUOTED = 20
"""The fewest shingles of a text that counts as quoted: shorter ones stand in other texts by chance. Our choice."""

_SHINGLE = 3  # tokens
_TOKEN = re.compile(r"\w+|[^\w\s]")


def near_duplicates(texts: Sequence[str]) -> dict[int, int]:
    """The texts that are like an earlier one which is none of them, each with that one."""
    every = _shingled(texts)
    index = _Index(_frequencies(every))
    found: dict[int, int] = {}
    for number, shingles in enumerate(every):
        like = index.first_like(shingles)
        if like is None:
            index.add(number, shingles)
        else:
            found[number] = like
    return found


def overlaps(texts: Sequence[str], others: Sequence[str]) -> dict[int, int]:
    """The texts that are like one of the others, each with the first such."""
    every = _shingled([*texts, *others])
    index = _Index(_frequencies(every))
    for number, shingles in enumerate(every[len(texts) :]):
        index.add(number, shingles)
    likes = ((number, index.first_like(shingles)) for number, shingles in enumerate(every[: len(texts)]))
    return {number: like for number, like in likes if like is not None}


def tokens(text: str) -> list[str]:
    """The words, numbers and signs of a text, in lower case."""
    return _TOKEN.findall(text.lower())


def alike(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether two sets of shingles are nearly the same, or one contains the other."""
    shared, shorter = len(one & other), min(len(one), len(other))
    if shared >= ALIKE * (len(one) + len(other) - shared):
        return True
    return shorter >= QUOTED and shared >= CONTAINED * shorter


def _shingled(texts: Sequence[str]) -> list[frozenset[int]]:
    numbers: dict[tuple[str, ...], int] = {}
    return [
        frozenset(numbers.setdefault(shingle, len(numbers)) for shingle in _shingles(tokens(text))) for text in texts
    ]


def _shingles(words: list[str]) -> Iterator[tuple[str, ...]]:
    if len(words) <= _SHINGLE:
        return iter([tuple(words)])
    return zip(*(words[start:] for start in range(_SHINGLE)), strict=False)


def _frequencies(every: Iterable[frozenset[int]]) -> Counter[int]:
    return Counter(shingle for shingles in every for shingle in shingles)


class _Index:
    """Sets of shingles by their shingles, and by their rarest ones.

    Invariant: of two sets that are alike, the smaller shares at least the share `ALIKE` of its shingles, so one of its
    `|s| - ceil(ALIKE |s|) + 1` rarest is among all those of the other.
    """

    def __init__(self, frequencies: Counter[int]) -> None:
        self._frequencies = frequencies
        self._sets: dict[int, frozenset[int]] = {}
        self._by_any: dict[int, list[int]] = defaultdict(list)
        self._by_rarest: dict[int, list[int]] = defaultdict(list)

    def add(self, number: int, shingles: frozenset[int]) -> None:
        self._sets[number] = shingles
        for shingle in shingles:
            self._by_any[shingle].append(number)
        for shingle in self._rarest(shingles):
            self._by_rarest[shingle].append(number)

    def first_like(self, shingles: frozenset[int]) -> int | None:
        candidates: set[int] = set()
        for shingle in self._rarest(shingles):
            candidates.update(self._by_any.get(shingle, ()))
        for shingle in shingles:
            candidates.update(self._by_rarest.get(shingle, ()))
        return next((number for number in sorted(candidates) if alike(self._sets[number], shingles)), None)

    def _rarest(self, shingles: frozenset[int]) -> list[int]:
        needed = len(shingles) - math.ceil(ALIKE * len(shingles)) + 1
        return sorted(shingles, key=lambda shingle: (self._frequencies[shingle], shingle))[:needed]
