"""Line code: Python programs that read a line of whole numbers and print a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form
from wfdsl_rl.gym.world.families.number_parts import CHANGE, GATHER_NUMBER, KEEP, lists, phrase
from wfdsl_rl.gym.world.families.recipes import Recipe, chosen
from wfdsl_rl.tasks.task import CodeTests

if TYPE_CHECKING:
    from wfdsl_rl.gym.world.families.chance import Chance


def _draw(chance: Chance) -> dict[str, str]:
    return {
        "keep": phrase(chance, KEEP, range(2, 13)),
        "change": phrase(chance, CHANGE, range(2, 10)),
        "gather": phrase(chance, GATHER_NUMBER, ("",)),
    }


def _answer(fields: Fields) -> Answer | None:
    keep, change, gather = chosen(fields, ("keep", KEEP), ("change", CHANGE), ("gather", GATHER_NUMBER))
    recipe = Recipe("xs", keep, change, gather)
    arguments = lists(keep.k, change.k or 3)
    examined = recipe.examined(arguments)
    if examined is None:
        return None
    expected, slips = examined
    tests = CodeTests(
        style="stdin",
        inputs=tuple(" ".join(map(str, argument)) + "\n" for argument in arguments),
        expected=tuple(f"{result}\n" for result in expected),
    )
    return Answer(_program(recipe), tuple(map(_program, slips)), recipe.load, tests=tests)


def _program(recipe: Recipe) -> str:
    first, result = recipe.body()
    return f"xs = list(map(int, input().split()))\n{first}\nprint({result})\n"


FAMILY = Family(
    "line-code",
    "code",
    "A Python program that reads a line of numbers and prints one; tested by running it on lines.",
    (
        Form(
            "line",
            {"keep": KEEP.pattern, "change": CHANGE.pattern, "gather": GATHER_NUMBER.pattern},
            train=(
                "Write a Python program: it reads a line of numbers, takes {change} for those {keep}, prints {gather}.",
                "A line of whole numbers comes in. In Python, keep those {keep}, take {change} and print {gather}.",
                "Code a Python program: read numbers from one line, keep those {keep}, form {change}, print {gather}.",
                "Give Python code that prints {gather} of {change} for the numbers {keep} in its one line of input.",
            ),
            test=(
                "The input is a line of numbers. Print {gather} of {change}, only for those {keep}, with Python.",
                "Read one line of numbers in Python. Of those {keep} take {change}; then print {gather}.",
            ),
            draw=_draw,
            answer=_answer,
            scale=(1.84, 0.78),
        ),
    ),
)
