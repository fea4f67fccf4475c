"""Choosing texts that are far apart: hashed word pairs as vectors, and the farthest text next."""

from __future__ import annotations

import itertools
import math
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from wfdsl_rl.tasks.rows import late
from wfdsl_rl.tasks.similarity import tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

DIMENSIONS = 512
"""Of the vectors. Our choice: collisions between a few thousand short texts stay below their real overlap."""


def farthest_first(texts: Sequence[str], count: int) -> list[int]:
    """The first text, then again and again the one that is farthest from those chosen; ties go to the earlier one.

    Source: greedy k-centre (Gonzalez 1985), within a factor of two of the best spread.
    """
    if count >= len(texts):
        return list(range(len(texts)))
    numpy = late("numpy", needed_for="choosing diverse tasks", install="wfdsl[eval]")
    vectors = _vectors(texts, numpy)
    chosen = [0]
    nearest = vectors @ vectors[0]
    for _ in range(count - 1):
        nearest[chosen[-1]] = numpy.inf
        farthest = int(nearest.argmin())
        chosen.append(farthest)
        numpy.maximum(nearest, vectors @ vectors[farthest], out=nearest)
    return chosen


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
    words = tokens(text)
    pairs = (f"{first} {second}" for first, second in itertools.pairwise(words))
    # A hash that is the same in every process.
    return Counter(zlib.crc32(feature.encode()) for feature in [*words, *pairs])
