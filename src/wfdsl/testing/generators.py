"""Random workflows and mutated texts, without hypothesis: what the strategies and the fuzzer draw from."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import TypeVar

from wfdsl.language.tree import ALL, Access
from wfdsl.language.workflow import Step, Workflow

T = TypeVar("T")


class Choices:
    """Every free choice of a generated text, and the repairs that the text is to need.

    It draws from a `random.Random`. Under hypothesis that is one of hypothesis's own, so that a failing text is found
    again and made smaller; the first of several options is always the plainest.
    """

    def __init__(self, chooser: Random, repairs: Collection[str] = ()) -> None:
        self.used: set[str] = set()
        """The codes of the repairs that the text needs so far."""
        self._chooser = chooser
        self._repairs = frozenset(repairs)

    def number(self, low: int, high: int) -> int:
        """One of the integers from `low` to `high`, both included."""
        return low if low == high else self._chooser.randint(low, high)

    def choose(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.number(0, len(options) - 1)]

    def one_in(self, times: int) -> bool:
        """True once in this number of times."""
        return self.number(1, times) == times

    def needs_repair(self, code: str) -> bool:
        """Whether to write the next thing so that it needs this repair: always the first time, later sometimes."""
        if code not in self._repairs or (code in self.used and not self.one_in(2)):
            return False
        self.used.add(code)
        return True

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in any order; in their own more often than not."""
        order = list(items)
        if len(order) > 1 and self.one_in(3):
            for last in range(len(order) - 1, 0, -1):
                other = self.number(0, last)
                order[last], order[other] = order[other], order[last]
        return order


WORDS = (
    "Plan it.", "Solve the problem; show your work.", "Don't guess.", 'Say "yes" or "no".', "Use \\d+ and C:\\new.",
    "Line one.\nLine two.\r\n\ttabbed", "model_id = [0]", "</think>", "# no comment", "漢字と😀", "l’été “fini”",
    "a/b [x] {y}", "\ufffd?", "'''\"\"\"", "all", "x",
)  # fmt: skip


def random_workflow(rng: Choices, *, pool_size: int = 7, max_steps: int = 5) -> Workflow:
    """A workflow of up to `max_steps` steps."""
    count = rng.number(1, max_steps)
    return Workflow(tuple(_step(rng, index, pool_size) for index in range(count)))


def _step(rng: Choices, index: int, pool_size: int) -> Step:
    subtask = " ".join([rng.choose(WORDS) for _ in range(rng.number(1, 2))])
    return Step(rng.number(0, pool_size - 1), subtask, _access(rng, index))


def _access(rng: Choices, index: int) -> Access:
    if rng.one_in(4):
        return ALL
    return tuple(earlier for earlier in range(index) if rng.one_in(2))


TOKENS = (
    "[", "]", "(", ")", "{", "}", ",", "=", ":", "：", "'", '"', "'''", '"""', "\\", "#", "*", ".", "-", "\n", "\r",
    " ", "\u00a0", "“", "”", "‘", "’", "model_id = [", "subtasks: [", '"access_list": [', "Model ID: (", "<think>",
    "</think>", "None", "True", "0", "1.0", "-1", "1e9", "0x1", "00", "all", '"all"', "*2", "[[[", "]]]", "...", "f'",
    "b'", "r'", "\\x", "\\N{", "\\ud800", "\ud800", "\0", "\u2028", "😀", "== [", ": list[int] =", "(x)", "step ",
    "\n=== workflow ===\n", "// x\n", "```python\n", "<model_id>[", "</model_id>", '\\"', "\\n", 'subtasks\\": [',
    "model_id.append(", "subtasks += [", "access_list[0] = ", " by ", " sees ", "param ", " copies ", "{x}",
)  # fmt: skip
_BRACKETS = {"[": "(", "]": ")", "(": "[", ")": "]", "{": "[", "}": "]"}
_INTEGER = re.compile(r"\d+")
_ITEM = re.compile(r",[^,\[\]]*")
_BRACKET = re.compile(r"[\[\](){}]")
_WRONG = ("None", "True", "1.5", "{}", "[[[0]]]", "x", "'x'", "1 + 1", "", "-3", "99", "1_0", "9" * 30)


def mutated(rng: Choices, text: str) -> str:
    """The text after one to four mutations."""
    for _ in range(rng.number(1, 4)):
        text = _mutated_once(rng, text)
    return text


_AT_MATCHES: dict[str, tuple[re.Pattern[str], Callable[[Choices, str], str]]] = {
    "swap a bracket": (_BRACKET, lambda _, bracket: _BRACKETS[bracket]),
    "write a wrong type": (_INTEGER, lambda rng, _: rng.choose(_WRONG)),
    "lose an item": (_ITEM, lambda *_: ""),
}


def _mutated_once(rng: Choices, text: str) -> str:
    kind = rng.choose(("drop", "double", "insert", "replace", "truncate", "move", *_AT_MATCHES))
    if kind in _AT_MATCHES:
        pattern, change = _AT_MATCHES[kind]
        found = list(pattern.finditer(text))
        match = rng.choose(found) if found else None
        return text if match is None else text[: match.start()] + change(rng, match[0]) + text[match.end() :]
    start = rng.number(0, len(text))
    end = start + rng.choose((1, 1, 2, 10, 40))
    before, piece, after = text[:start], text[start:end], text[end:]
    match kind:
        case "drop":
            piece = ""
        case "double":
            piece *= 2
        case "insert":
            piece = rng.choose(TOKENS) + piece
        case "replace":
            piece = rng.choose(TOKENS)
        case "truncate":
            piece = after = ""
        case "move":
            at, rest = rng.number(0, len(before + after)), before + after
            before, after = rest[:at], rest[at:]
    return before + piece + after
