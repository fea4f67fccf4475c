r"""Numbers with units, exactly: integers, decimals, fractions, mixed numbers, powers of ten, percents, currencies.

`read_number` reads only what is unambiguous: `3x` is not a number, `3 km` is one with a unit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from wfdsl.grading.wording import is_changed_after

_SPELLINGS = {
    "metre": "m meter meters metre metres",
    "kilometre": "km kms kilometer kilometers kilometre kilometres",
    "centimetre": "cm cms centimeter centimeters centimetre centimetres",
    "millimetre": "mm millimeter millimeters millimetre millimetres",
    "mile": "mi mile miles",
    "inch": "in inch inches",
    "foot": "ft foot feet",
    "yard": "yd yds yard yards",
    "gram": "g gram grams gramme grammes",
    "kilogram": "kg kgs kilo kilos kilogram kilograms",
    "milligram": "mg milligram milligrams",
    "tonne": "t tonne tonnes",
    "pound": "lb lbs pound pounds",
    "ounce": "oz ounce ounces",
    "litre": "l liter liters litre litres",
    "millilitre": "ml milliliter milliliters millilitre millilitres",
    "gallon": "gal gallon gallons",
    "second": "s sec secs second seconds",
    "minute": "min mins minute minutes",
    "hour": "h hr hrs hour hours",
    "day": "day days",
    "week": "week weeks",
    "month": "month months",
    "year": "yr yrs year years",
    "dollar": "dollar dollars usd bucks",
    "cent": "cent cents",
    "euro": "euro euros eur €",
    "percent": "% percent",
    "degree": "° degree degrees deg",
    "kelvin": "k kelvin kelvins",
    "celsius": "°c celsius",
    "fahrenheit": "°f fahrenheit",
    "newton": "n newton newtons",
    "joule": "j joule joules",
    "watt": "w watt watts",
    "volt": "v volt volts",
    "hertz": "hz hertz",
    "kilometre per hour": "km/h kph kmh",
    "mile per hour": "mph",
    "metre per second": "m/s",
}
_CANONICAL = {spelling: unit for unit, spellings in _SPELLINGS.items() for spelling in spellings.split()}
_POWERS = {"square": "^2", "sq": "^2", "squared": "^2", "cubic": "^3", "cu": "^3", "cubed": "^3"}
LONGEST_NUMBER = 400
"""How many characters a number may have, and how large a power of ten may be. Our choice."""
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
PLAIN = rf"(?:{_DIGITS}(?:\.\d+)?|\.\d+)"
"""A number without its sign, as a regular expression."""
_NUMBER = re.compile(
    rf"""(?P<sign>[-+]?)\s*(?P<money>[$€£¥]?)\s*(?P<sign2>-?)\s*
    (?: (?P<whole>\d+)\s*\\frac\{{(?P<mn>\d+)\}}\{{(?P<md>\d+)\}}
      | (?P<whole2>\d+)\s+(?P<mn2>\d+)/(?P<md2>\d+)
      | \\frac\{{(?P<n>-?{PLAIN})\}}\{{(?P<d>-?{PLAIN})\}} | (?P<n2>{PLAIN})\s*/\s*(?P<d2>{PLAIN})
      | (?P<v>{PLAIN})\.?(?![\d,/])
        (?:e(?P<e>[-+]?\d{{1,3}})|\s*(?:\\times|\\cdot|[x*])\s*10\s*(?:\^|\*\*)\s*\{{?(?P<p>[-+]?\d{{1,3}})\}}?)? )
    (?P<rest>.*)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_UNIT = re.compile(r"[^\W\d_][\w\s./^²³°'-]{0,60}\.?|[°']+[CFcf]?")
