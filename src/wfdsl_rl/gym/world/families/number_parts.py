"""Parts of recipes over whole numbers, shared by the families that ask for code over lists, ranges and lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wfdsl_rl.gym.world.families.form import Answer
from wfdsl_rl.gym.world.families.recipes import Part, Parts
from wfdsl_rl.tasks.task import CodeTests

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from wfdsl_rl.gym.world.families.chance import Chance
    from wfdsl_rl.gym.world.families.recipes import Recipe

KEEP = Parts(
    (
        Part("greater than {k}", "x > {k}", lambda x, k: x > k, 0, Part("", "x >= {k}", lambda x, k: x >= k)),
        Part("less than {k}", "x < {k}", lambda x, k: x < k, 0, Part("", "x <= {k}", lambda x, k: x <= k)),
        Part("at least {k}", "x >= {k}", lambda x, k: x >= k, 0.5, Part("", "x > {k}", lambda x, k: x > k)),
        Part("at most {k}", "x <= {k}", lambda x, k: x <= k, 0.5, Part("", "x < {k}", lambda x, k: x < k)),
        Part(
            "divisible by {k}",
            "x % {k} == 0",
            lambda x, k: x % k == 0,
            1,
            Part("", "x > {k} and x % {k} == 0", lambda x, k: x > k and x % k == 0),
        ),
        Part(
            "not divisible by {k}",
            "x % {k} != 0",
            lambda x, k: x % k != 0,
            1.5,
            Part("", "x % {k} == 1", lambda x, k: x % k == 1),
        ),
    ),
    parameter=r"[1-9]\d{0,3}",
)
CHANGE = Parts(
    (
        Part("their doubles", "2 * x", lambda x, _: 2 * x, 0),
        Part("their squares", "x * x", lambda x, _: x * x, 0.5),
        Part("their cubes", "x ** 3", lambda x, _: x**3, 0.5),
        Part("their last digits", "abs(x) % 10", lambda x, _: abs(x) % 10, 1),
        Part("the values plus {k}", "x + {k}", lambda x, k: x + k, 0),
        Part("the values minus {k}", "x - {k}", lambda x, k: x - k, 0),
        Part("the values times {k}", "x * {k}", lambda x, k: x * k, 0.5),
    ),
    parameter=r"[1-9]\d{0,3}",
)
_SUM = Part("the sum", "sum(ys)", lambda ys, _: sum(ys), 0, Part("", "sum(ys[1:])", lambda ys, _: sum(ys[1:])))
_LARGEST = Part(
    "the largest or else 0",
    "max(ys, default=0)",
    lambda ys, _: max(ys, default=0),
    1,
    Part("", "max(ys)", lambda ys, _: max(ys)),
)
_SMALLEST = Part(
    "the smallest or else 0",
    "min(ys, default=0)",
    lambda ys, _: min(ys, default=0),
    1,
    Part("", "min(ys)", lambda ys, _: min(ys)),
)
_FIRST = Part(
    "the first or else 0",
    "ys[0] if ys else 0",
    lambda ys, _: ys[0] if ys else 0,
    1,
    Part("", "ys[0]", lambda ys, _: ys[0]),
)
_LAST = Part(
    "the last or else 0",
    "ys[-1] if ys else 0",
    lambda ys, _: ys[-1] if ys else 0,
    1,
    Part("", "ys[-1]", lambda ys, _: ys[-1]),
)
_DIFFERENT = Part(
    "the number of different values",
    "len(set(ys))",
    lambda ys, _: len(set(ys)),
    1.5,
    Part("", "len(ys)", lambda ys, _: len(ys)),
)
_LIST = Part("the list", "ys", lambda ys, _: ys, 0, Part("", "sorted(ys)", lambda ys, _: sorted(ys)))
_BACKWARDS = Part("the reversed list", "ys[::-1]", lambda ys, _: ys[::-1], 0.5, Part("", "ys", lambda ys, _: ys))

GATHER_NUMBER = Parts((_SUM, _LARGEST, _SMALLEST, _FIRST, _LAST, _DIFFERENT), parameter="")
"""Results that are one number."""
GATHER = Parts((*GATHER_NUMBER.all, _LIST, _BACKWARDS), parameter="")

NAMES = ("f", "g", "h", "pick", "work", "run", "take", "total", "form", "find", "make", "get")
"""What functions are called."""
NAME = "|".join(NAMES)


def phrase(chance: Chance, parts: Parts, parameters: Sequence[int | str]) -> str:
    """One of the parts with one of the parameters, as a question says it."""
    return chance.pick(parts.all).phrase.format(k=chance.pick(parameters))


def lists(limit: int, shift: int) -> list[list[int]]:
    """Lists that show slips around a limit: at it and beside it, negative, repeated, empty."""
    near = [limit, limit + 1, limit - 1]
    return [
        [limit + 3, *near, 2 * limit, 0, -limit, 3 * limit, limit + 5, limit + 2],
        [limit],
        [limit - 1, limit + 1, limit, limit + 1],
        [],
        [-7, 5, 2 * limit + 1, -7, 5 * limit, 12, 4, limit + shift],
        [3 * limit, limit + 2, -2 * limit, 1, limit - shift],
        [-limit, 2 * limit, -3, 11, 3 * limit + 1, limit],
    ]


def function_answer(recipe: Recipe, name: str, argument: str, cases: Sequence[tuple[Any, list[Any]]]) -> Answer | None:
    """The answer to a question for a function of one argument; None if the cases show too few slips to be wrong.

    A case is a value of the argument and the items that it stands for.
    """
    examined = recipe.examined([items for _, items in cases])
    if examined is None:
        return None
    expected, slips = examined
    tests = CodeTests(
        style="function",
        inputs=tuple(json.dumps([value]) for value, _ in cases),
        expected=tuple(map(json.dumps, expected)),
        entry_point=name,
    )
    right, *wrong = (_function(one, name, argument) for one in (recipe, *slips))
    return Answer(right, tuple(wrong), recipe.load, tests=tests)


def _function(recipe: Recipe, name: str, argument: str) -> str:
    first, result = recipe.body()
    return f"def {name}({argument}):\n    {first}\n    return {result}\n"
