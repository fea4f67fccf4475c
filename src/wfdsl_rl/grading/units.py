"""Units and their spellings: enough to know that `km` is `kilometres`, and that hours are not minutes."""

from __future__ import annotations

import re

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
