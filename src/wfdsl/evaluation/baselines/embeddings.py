"""Texts as vectors, so that questions can be near to each other: by their words and letters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias
from zlib import crc32

from wfdsl.installation import require_packages

if TYPE_CHECKING:  # an optional package
    import numpy as np
    from numpy.typing import NDArray

Vectors: TypeAlias = "NDArray[np.float64]"
"""One row of length 1 for each text."""

WIDTH: Final = 1024
"""Columns; our choice."""
GRAMS: Final = (3, 4, 5)
"""Letters in a row, spaces at the ends of words included; our choice."""
_WORD: Final = re.compile(r"[^\W_]+|[^\w\s]")


def embed(texts: Sequence[str]) -> Vectors:
    """The vectors of some texts: counts of words and of letters in a row, hashed with a sign, by their roots.

    Raises:
        UsageError: numpy is not installed.
    """
    require_packages("a router", ["numpy"], "eval")
    import numpy as np  # noqa: PLC0415  (an extra, which fixed workflows can do without)

    vectors = np.zeros((len(texts), WIDTH))
    for row, text in enumerate(texts):
        for gram in _grams(text):
            code = _code(gram)
            vectors[row, code % WIDTH] += 1 if code & 0x80000000 else -1
    rooted = np.sign(vectors) * np.sqrt(np.abs(vectors))
    unit: Vectors = rooted / np.maximum(np.linalg.norm(rooted, axis=1, keepdims=True), 1e-12)
    return unit


def nearest(vector: Vectors, among: Vectors, k: int) -> list[int]:
    """The rows that are most like a vector, the nearest first; of equal ones the earlier first."""
    import numpy as np  # noqa: PLC0415  (as above)

    likeness = np.round(among @ vector, 9)
    return [int(row) for row in np.argsort(-likeness, kind="stable")[:k]]


def _grams(text: str) -> Iterator[str]:
    for word in _WORD.findall(text.casefold()):
        yield f"={word}"
        spaced = f" {word} "
        for length in GRAMS:
            yield from (spaced[at : at + length] for at in range(len(spaced) - length + 1))


@lru_cache(maxsize=1 << 16)
def _code(gram: str) -> int:
    return crc32(gram.encode(errors="surrogatepass"))
