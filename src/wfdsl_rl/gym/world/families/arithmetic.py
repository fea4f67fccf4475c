"""Arithmetic questions: expressions, percentages and two-step stories; and exact values of expressions."""

from __future__ import annotations

import operator
import re
from fractions import Fraction

from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form, RandomStream, other_numbers

EXPRESSION = r"-?[0-9(][0-9+*/() -]{0,58}"
"""What may be an expression; `expression_value` tells whether it is one."""

_TOKEN = re.compile(r" *(\d{1,9}|[-+*/()])")
_SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}


def expression_value(text: str, *, slipped: bool = False) -> Fraction | None:
    """The expression_value of the expression; None if it is none, or divides by zero."""
    tokens = _tokens(text)
    if tokens is None:
        return None
    reading = _ExpressionReader(tokens, dict.fromkeys(_RANK, 1) if slipped else _RANK)
    try:
        result = reading.sum(1)
    except (IndexError, ValueError, ZeroDivisionError):
        return None
    return None if reading.left else result


def _tokens(text: str) -> list[str] | None:
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return None
        tokens.append(found[1])
        at = found.end()
    return tokens


class _ExpressionReader:
    """Precedence climbing over what is left of the tokens, the next one last."""

    def __init__(self, tokens: list[str], rank: dict[str, int]) -> None:
        self.left = tokens[::-1]
        self._rank = rank

    def sum(self, least: int) -> Fraction:
        result = self._factor()
        while self.left and self._rank.get(self.left[-1], 0) >= least:
            sign = self.left.pop()
            result = _SIGNS[sign](result, self.sum(self._rank[sign] + 1))
        return result

    def _factor(self) -> Fraction:
        token = self.left.pop()
        if token == "-":
            return -self._factor()
        if token != "(":
            return Fraction(int(token))
        result = self.sum(1)
        if self.left.pop() != ")":
            raise ValueError("a parenthesis is not closed")
        return result


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


def _draw_expression(rng: RandomStream) -> dict[str, str]:
    most = rng.pick((9, 20, 50, 99))
    shape = rng.pick(_SHAPES)
    return {"expr": shape.format(*(rng.between(2, most) for _ in range(shape.count("{}"))))}


def _expression(fields: Fields) -> Answer | None:
    text = fields["expr"]
    gold = expression_value(text)
    if gold is None:
        return None
    hasty = [
        expression_value(text, slipped=True),
        expression_value(text.replace("(", "").replace(")", "")),
        expression_value(text.replace("-", "+")),
    ]
    wrong = other_numbers(gold, [one for one in hasty if one is not None])
    digits = sum(map(str.isdigit, text))
    steps = sum(text.count(sign) for sign in "+-*/")
    return Answer(str(gold), wrong, digits + 2 * steps)


def _draw_percent(rng: RandomStream) -> dict[str, str]:
    part = rng.pick((5, 8, 12, 15, 20, 25, 30, 35, 45, 60, 75))
    whole = rng.between(2, 60) * (20 if part % 5 == 0 else 25)
    return {"p": str(part), "n": str(whole)}


def _percent(fields: Fields) -> Answer:
    part, whole = int(fields["p"]), int(fields["n"])
    gold = Fraction(part * whole, 100)
    wrong = other_numbers(gold, [gold * 10, whole - gold, Fraction(whole, part) if part else 1, gold / 10])
    return Answer(str(gold), wrong, len(str(whole)) + 2 * (part % 10 > 0) + (part > 30))


def _draw_story(rng: RandomStream) -> dict[str, str]:
    groups, size = rng.between(3, 40), rng.between(3, rng.pick((12, 60)))
    return {"a": str(groups), "b": str(size), "c": str(rng.between(2, groups * size - 1))}


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
            {"expr": EXPRESSION},
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
