"""Near-duplicate texts (shingles with a prefix filter), and diverse texts (farthest first in a hashed vector space).

Near duplicates are exact over all pairs without comparing all pairs. A text is a set of shingles (three tokens in a
row). Two texts are alike if they share most of their shingles. So a text must share at least one of its rarest shingles
with each text that is like it, and only such pairs are compared.
"""

from __future__ import annotations

import itertools
import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from wfdsl.installation import install_command
from wfdsl.tasks.rows import optional_module

ALIKE = 0.7
"""The least share of shared shingles, of all shingles of both texts. Our choice."""
CONTAINED = 0.8
"""The same of the shorter text alone, for a text that is quoted in a longer one. Our choice."""
QUOTED = 20
"""The fewest shingles of a text that counts as quoted: shorter ones occur in other texts by chance. Our choice."""
DIMENSIONS = 512
"""Size of the hashed vectors. Our choice: collisions between a few thousand short texts stay below their overlap."""

_SHINGLE = 3  # tokens
_TOKEN = re.compile(r"\w+|[^\w\s]")


def near_duplicates(texts: Sequence[str]) -> dict[int, int]:
    """The texts that are like an earlier text which is not itself a near duplicate: text -> earlier text."""
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
    """The texts that are like one of the others: text -> first such other."""
    every = _shingled([*texts, *others])
    index = _Index(_frequencies(every))
    for number, shingles in enumerate(every[len(texts) :]):
        index.add(number, shingles)
    likes = ((number, index.first_like(shingles)) for number, shingles in enumerate(every[: len(texts)]))
    return {number: like for number, like in likes if like is not None}


def farthest_first(texts: Sequence[str], count: int) -> list[int]:
    """The first text, then repeatedly the text that is farthest from the chosen ones; of equal ones the earlier one.

    Source: greedy k-centre (Gonzalez 1985), within a factor of two of the best spread.
    """
    if count >= len(texts):
        return list(range(len(texts)))
    numpy = optional_module("numpy", needed_for="choosing diverse tasks", install=install_command("eval"))
    vectors = _vectors(texts, numpy)
    chosen = [0]
    nearest = vectors @ vectors[0]
    for _ in range(count - 1):
        nearest[chosen[-1]] = numpy.inf
        farthest = int(nearest.argmin())
        chosen.append(farthest)
        numpy.maximum(nearest, vectors @ vectors[farthest], out=nearest)
    return chosen


def _tokens(text: str) -> list[str]:
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
        frozenset(numbers.setdefault(shingle, len(numbers)) for shingle in _shingles(_tokens(text))) for text in texts
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
    `|s| - ceil(ALIKE |s|) + 1` rarest is among all shingles of the other.
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


def _vectors(texts: Sequence[str], numpy: Any) -> Any:
    """One unit vector for each text: how often each word and pair occurs, the rarer the heavier."""
    counted = [_counted(text) for text in texts]
    spread = Counter(feature for features in counted for feature in features)
    vectors = numpy.zeros((len(texts), DIMENSIONS), dtype=numpy.float32)
    for row, features in enumerate(counted):
        for feature, count in features.items():
            weight = math.log1p(count) * math.log(1 + len(texts) / spread[feature])
            # One bit of the hash is the sign, so that collisions cancel out on average.
            vectors[row, (feature >> 1) % DIMENSIONS] += weight if feature & 1 else -weight
    lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / numpy.maximum(lengths, 1e-9)


def _counted(text: str) -> Counter[int]:
    words = _tokens(text)
    pairs = (f"{first} {second}" for first, second in itertools.pairwise(words))
    # A hash that is the same in every process.
    return Counter(zlib.crc32(feature.encode()) for feature in [*words, *pairs])
