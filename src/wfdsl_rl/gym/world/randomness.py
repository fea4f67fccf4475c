"""Random numbers from hashes: the same key and stream give the same number, in any order of calls, on any machine.

A key is 64 bits, a stream a small number that tells apart what one key is asked for. `Scalars` computes with Python's
numbers; `wfdsl_rl.gym.world.accuracy` does the same with numpy arrays, one entry a question. What is written against
`Arithmetic` runs on both and gives the same.
"""

from __future__ import annotations

from hashlib import blake2b
from math import log, sqrt
from typing import Any, Final, Protocol, TypeAlias

Numbers: TypeAlias = Any
"""A number, or a numpy array of them; the type checker knows no name for "either"."""
Truths: TypeAlias = Any
"""A bool, or an array of them."""

MASK: Final = (1 << 64) - 1
STRIDE: Final = 0x9E3779B97F4A7C15
FACTORS: Final = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""The constants of splitmix64 (Steele, Lea and Flood 2014)."""
UNIT: Final = 2.0**-53

# Rational approximation of the normal quantile by P. J. Acklam: relative error below 1.2e-9.
CENTRE_TOP: Final = (
    -3.969683028665376e01, 2.209460984245205e02, -2.759285104469687e02,
    1.383577518672690e02, -3.066479806614716e01, 2.506628277459239e00,
)  # fmt: skip
CENTRE_BOTTOM: Final = (
    -5.447609879822406e01, 1.615858368580409e02, -1.556989798598866e02,
    6.680131188771972e01, -1.328068155288572e01, 1.0,
)  # fmt: skip
TAIL_TOP: Final = (
    -7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e00,
    -2.549732539343734e00, 4.374664141464968e00, 2.938163982698783e00,
)  # fmt: skip
TAIL_BOTTOM: Final = (
    7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00, 1.0,
)  # fmt: skip
TAIL: Final = 0.02425
"""The share of each tail."""


class Arithmetic(Protocol):
    """What differs between numbers and arrays of numbers."""

    def joined(self, key: Numbers, salt: int) -> Numbers:
        """A new key from a key and 64 more bits."""
        ...

    def uniform(self, key: Numbers, stream: int) -> Numbers:
        """A number between 0 and 1, both excluded."""
        ...

    def normal(self, key: Numbers, stream: int) -> Numbers:
        """A standard normal number."""
        ...

    def where(self, condition: Truths, then: Numbers, otherwise: Numbers) -> Numbers:
        """The one or the other."""
        ...

    def no(self, condition: Truths) -> Truths:
        """The opposite."""
        ...


def text_key(*parts: object) -> int:
    """64 bits from texts and numbers."""
    text = "\x1f".join(map(str, parts))
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def polynomial(coefficients: tuple[float, ...], x: Numbers) -> Numbers:
    """The polynomial with these coefficients, highest power first."""
    total = coefficients[0]
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


class Scalars:
    """Arithmetic on Python's numbers."""

    def joined(self, key: int, salt: int) -> int:
        return _mixed(key ^ salt)

    def uniform(self, key: int, stream: int) -> float:
        return ((_mixed((key + (stream + 1) * STRIDE) & MASK) >> 11) + 0.5) * UNIT

    def normal(self, key: int, stream: int) -> float:
        return quantile(self.uniform(key, stream))

    def where(self, condition: bool, then: Numbers, otherwise: Numbers) -> Numbers:  # noqa: FBT001  (numpy's order)
        return then if condition else otherwise

    def no(self, condition: bool) -> bool:  # noqa: FBT001
        return not condition


def quantile(share: float) -> float:
    """The standard normal quantile."""
    if TAIL <= share <= 1 - TAIL:
        q = share - 0.5
        r = q * q
        return float(polynomial(CENTRE_TOP, r) * q / polynomial(CENTRE_BOTTOM, r))
    q = sqrt(-2 * log(min(share, 1 - share)))
    size = float(polynomial(TAIL_TOP, q) / polynomial(TAIL_BOTTOM, q))
    return size if share < TAIL else -size


def _mixed(x: int) -> int:
    x = ((x ^ (x >> 30)) * FACTORS[0]) & MASK
    x = ((x ^ (x >> 27)) * FACTORS[1]) & MASK
    return x ^ (x >> 31)
