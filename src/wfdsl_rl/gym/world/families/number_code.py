"""Number code: Python functions of a whole number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form
from wfdsl_rl.gym.world.families.number_parts import (
    CHANGE,
    GATHER_NUMBER,
    KEEP,
    NAME,
    NAMES,
    function_answer,
    phrase,
)
from wfdsl_rl.gym.world.families.recipes import Recipe, chosen

if TYPE_CHECKING:
    from collections.abc import Callable

    from wfdsl_rl.gym.world.families.chance import Chance

_READERS: dict[str, tuple[str, Callable[[int], list[int]]]] = {
    "whole numbers from 1 to n": ("list(range(1, n + 1))", lambda n: list(range(1, n + 1))),
    "whole numbers from 0 to n": ("list(range(n + 1))", lambda n: list(range(n + 1))),
    "divisors of n": (
        "[d for d in range(1, n + 1) if n % d == 0]",
        lambda n: [d for d in range(1, n + 1) if n % d == 0],
    ),
    "digits of n": ("[int(d) for d in str(n)]", lambda n: [int(d) for d in str(n)]),
}


def _draw(chance: Chance) -> dict[str, str]:
    items = chance.pick(tuple(_READERS))
    return {
        "name": chance.pick(NAMES),
        "items": items,
        "keep": phrase(chance, KEEP, range(2, 7) if "digits" in items else range(2, 13)),
        "change": phrase(chance, CHANGE, range(2, 10)),
        "gather": phrase(chance, GATHER_NUMBER, ("",)),
    }


def _answer(fields: Fields) -> Answer | None:
    keep, change, gather = chosen(fields, ("keep", KEEP), ("change", CHANGE), ("gather", GATHER_NUMBER))
    source, read = _READERS[fields["items"]]
    limit = keep.k
    if limit > 100:
        return None
    tried = dict.fromkeys((1, limit, limit - 1, limit + 1, 2 * limit, 12, 60, 5 * limit + 1, 97))
    return function_answer(
        Recipe(source, keep, change, gather), fields["name"], "n", [(n, read(n)) for n in tried if n > 0]
    )


FAMILY = Family(
    "number-code",
    "code",
    "A Python function of a whole number: over a range, its divisors or its digits; tested by calling it.",
    (
        Form(
            "number",
            {
                "name": NAME,
                "items": "|".join(_READERS),
                "keep": KEEP.pattern,
                "change": CHANGE.pattern,
                "gather": GATHER_NUMBER.pattern,
            },
            train=(
                "Write a Python function {name}(n): of the {items} {keep}, take {change} and return {gather}.",
                "In Python, define {name}(n). It keeps the {items} {keep}, takes {change} and returns {gather}.",
                "Code {name}(n) in Python. From the {items} {keep} form {change}. Return {gather}.",
                "Give a Python function {name}(n) that returns {gather} of {change} for all {items} {keep}.",
            ),
            test=(
                "A number n is given. Write {name}(n) in Python: use {items} {keep}, take {change}, return {gather}.",
                "The Python function {name}(n) returns {gather} of {change}, only for {items} {keep}. Write it.",
            ),
            draw=_draw,
            answer=_answer,
            scale=(1.85, 0.80),
        ),
    ),
)
