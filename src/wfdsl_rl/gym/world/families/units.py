"""Questions about units of length, mass, volume and time: conversions as text, measures as choices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from wfdsl_rl.gym.world.families import choice_options
from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form, RandomStream, other_texts

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


def neighbours(rng: RandomStream, scale: Mapping[str, int]) -> tuple[str, str]:
    """Two neighbouring units of a scale."""
    units = tuple(scale)
    at = rng.below(len(units))
    return units[at], units[rng.pick([other for other in (at - 1, at + 1) if 0 <= other < len(units)])]


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


_SLIPS = (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 10), Fraction(10), Fraction(100), Fraction(1000))
_CLOCK_SLIPS = (Fraction(1, 60), Fraction(5, 6), Fraction(3, 5), Fraction(5, 3), Fraction(5), Fraction(10))


def _amount(rng: RandomStream) -> Fraction:
    return Fraction(rng.between(1, 99), rng.pick((1, 1, 2, 4, 10)))


def _draw_same(rng: RandomStream) -> dict[str, str]:
    scale = rng.pick(SCALES)
    given, asked = neighbours(rng, scale)
    amount = _amount(rng)
    slips = _CLOCK_SLIPS if "hours" in scale else _SLIPS
    found = amount * scale[given] / scale[asked]
    others = [decimal(found * slip) for slip in rng.shuffled(slips)]
    fitting = [f"{other} {asked}" for other in others if other is not None]
    truth = decimal(found)
    if truth is None or len(fitting) < 3:
        return {"value": "0", "unit": given, "options": ""}
    amount_text = decimal(amount) or ""
    return {"value": amount_text, "unit": given, "options": choice_options.written(rng, f"{truth} {asked}", fitting)}


def _same(fields: Fields) -> Answer | None:
    target = size_of(f"{fields['value']} {fields['unit']}")
    found = choice_options.read(fields["options"])
    sizes = {option: size_of(option) for option in found or ()}
    if target is None or any(size is None or size[0] != target[0] for size in sizes.values()):
        return None
    load = len(fields["value"]) + 3 * ("." in fields["value"]) + 3 * (target[0] == 3)
    return choice_options.chosen(
        fields["options"],
        lambda option: sizes[option] == target,
        load=load,
        distance=lambda option: _ratio(sizes[option], target),
    )


def _ratio(size: tuple[int, Fraction] | None, target: tuple[int, Fraction]) -> float:
    """How far apart two sizes are: 0 for the same, else the larger through the smaller."""
    if size is None or not size[1] or not target[1]:
        return float("inf")
    return float(max(size[1] / target[1], target[1] / size[1]))


_SUPERLATIVES = (
    {"longest": True, "shortest": False},
    {"heaviest": True, "lightest": False},
    {"largest": True, "smallest": False},
    {"longest": True, "shortest": False},
)


def _draw_extreme(rng: RandomStream) -> dict[str, str]:
    number = rng.below(len(SCALES))
    scale = SCALES[number]
    units = neighbours(rng, scale)
    middle = rng.between(2, 90) * max(scale[unit] for unit in units)
    near = [Fraction(middle * rng.between(60, 160), 100) for _ in range(4)]
    texts = [f"{_short(size / scale[unit])} {unit}" for size, unit in zip(near, units * 2, strict=True)]
    which = rng.pick(tuple(_SUPERLATIVES[number]))
    return {"which": which, "options": choice_options.written(rng, texts[0], texts[1:])}


def _short(value: Fraction) -> str | None:
    """About the value in few digits."""
    return str(round(value)) if value >= 100 else decimal(Fraction(round(value * 10), 10))


def _extreme(fields: Fields) -> Answer | None:
    found = choice_options.read(fields["options"])
    sizes = {option: size_of(option) for option in found or ()}
    known = [size for size in sizes.values() if size is not None]
    if len(known) != len(choice_options.LETTERS) or len({scale for scale, _ in known}) != 1:
        return None
    largest = _SUPERLATIVES[known[0][0]].get(fields["which"])
    ordered = sorted(known, reverse=largest is True)
    if largest is None or ordered[0] == ordered[1]:
        return None
    closeness = 1 / max(_ratio(ordered[0], ordered[1]) - 1, 0.02)
    return choice_options.chosen(
        fields["options"],
        lambda option: sizes[option] == ordered[0],
        load=min(closeness, 20.0),
        distance=lambda option: _ratio(sizes[option], ordered[0]),
    )


_WHICH = "longest|shortest|heaviest|lightest|largest|smallest"

MEASURES = Family(
    "measures",
    "choice",
    "The same amount in another unit, or the largest or smallest of four; exact ratios of units.",
    (
        Form(
            "same",
            {"value": VALUE, "unit": UNIT, "options": choice_options.PATTERN},
            train=(
                "Which of these is the same as {value} {unit}?{options}",
                "What is {value} {unit} in another unit?{options}",
                "{value} {unit} is equal to{options}",
                "Which amount equals {value} {unit}?{options}",
            ),
            test=("How else can {value} {unit} be written?{options}", "Which one is exactly {value} {unit}?{options}"),
            draw=_draw_same,
            answer=_same,
            scale=(4.50, 2.70),
        ),
        Form(
            "extreme",
            {"which": _WHICH, "options": choice_options.PATTERN},
            train=(
                "Which of these is the {which}?{options}",
                "Which amount is the {which}?{options}",
                "The {which} of these amounts is{options}",
                "One of these is the {which}. Which one?{options}",
            ),
            test=("Name the {which} of these four.{options}", "Put in order, which one is the {which}?{options}"),
            draw=_draw_extreme,
            answer=_extreme,
            scale=(8.75, 6.78),
        ),
    ),
)


_TENS = tuple(Fraction(10) ** power for power in (-1, 1, 2, -2, 3, -3))
_CLOCK = (Fraction(100, 60), Fraction(60, 100), Fraction(1, 60), Fraction(60), Fraction(10), Fraction(1, 10))


def _amounts(gold: Fraction, unit: str, slips: Iterable[Fraction], load: float) -> Answer | None:
    """The answer with its unit; None if the amount or too many of the slips have no short decimal."""
    written = [decimal(value) for value in (gold, *slips) if value >= 0]
    if written[0] is None:
        return None
    right, *others = (f"{value} {unit}" for value in written if value is not None)
    wrong = other_texts(right, others)
    return None if wrong is None else Answer(right, wrong, load)


def _draw_convert(rng: RandomStream) -> dict[str, str]:
    given, asked = neighbours(rng, rng.pick(SCALES))
    value = Fraction(rng.between(1, rng.pick((20, 99, 960))), rng.pick((1, 1, 2, 4, 10)))
    return {"value": decimal(value) or "0", "unit": given, "to": asked}


def _convert(fields: Fields) -> Answer | None:
    (scale, size), (asked_scale, asked_size) = UNITS[fields["unit"]], UNITS[fields["to"]]
    if scale != asked_scale or size == asked_size:
        return None
    value = Fraction(fields["value"])
    gold = value * size / asked_size
    slips = [gold * slip for slip in (_CLOCK if scale == 3 else _TENS)]
    load = len(fields["value"]) + 2 * ("." in fields["value"]) + 2 * (size < asked_size) + 2 * (scale == 3)
    return _amounts(gold, fields["to"], [*slips, value * asked_size / size, gold + 1, gold + 10, gold + 2], load)


def _draw_sum(rng: RandomStream) -> dict[str, str]:
    large, small = sorted(neighbours(rng, rng.pick(SCALES)), key=lambda unit: -UNITS[unit][1])
    ratio = UNITS[large][1] // UNITS[small][1]
    few, many = rng.between(2, rng.pick((9, 30))), rng.between(1, min(ratio - 1, 900))
    return {"a": str(few), "unit": large, "b": str(many), "to": small}


def _sum(fields: Fields) -> Answer | None:
    (scale, size), (small_scale, small_size) = UNITS[fields["unit"]], UNITS[fields["to"]]
    if scale != small_scale or size <= small_size:
        return None
    few, many, ratio = Fraction(fields["a"]), Fraction(fields["b"]), Fraction(size, small_size)
    gold = few * ratio + many
    slip = Fraction(100) if scale == 3 else ratio / 10
    slips = [few * slip + many, few + many, few * ratio * 10 + many, few * ratio, gold + 10, gold + ratio]
    return _amounts(gold, fields["to"], slips, len(fields["a"]) + len(fields["b"]) + 2 * (scale == 3))


_TIME = r"[0-2]\d:[0-5]\d"


def _draw_clock(rng: RandomStream) -> dict[str, str]:
    start = rng.between(0, 20 * 60)
    end = rng.between(start + 20, min(start + rng.pick((120, 480)), 24 * 60 - 1))
    return {"start": _clock_text(start), "end": _clock_text(end)}


def _clock_text(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _clock(fields: Fields) -> Answer | None:
    (start_hour, start_minute), (end_hour, end_minute) = (map(int, fields[end].split(":")) for end in ("start", "end"))
    gold = (end_hour - start_hour) * 60 + end_minute - start_minute
    if gold <= 0 or max(start_hour, end_hour) > 23:
        return None
    hundreds = (end_hour - start_hour) * 100 + end_minute - start_minute
    slips = map(Fraction, (hundreds, gold + 60, gold - 60, gold + 10, gold - 10, gold + 1))
    return _amounts(Fraction(gold), "minutes", slips, gold / 100 + 2 * (end_minute < start_minute))


UNIT_TEXTS = Family(
    "units",
    "text",
    "Amounts in another unit, two amounts added, minutes between times; exact, the unit is part of the answer.",
    (
        Form(
            "convert",
            {"value": VALUE, "unit": UNIT, "to": UNIT},
            train=(
                "Convert {value} {unit} to {to}.",
                "How many {to} are {value} {unit}? Give the unit too.",
                "Write {value} {unit} in {to}.",
                "What is {value} {unit} in {to}?",
            ),
            test=("Change {value} {unit} into {to}.", "Give {value} {unit} as {to}, with the unit."),
            draw=_draw_convert,
            answer=_convert,
            scale=(4.97, 2.34),
        ),
        Form(
            "sum",
            {"a": r"\d{1,6}", "unit": UNIT, "b": r"\d{1,6}", "to": UNIT},
            train=(
                "Add {a} {unit} and {b} {to}. Give it in {to}.",
                "What is {a} {unit} {b} {to} in {to}?",
                "Write {a} {unit} and {b} {to} together in {to}.",
                "How many {to} are {a} {unit} and {b} {to}? Give the unit too.",
            ),
            test=(
                "Give the sum of {a} {unit} and {b} {to} in {to}.",
                "First {a} {unit}, then {b} {to} more. How much is it in {to}?",
            ),
            draw=_draw_sum,
            answer=_sum,
            scale=(3.86, 1.15),
        ),
        Form(
            "clock",
            {"start": _TIME, "end": _TIME},
            train=(
                "How many minutes are there from {start} to {end}? Give the unit too.",
                "A film runs from {start} to {end}. How long is it in minutes?",
                "It is {start}. How long is it until {end} in minutes?",
                "Find the time from {start} to {end} in minutes.",
            ),
            test=(
                "A bus leaves at {start} and arrives at {end}. Give the time in minutes.",
                "Between {start} and {end} lie how many minutes? Give the unit too.",
            ),
            draw=_draw_clock,
            answer=_clock,
            scale=(2.59, 1.57),
        ),
    ),
)
