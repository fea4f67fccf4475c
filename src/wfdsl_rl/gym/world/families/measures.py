"""Measures: which of four is the same as, the largest, or the smallest, across units."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from wfdsl_rl.gym.world.families import options
from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form
from wfdsl_rl.gym.world.families.scales import SCALES, UNIT, VALUE, decimal, neighbours, size_of

if TYPE_CHECKING:
    from wfdsl_rl.gym.world.families.chance import Chance

_SLIPS = (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 10), Fraction(10), Fraction(100), Fraction(1000))
_CLOCK_SLIPS = (Fraction(1, 60), Fraction(5, 6), Fraction(3, 5), Fraction(5, 3), Fraction(5), Fraction(10))


def _amount(chance: Chance) -> Fraction:
    return Fraction(chance.between(1, 99), chance.pick((1, 1, 2, 4, 10)))


def _draw_same(chance: Chance) -> dict[str, str]:
    scale = chance.pick(SCALES)
    given, asked = neighbours(chance, scale)
    amount = _amount(chance)
    slips = _CLOCK_SLIPS if "hours" in scale else _SLIPS
    found = amount * scale[given] / scale[asked]
    others = [decimal(found * slip) for slip in chance.shuffled(slips)]
    fitting = [f"{other} {asked}" for other in others if other is not None]
    truth = decimal(found)
    if truth is None or len(fitting) < 3:
        return {"value": "0", "unit": given, "options": ""}
    amount_text = decimal(amount) or ""
    return {"value": amount_text, "unit": given, "options": options.written(chance, f"{truth} {asked}", fitting)}


def _same(fields: Fields) -> Answer | None:
    target = size_of(f"{fields['value']} {fields['unit']}")
    found = options.read(fields["options"])
    sizes = {option: size_of(option) for option in found or ()}
    if target is None or any(size is None or size[0] != target[0] for size in sizes.values()):
        return None
    load = len(fields["value"]) + 3 * ("." in fields["value"]) + 3 * (target[0] == 3)
    return options.chosen(
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


def _draw_extreme(chance: Chance) -> dict[str, str]:
    number = chance.below(len(SCALES))
    scale = SCALES[number]
    units = neighbours(chance, scale)
    middle = chance.between(2, 90) * max(scale[unit] for unit in units)
    near = [Fraction(middle * chance.between(60, 160), 100) for _ in range(4)]
    texts = [f"{_short(size / scale[unit])} {unit}" for size, unit in zip(near, units * 2, strict=True)]
    which = chance.pick(tuple(_SUPERLATIVES[number]))
    return {"which": which, "options": options.written(chance, texts[0], texts[1:])}


def _short(value: Fraction) -> str | None:
    """About the value in few digits."""
    return str(round(value)) if value >= 100 else decimal(Fraction(round(value * 10), 10))


def _extreme(fields: Fields) -> Answer | None:
    found = options.read(fields["options"])
    sizes = {option: size_of(option) for option in found or ()}
    known = [size for size in sizes.values() if size is not None]
    if len(known) != len(options.LETTERS) or len({scale for scale, _ in known}) != 1:
        return None
    largest = _SUPERLATIVES[known[0][0]].get(fields["which"])
    ordered = sorted(known, reverse=largest is True)
    if largest is None or ordered[0] == ordered[1]:
        return None
    closeness = 1 / max(_ratio(ordered[0], ordered[1]) - 1, 0.02)
    return options.chosen(
        fields["options"],
        lambda option: sizes[option] == ordered[0],
        load=min(closeness, 20.0),
        distance=lambda option: _ratio(sizes[option], ordered[0]),
    )


_WHICH = "longest|shortest|heaviest|lightest|largest|smallest"

FAMILY = Family(
    "measures",
    "choice",
    "The same amount in another unit, or the largest or smallest of four; exact ratios of units.",
    (
        Form(
            "same",
            {"value": VALUE, "unit": UNIT, "options": options.PATTERN},
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
            {"which": _WHICH, "options": options.PATTERN},
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
