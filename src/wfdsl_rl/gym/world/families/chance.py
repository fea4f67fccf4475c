"""Draws that depend on a text alone, so that they are the same on every platform and Python version.

A 512-bit digest is spent by division; what `random` promises to keep across versions does not cover all of this.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


_SPENT = 1 << 128
"""Below this the rest of a digest is thrown away: the bias of a draw stays under 2**-64."""


class Chance:
    """A stream of draws from a text."""

    __slots__ = ("_block", "_pool", "_text")

    def __init__(self, text: str) -> None:
        self._text = _bytes(text)
        self._block = 0
        self._pool = 0

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound` - 1."""
        if self._pool < _SPENT:
            digest = blake2b(self._text, salt=self._block.to_bytes(16, "big")).digest()
            self._block += 1
            self._pool = int.from_bytes(digest, "big")
        self._pool, drawn = divmod(self._pool, bound)
        return drawn

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def pick(self, things: Sequence[T]) -> T:
        """One of the things."""
        return things[self.below(len(things))]

    def sample(self, things: Sequence[T], size: int) -> list[T]:
        """`size` of the things, each at most once, in random order."""
        left = list(things)
        return [left.pop(self.below(len(left))) for _ in range(size)]

    def shuffled(self, things: Sequence[T]) -> list[T]:
        """All the things, in random order."""
        return self.sample(things, len(things))


_TERMS = 8
_SPREAD = math.sqrt(_TERMS * (65536**2 - 1) / 12)


def jitter(text: str) -> float:
    """A number that the text fixes, about standard normal over texts. A sum of whole numbers, so exact everywhere."""
    digest = blake2b(_bytes(text), digest_size=2 * _TERMS, person=b"jitter").digest()
    total = sum(int.from_bytes(digest[at : at + 2], "big") for at in range(0, 2 * _TERMS, 2))
    return (total - _TERMS * 65535 / 2) / _SPREAD
