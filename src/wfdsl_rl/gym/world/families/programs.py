"""Code questions: Python functions of a list, a text or a number, and programs that read a line of numbers."""

from __future__ import annotations

from collections.abc import Callable

from wfdsl.tasks.task import CodeTests
from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form, RandomStream
from wfdsl_rl.gym.world.families.recipes import (
    CHANGE,
    GATHER,
    GATHER_NUMBER,
    KEEP,
    NAME,
    NAMES,
    Part,
    Parts,
    Recipe,
    chosen,
    function_answer,
    lists,
    phrase,
)


def _draw_list(rng: RandomStream) -> dict[str, str]:
    return {
        "name": rng.pick(NAMES),
        "keep": phrase(rng, KEEP, range(2, 13)),
        "change": phrase(rng, CHANGE, range(2, 10)),
        "gather": phrase(rng, GATHER, ("",)),
    }


def _list_answer(fields: Fields) -> Answer | None:
    keep, change, gather = chosen(fields, ("keep", KEEP), ("change", CHANGE), ("gather", GATHER))
    recipe = Recipe("xs", keep, change, gather)
    return function_answer(recipe, fields["name"], "xs", [(xs, xs) for xs in lists(keep.k, change.k or 3)])


LIST_CODE = Family(
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
            draw=_draw_list,
            answer=_list_answer,
            scale=(1.68, 0.81),
        ),
    ),
)


_KEEP = Parts(
    (
        Part(
            "longer than {k} letters",
            "len(x) > {k}",
            lambda x, k: len(x) > k,
            0,
            Part("", "len(x) >= {k}", lambda x, k: len(x) >= k),
        ),
        Part(
            "shorter than {k} letters",
            "len(x) < {k}",
            lambda x, k: len(x) < k,
            0,
            Part("", "len(x) <= {k}", lambda x, k: len(x) <= k),
        ),
        Part(
            "with first letter {k}",
            "x[0] == {k}",
            lambda x, k: x[0] == k,
            0.5,
            Part("", "{k} in x", lambda x, k: k in x),
        ),
        Part(
            "with last letter {k}",
            "x[-1] == {k}",
            lambda x, k: x[-1] == k,
            0.5,
            Part("", "{k} in x", lambda x, k: k in x),
        ),
        Part(
            "with the letter {k}", "{k} in x", lambda x, k: k in x, 0, Part("", "x[0] == {k}", lambda x, k: x[0] == k)
        ),
        Part(
            "without the letter {k}",
            "{k} not in x",
            lambda x, k: k not in x,
            0.5,
            Part("", "x[0] != {k}", lambda x, k: x[0] != k),
        ),
    ),
    parameter=r"[1-9]\d?|[a-z]",
)
_LENGTHS, _LETTERS = _KEEP.all[:2], _KEEP.all[2:]
_CHANGE = Parts(
    (
        Part("the words themselves", "x", lambda x, _: x, 0),
        Part("the words backwards", "x[::-1]", lambda x, _: x[::-1], 0.5),
        Part("the words in capitals", "x.upper()", lambda x, _: x.upper(), 0),
        Part("their first {k} letters", "x[:{k}]", lambda x, k: x[:k], 0.5),
        Part("their last {k} letters", "x[-{k}:]", lambda x, k: x[-k:], 1),
        Part("the words {k} times over", "x * {k}", lambda x, k: x * k, 0.5),
    ),
    parameter=r"[1-9]\d?",
)
_GATHER = Parts(
    (
        Part("the list", "ys", lambda ys, _: ys, 0, Part("", "sorted(ys)", lambda ys, _: sorted(ys))),
        Part("the sorted list", "sorted(ys)", lambda ys, _: sorted(ys), 0, Part("", "ys", lambda ys, _: ys)),
        Part(
            "a text with {k} between",
            "{k}.join(ys)",
            lambda ys, k: k.join(ys),
            0.5,
            Part("", "''.join(y + {k} for y in ys)", lambda ys, k: "".join(y + k for y in ys)),
        ),
        Part(
            "the number of different ones",
            "len(set(ys))",
            lambda ys, _: len(set(ys)),
            1,
            Part("", "len(ys)", lambda ys, _: len(ys)),
        ),
        Part(
            "the longest or else an empty text",
            "max(ys, key=len, default='')",
            lambda ys, _: max(ys, key=len, default=""),
            1.5,
            Part("", "max(ys, key=len)", lambda ys, _: max(ys, key=len)),
        ),
        Part(
            "the last or else an empty text",
            "ys[-1] if ys else ''",
            lambda ys, _: ys[-1] if ys else "",
            1,
            Part("", "ys[-1]", lambda ys, _: ys[-1]),
        ),
    ),
    parameter=r"[-+*/:;]",
)


def _draw_string(rng: RandomStream) -> dict[str, str]:
    if rng.below(2):
        keep = rng.pick(_LENGTHS).phrase.format(k=rng.between(2, 8))
    else:
        keep = rng.pick(_LETTERS).phrase.format(k=rng.pick("abcdeilmnoprst"))
    return {
        "name": rng.pick(NAMES),
        "keep": keep,
        "change": phrase(rng, _CHANGE, range(2, 5)),
        "gather": phrase(rng, _GATHER, "-+*/:;"),
    }


