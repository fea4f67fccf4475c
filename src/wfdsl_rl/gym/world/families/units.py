"""Units: amounts converted or added, and times of day, with the unit in the answer."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form, other_texts
from wfdsl_rl.gym.world.families.scales import SCALES, UNIT, UNITS, VALUE, decimal, neighbours

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wfdsl_rl.gym.world.families.chance import Chance

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


def _draw_convert(chance: Chance) -> dict[str, str]:
    given, asked = neighbours(chance, chance.pick(SCALES))
    value = Fraction(chance.between(1, chance.pick((20, 99, 960))), chance.pick((1, 1, 2, 4, 10)))
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


def _draw_sum(chance: Chance) -> dict[str, str]:
    large, small = sorted(neighbours(chance, chance.pick(SCALES)), key=lambda unit: -UNITS[unit][1])
    ratio = UNITS[large][1] // UNITS[small][1]
    few, many = chance.between(2, chance.pick((9, 30))), chance.between(1, min(ratio - 1, 900))
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


def _draw_clock(chance: Chance) -> dict[str, str]:
    start = chance.between(0, 20 * 60)
    end = chance.between(start + 20, min(start + chance.pick((120, 480)), 24 * 60 - 1))
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


FAMILY = Family(
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
