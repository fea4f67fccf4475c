"""String code: Python functions of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wfdsl_rl.gym.world.families.form import Answer, Family, Fields, Form
from wfdsl_rl.gym.world.families.number_parts import NAME, NAMES, function_answer, phrase
from wfdsl_rl.gym.world.families.recipes import Part, Parts, Recipe, chosen

if TYPE_CHECKING:
    from wfdsl_rl.gym.world.families.chance import Chance

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


def _draw(chance: Chance) -> dict[str, str]:
    if chance.below(2):
        keep = chance.pick(_LENGTHS).phrase.format(k=chance.between(2, 8))
    else:
        keep = chance.pick(_LETTERS).phrase.format(k=chance.pick("abcdeilmnoprst"))
    return {
        "name": chance.pick(NAMES),
        "keep": keep,
        "change": phrase(chance, _CHANGE, range(2, 5)),
        "gather": phrase(chance, _GATHER, "-+*/:;"),
    }


def _answer(fields: Fields) -> Answer | None:
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


FAMILY = Family(
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
            draw=_draw,
            answer=_answer,
            scale=(1.30, 0.69),
        ),
    ),
)
