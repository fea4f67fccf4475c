"""Near-duplicate texts (shingles with a prefix filter), and diverse texts (farthest first).

Near duplicates are exact over all pairs without comparing all pairs. A text is a set of shingles (three tokens in a
row). Two texts are alike if they share most of their shingles. So a text must share at least one of its rarest shingles
with each text that is like it, and only such pairs are compared.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

ALIKE = 0.7
"""The least share of shared shingles, of all shingles of both texts. Our choice."""
CONTAINED = 0.8
"""The same of the shorter text alone, for a text that is quoted in a longer one. Our choice."""
QUOTED = 20
"""The fewest shingles of a text that counts as quoted: shorter ones occur in other texts by chance. Our choice."""

_SHINGLE = 3  # tokens
_TOKEN = re.compile(r"\w+|[^\w\s]")


def likes(texts: Sequence[str], others: Sequence[str] = ()) -> dict[int, int]:
    """The texts that are like one of the others, or like an earlier text that is like none: text -> the first of them.

    Others are numbered from 0, and texts go on after them.
    """
    every = [_shingles(text) for text in (*others, *texts)]
    frequencies = Counter(shingle for shingles in every for shingle in shingles)
    by_any: defaultdict[int, list[int]] = defaultdict(list)
    by_rarest: defaultdict[int, list[int]] = defaultdict(list)
    found: dict[int, int] = {}
    for number, shingles in enumerate(every):
        # The smaller of two sets that are alike shares at least ALIKE of its n shingles, so one of these is in both.
        most = len(shingles) - math.ceil(ALIKE * len(shingles)) + 1
        rarest = sorted(shingles, key=lambda shingle: (frequencies[shingle], shingle))[:most]
        if number >= len(others):
            near = {one for shingle in rarest for one in by_any.get(shingle, ())}
            near |= {one for shingle in shingles for one in by_rarest.get(shingle, ())}
            like = next((one for one in sorted(near) if _are_alike(every[one], shingles)), None)
            if like is not None:
                found[number - len(others)] = like
                continue
        for index, keys in ((by_any, shingles), (by_rarest, rarest)):
            for shingle in keys:
                index[shingle].append(number)
    return found


def farthest_first(texts: Sequence[str], count: int) -> list[int]:
    """The first text, then repeatedly the text that is farthest from the chosen ones; of equal ones the earlier one.

    Two texts are as near as the share of their words that both have. Source: greedy k-centre (Gonzalez 1985), within a
    factor of two of the best spread.
    """
    if count >= len(texts):
        return list(range(len(texts)))
    words = [frozenset(_TOKEN.findall(text.lower())) for text in texts]
    chosen, nearest = [0], [0.0] * len(texts)
    for _ in range(count - 1):
        newest = words[chosen[-1]]
        nearest[chosen[-1]] = math.inf
        for number, nearness in enumerate(nearest):
            if nearness < 1:
                shared = len(newest & words[number])
                nearest[number] = max(nearness, shared / (len(newest) + len(words[number]) - shared))
        chosen.append(min(range(len(texts)), key=nearest.__getitem__))
    return chosen


def _are_alike(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether two sets of shingles are nearly the same, or one contains the other."""
    shared, shorter = len(one & other), min(len(one), len(other))
    if shared >= ALIKE * (len(one) + len(other) - shared):
        return True
    return shorter >= QUOTED and shared >= CONTAINED * shorter


def _shingles(text: str) -> frozenset[int]:
    """The runs of three words, numbers and signs of a text in lower case, by their hashes."""
    words = _TOKEN.findall(text.lower())
    runs = zip(*(words[start:] for start in range(_SHINGLE)), strict=False) if len(words) > _SHINGLE else [tuple(words)]
    return frozenset(map(hash, runs))
