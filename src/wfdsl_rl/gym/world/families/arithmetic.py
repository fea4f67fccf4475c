"""Arithmetic: expressions, percentages and two-step stories."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from wfdsl_rl.gym.world.families import expression
from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form, other_numbers

if TYPE_CHECKING:
    from wfdsl_rl.gym.world.families.chance import Chance

_SHAPES = (
    "{} * {} + {}",
    "{} + {} * {}",
    "({} + {}) * {}",
    "{} * ({} - {})",
    "{} - {} * {}",
    "{} * {} - {} * {}",
    "({} + {}) / {}",
    "({} - {}) * {} + {}",
    "{} * {} + {} / {}",
    "({} + {}) * ({} - {})",
)


def _draw_expression(chance: Chance) -> dict[str, str]:
    most = chance.pick((9, 20, 50, 99))
    shape = chance.pick(_SHAPES)
    return {"expr": shape.format(*(chance.between(2, most) for _ in range(shape.count("{}"))))}


def _expression(fields: Fields) -> Answer | None:
    text = fields["expr"]
    gold = expression.value(text)
    if gold is None:
        return None
    hasty = [
        expression.value(text, slipped=True),
        expression.value(text.replace("(", "").replace(")", "")),
        expression.value(text.replace("-", "+")),
    ]
    wrong = other_numbers(gold, [one for one in hasty if one is not None])
    digits = sum(map(str.isdigit, text))
    steps = sum(text.count(sign) for sign in "+-*/")
    return Answer(str(gold), wrong, digits + 2 * steps)


def _draw_percent(chance: Chance) -> dict[str, str]:
    part = chance.pick((5, 8, 12, 15, 20, 25, 30, 35, 45, 60, 75))
    whole = chance.between(2, 60) * (20 if part % 5 == 0 else 25)
    return {"p": str(part), "n": str(whole)}


def _percent(fields: Fields) -> Answer:
    part, whole = int(fields["p"]), int(fields["n"])
    gold = Fraction(part * whole, 100)
    wrong = other_numbers(gold, [gold * 10, whole - gold, Fraction(whole, part) if part else 1, gold / 10])
    return Answer(str(gold), wrong, len(str(whole)) + 2 * (part % 10 > 0) + (part > 30))


def _draw_story(chance: Chance) -> dict[str, str]:
    groups, size = chance.between(3, 40), chance.between(3, chance.pick((12, 60)))
    return {"a": str(groups), "b": str(size), "c": str(chance.between(2, groups * size - 1))}


def _story(fields: Fields) -> Answer | None:
    groups, size, taken = (int(fields[name]) for name in "abc")
    gold = groups * size - taken
    if gold < 0:
        return None
    wrong = other_numbers(gold, [groups * size + taken, groups * size, gold + size, abs(groups + size - taken)])
    return Answer(str(gold), wrong, sum(map(len, fields.values())) + 2 * (groups > 10 and size > 10))


_STORY = dict.fromkeys("abc", r"\d{1,6}")

FAMILY = Family(
    "arithmetic",
    "math",
    "Expressions, percentages and two-step stories with whole numbers; exact rational arithmetic.",
    (
        Form(
            "expression",
            {"expr": expression.PATTERN},
            train=(
                "What is {expr}?",
                "Compute {expr}.",
                "Work out the value of {expr}.",
                "Find the result of {expr}.",
            ),
            test=("How much is {expr}?", "Give the exact value of {expr}."),
            draw=_draw_expression,
            answer=_expression,
            scale=(10.18, 2.22),
        ),
        Form(
            "percent",
            {"p": r"\d{1,3}", "n": r"\d{1,9}"},
            train=(
                "What is {p}% of {n}?",
                "Compute {p} percent of {n}.",
                "A phone costs {n} dollars. How many dollars are {p}% of the price?",
                "There are {n} people in a town. {p}% of them have a car. How many people is that?",
            ),
            test=("How much is {p}% of {n}?", "A box holds {n} pens and {p}% of them are red. How many are red?"),
            draw=_draw_percent,
            answer=_percent,
            scale=(4.98, 1.15),
        ),
        Form(
            "story",
            _STORY,
            train=(
                "There are {a} boxes with {b} pens each. {c} pens are taken out. How many pens are left?",
                "A shop has {a} shelves with {b} books each and sells {c} books. How many books are left?",
                "Anna saves {b} dollars a day for {a} days and then pays {c} dollars. How much money is left?",
                "A train has {a} cars with {b} seats each, and {c} seats are taken. How many seats are free?",
            ),
            test=(
                "A farm has {a} rows of {b} trees. {c} trees fall in a storm. How many trees still stand?",
                "Ben buys {a} boxes of {b} eggs and drops {c} eggs. How many eggs are still whole?",
            ),
            draw=_draw_story,
            answer=_story,
            scale=(6.72, 1.99),
        ),
    ),
)
