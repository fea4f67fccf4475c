"""Units of length, mass, volume and time, each as a whole number of the smallest one, and exact decimals."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wfdsl_rl.gym.world.families.chance import Chance

SCALES = (
    {"mm": 1, "cm": 10, "m": 1000, "km": 1_000_000},
    {"mg": 1, "g": 1000, "kg": 1_000_000, "t": 1_000_000_000},
    {"ml": 1, "cl": 10, "l": 1000},
    {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400},
)
UNITS = {unit: (place, size) for place, scale in enumerate(SCALES) for unit, size in scale.items()}
"""For each unit the scale that it belongs to and its size there."""

UNIT = "|".join(sorted(UNITS, key=len, reverse=True))
VALUE = r"\d{1,9}(?:\.\d{1,6})?"


def neighbours(chance: Chance, scale: Mapping[str, int]) -> tuple[str, str]:
    """Two units that stand side by side in their scale."""
    units = tuple(scale)
    at = chance.below(len(units))
    return units[at], units[chance.pick([other for other in (at - 1, at + 1) if 0 <= other < len(units)])]


def decimal(value: Fraction) -> str | None:
    """The value as a decimal of at most six places; None if it has more."""
    scaled = value * 10**6
    if scaled.denominator != 1:
        return None
    whole, rest = divmod(abs(scaled.numerator), 10**6)
    sign = "-" if value < 0 else ""
    return f"{sign}{whole}.{rest:06d}".rstrip("0").rstrip(".")


def size_of(text: str) -> tuple[int, Fraction] | None:
    """The scale and the size of something like `3.5 km`; None if it is nothing like that."""
    value, _, unit = text.partition(" ")
    if unit not in UNITS or not value.replace(".", "", 1).isdecimal():
        return None
    scale, size = UNITS[unit]
    return scale, Fraction(value) * size
