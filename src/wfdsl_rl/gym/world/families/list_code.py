"""List code: Python functions of a list of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form
from wfdsl_rl.gym.world.families.number_parts import CHANGE, GATHER, KEEP, NAME, NAMES, function_answer, lists, phrase
from wfdsl_rl.gym.world.families.recipes import Recipe, chosen

if TYPE_CHECKING:
    from wfdsl_rl.gym.world.families.chance import Chance


def _draw(chance: Chance) -> dict[str, str]:
    return {
        "name": chance.pick(NAMES),
        "keep": phrase(chance, KEEP, range(2, 13)),
        "change": phrase(chance, CHANGE, range(2, 10)),
        "gather": phrase(chance, GATHER, ("",)),
    }


def _answer(fields: Fields) -> Answer | None:
    keep, change, gather = chosen(fields, ("keep", KEEP), ("change", CHANGE), ("gather", GATHER))
    recipe = Recipe("xs", keep, change, gather)
    return function_answer(recipe, fields["name"], "xs", [(xs, xs) for xs in lists(keep.k, change.k or 3)])


FAMILY = Family(
    "list-code",
    "code",
    "A Python function of a list: keep some numbers, change them, gather a result; tested by calling it.",
    (
        Form(
            "list",
            {"name": NAME, "keep": KEEP.pattern, "change": CHANGE.pattern, "gather": GATHER.pattern},
            train=(
                "Write a Python function {name}(xs): of the numbers {keep} in xs, take {change} and return {gather}.",
                "In Python, define {name}(xs). It keeps the numbers {keep}, takes {change} and returns {gather}.",
                "Code {name}(xs) in Python. From the numbers {keep} in the list form {change}. Return {gather}.",
                "Give a Python function {name}(xs) that returns {gather} of {change} for all numbers {keep}.",
            ),
            test=(
                "A list xs has numbers. Write {name}(xs) in Python: use those {keep}, take {change}, return {gather}.",
                "The Python function {name}(xs) returns {gather} of {change}, only for numbers {keep}. Write it.",
            ),
            draw=_draw,
            answer=_answer,
            scale=(1.68, 0.81),
        ),
    ),
)
