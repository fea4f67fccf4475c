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
        text = rng.choose(_MUTATIONS)(rng, text)
    return text


def _drop(rng: Choices, text: str) -> str:
    start, end = _slice(rng, text)
    return text[:start] + text[end:]


def _double(rng: Choices, text: str) -> str:
    start, end = _slice(rng, text)
    return text[:end] + text[start:end] + text[end:]


def _insert(rng: Choices, text: str) -> str:
    at = rng.number(0, len(text))
    return text[:at] + rng.choose(TOKENS) + text[at:]


def _replace(rng: Choices, text: str) -> str:
    start, end = _slice(rng, text)
    return text[:start] + rng.choose(TOKENS) + text[end:]


def _truncate(rng: Choices, text: str) -> str:
    return text[: rng.number(0, len(text))]


def _swap_bracket(rng: Choices, text: str) -> str:
    return _at_match(rng, text, _BRACKET, lambda bracket: _BRACKETS[bracket])


def _wrong_type(rng: Choices, text: str) -> str:
    return _at_match(rng, text, _INTEGER, lambda _: rng.choose(_WRONG))


def _lose_item(rng: Choices, text: str) -> str:
    return _at_match(rng, text, _ITEM, lambda _: "")


def _move(rng: Choices, text: str) -> str:
    start, end = _slice(rng, text)
    rest = text[:start] + text[end:]
    at = rng.number(0, len(rest))
    return rest[:at] + text[start:end] + rest[at:]


_MUTATIONS: tuple[Callable[[Choices, str], str], ...] = (
    _drop, _double, _insert, _replace, _truncate, _swap_bracket, _wrong_type, _lose_item, _move,
)  # fmt: skip


def _at_match(rng: Choices, text: str, pattern: re.Pattern[str], change: Callable[[str], str]) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    match = rng.choose(found)
    return text[: match.start()] + change(match[0]) + text[match.end() :]


def _slice(rng: Choices, text: str) -> tuple[int, int]:
    start = rng.number(0, len(text))
    return start, min(len(text), start + rng.choose((1, 1, 2, 10, 40)))