_JOINS = re.compile(
    r"\b(?:or|and|to|through|not|plus|minus|times|over|maybe|possibly|if|per\s*cent\s+of)\b", re.IGNORECASE
)
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number with what followed it."""

    value: Fraction
    """50 for `50%`."""
    scale: int = 1
    """A million for `5 million`, whose value is 5."""
    is_percent: bool = False
    unit: str = ""
    """The canonical name of a known unit, else the words as written."""
    significant_digits: int | None = None
    """How many digits a decimal has; None for an exact number."""
    decimals: int = 0
    """How many digits it has after the point."""


def read_number(text: str) -> Number | None:
    """The number that a text is, or None. Units: one that is not in the table is kept as written."""
    if len(text) > LONGEST_NUMBER or (found := _NUMBER.fullmatch(text.strip())) is None:
        return None
    value = _value(found)
    rest = _rest(found["rest"])
    if value is None or rest is None:
        return None
    scale, is_percent, unit = rest
    negative = (found["sign"] == "-") != (found["sign2"] == "-")
    value = -value if negative else value
    unit = unit or ("dollar" if found["money"] == "$" else "")
    decimals = len((found["v"] or "").partition(".")[2])
    return Number(value, scale, is_percent, unit, _precision(found), decimals)


def same_number(gold: Number, answer: Number) -> bool:
    """Whether two numbers are equal: exactly, or as a decimal of six digits of a fraction that never ends.

    A percent equals its value and the bare number: a question for a percentage is answered with `50` and `50%`. In the
    same way, a question for millions is answered with `5` and `5 million`.
    """
    if gold.unit and answer.unit and _differ(gold.unit, answer.unit):
        return False
    golds, answers = {gold.value * gold.scale}, {answer.value * answer.scale}
    if gold.is_percent != answer.is_percent:
        golds |= {gold.value / 100} if gold.is_percent else set()
        answers |= {answer.value / 100} if answer.is_percent else set()
    if gold.scale == 1:
        answers.add(answer.value)
    is_short = (gold.significant_digits or 0) <= 10
    digits = answer.significant_digits
    return any(_close(one, other, digits, is_short=is_short) for one in golds for other in answers)


def canonical_unit(text: str) -> str | None:
    """The one name of a unit, such as `square centimetre` for `cm^2`; None if the table does not have it."""
    words = re.sub(r"\s*\^\s*\{?([23])\}?", r"^\1", text.strip().lower().replace("²", "^2").replace("³", "^3"))
    if words.startswith(("degrees ", "degree ")):
        words = words.split(" ", 1)[1]
    if words in _CANONICAL:
        return _CANONICAL[words]
    if " per " in words or "/" in words:
        over, _, under = words.replace("/", " per ").partition(" per ")
        parts = canonical_unit(over), canonical_unit(under)
        return None if None in parts else f"{parts[0]} per {parts[1]}"
    power = next((_POWERS[word] for word in words.split() if word in _POWERS), "") or words[-2:] * (words[-2:-1] == "^")
    plain = " ".join(word for word in words.split() if word not in _POWERS).removesuffix(power)
    return f"{_CANONICAL[plain]}{power}" if power and plain in _CANONICAL else None


def _close(gold: Fraction, answer: Fraction, digits: int | None, *, is_short: bool) -> bool:
    if gold == answer:
        return True
    if digits is None or not gold or not answer:
        return False
    difference = abs(gold - answer) / abs(gold)
    if is_short and digits >= 15 and difference < Fraction(1, 10**14):
        return True  # what binary arithmetic makes of it: 17.999999999999996
    return digits >= 6 and not _ends(gold) and difference <= Fraction(5, 10**digits)


def _ends(value: Fraction) -> bool:
    """Whether a fraction is a finite decimal: its denominator has no prime factors but 2 and 5."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def _differ(one: str, other: str) -> bool:
    first, second = canonical_unit(one), canonical_unit(other)
    return first is not None and second is not None and first != second


def _value(found: re.Match[str]) -> Fraction | None:
    whole = found["whole"] or found["whole2"] or "0"
    over = found["mn"] or found["mn2"] or found["n"] or found["n2"]
    under = found["md"] or found["md2"] or found["d"] or found["d2"]
    if over and under:
        return _plain(whole) + _plain(over) / _plain(under) if _plain(under) else None
    power = int(found["e"] or found["p"] or 0)
    return None if abs(power) > LONGEST_NUMBER else _plain(found["v"]) * Fraction(10) ** power


def _plain(digits: str) -> Fraction:
    return Fraction(digits.replace(",", ""))


def _precision(found: re.Match[str]) -> int | None:
    digits = found["v"]
    if digits is None or "." not in digits:
        return None
    return len(digits.replace(",", "").replace(".", "").lstrip("0"))


def _rest(text: str) -> tuple[int, bool, str] | None:
    """What follows a number: its scale, whether it is a percent, its unit. None if it is something else."""
    stripped = text.strip().removesuffix(".").rstrip()
    if not stripped:
        return 1, False, ""
    if re.fullmatch(r"\\?%|per\s?cent|percentage points?|pct", stripped, re.IGNORECASE):
        return 1, True, ""
    if (scale := _SCALES.get(stripped.split()[0].lower())) and text[0].isspace():
        rest = _rest(" " + stripped[len(stripped.split()[0]) :])
        return None if rest is None else (scale * rest[0], rest[1], rest[2])
    if _JOINS.search(stripped) or is_changed_after(text) or not _UNIT.fullmatch(stripped):
        return None
    known = canonical_unit(stripped)
    is_letter = len(stripped) == 1 and stripped.isalpha() and (known is None or not text[0].isspace())
    if is_letter or (known is None and not text[0].isspace()):
        return None
    return 1, False, known or stripped