def _string_answer(fields: Fields) -> Answer | None:
    keep, change, gather = chosen(fields, ("keep", _KEEP), ("change", _CHANGE), ("gather", _GATHER))
    if isinstance(keep.k, int) != (keep.part in _LENGTHS):
        return None
    recipe = Recipe("text.split()", keep, change, gather)
    return function_answer(recipe, fields["name"], "text", [(text, text.split()) for text in _texts(keep.k)])


def _texts(limit: int | str) -> list[str]:
    """Texts that show slips around a length or a letter."""
    words = _near_length(limit) if isinstance(limit, int) else _with_letter(limit)
    return [" ".join(words), words[0], " ".join(words[::-1]), "", " ".join([*words[1:4], words[2]]), words[-1]]


def _near_length(length: int) -> list[str]:
    letters = "mirobelantusvek" * (length // 8 + 1)
    sizes = (length + 1, length, length - 1, length + 3, length, length + 1)
    words = [letters[at : at + max(size, 1)] for at, size in enumerate(sizes)]
    return [words[3], words[0], words[1], words[2], words[0], words[4], words[5]]


def _with_letter(letter: str) -> list[str]:
    other = "x" if letter != "x" else "y"
    return [
        f"{letter}zzu",
        f"z{letter}uuz",
        f"zu{letter}",
        "zuqqj",
        f"{letter}uj",
        "uzj",
        f"{letter}zzu",
        f"j{other}z",
        f"uu{letter}zuz",
        f"{letter}j{letter}",
    ]


STRING_CODE = Family(
    "string-code",
    "code",
    "A Python function of a text: keep some words, change them, gather a result; tested by calling it.",
    (
        Form(
            "words",
            {"name": NAME, "keep": _KEEP.pattern, "change": _CHANGE.pattern, "gather": _GATHER.pattern},
            train=(
                "Write a Python function {name}(text): of the words {keep} in the text take {change}, return {gather}.",
                "In Python, define {name}(text). It keeps the words {keep}, takes {change} and returns {gather}.",
                "Code {name}(text) in Python. From the words {keep} in the text form {change}. Return {gather}.",
                "Give a Python function {name}(text): for all words {keep} it takes {change}, then returns {gather}.",
            ),
            test=(
                "A text has words. Write {name}(text) in Python: use those {keep}, take {change}, return {gather}.",
                "For words {keep} only, a Python function {name}(text) takes {change}, returns {gather}. Write it.",
            ),
            draw=_draw_string,
            answer=_string_answer,
            scale=(1.30, 0.69),
        ),
    ),
)


_READERS: dict[str, tuple[str, Callable[[int], list[int]]]] = {
    "whole numbers from 1 to n": ("list(range(1, n + 1))", lambda n: list(range(1, n + 1))),
    "whole numbers from 0 to n": ("list(range(n + 1))", lambda n: list(range(n + 1))),
    "divisors of n": (
        "[d for d in range(1, n + 1) if n % d == 0]",
        lambda n: [d for d in range(1, n + 1) if n % d == 0],
    ),
    "digits of n": ("[int(d) for d in str(n)]", lambda n: [int(d) for d in str(n)]),
}


def _draw_number(rng: RandomStream) -> dict[str, str]:
    items = rng.pick(tuple(_READERS))
    return {
        "name": rng.pick(NAMES),
        "items": items,
        "keep": phrase(rng, KEEP, range(2, 7) if "digits" in items else range(2, 13)),
        "change": phrase(rng, CHANGE, range(2, 10)),
        "gather": phrase(rng, GATHER_NUMBER, ("",)),
    }


def _number_answer(fields: Fields) -> Answer | None:
    keep, change, gather = chosen(fields, ("keep", KEEP), ("change", CHANGE), ("gather", GATHER_NUMBER))
    source, read = _READERS[fields["items"]]
    limit = keep.k
    if limit > 100:
        return None
    tried = dict.fromkeys((1, limit, limit - 1, limit + 1, 2 * limit, 12, 60, 5 * limit + 1, 97))
    return function_answer(
        Recipe(source, keep, change, gather), fields["name"], "n", [(n, read(n)) for n in tried if n > 0]
    )


NUMBER_CODE = Family(
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
            draw=_draw_number,
            answer=_number_answer,
            scale=(1.85, 0.80),
        ),
    ),
)


def _draw_line(rng: RandomStream) -> dict[str, str]:
    return {
        "keep": phrase(rng, KEEP, range(2, 13)),
        "change": phrase(rng, CHANGE, range(2, 10)),
        "gather": phrase(rng, GATHER_NUMBER, ("",)),
    }


def _line_answer(fields: Fields) -> Answer | None:
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


LINE_CODE = Family(
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
            draw=_draw_line,
            answer=_line_answer,
            scale=(1.84, 0.78),
        ),
    ),
)
