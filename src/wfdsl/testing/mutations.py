"""Near misses: texts that were completions or workflow files before something went wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable

from wfdsl.testing.pen import Pen

TOKENS = (
    "[", "]", "(", ")", "{", "}", ",", "=", ":", "：", "'", '"', "'''", '"""', "\\", "#", "*", ".", "-", "\n", "\r",
    " ", "\u00a0", "“", "”", "‘", "’", "model_id = [", "subtasks: [", '"access_list": [', "Model ID: (", "<think>",
    "</think>", "None", "True", "0", "1.0", "-1", "1e9", "0x1", "00", "all", '"all"', "*2", "[[[", "]]]", "...", "f'",
    "b'", "r'", "\\x", "\\N{", "\\ud800", "\ud800", "\0", "\u2028", "😀", "== [", ": list[int] =", "(x)", "step ",
    " by ", " sees ", "param ", " copies ", "{x}",
)  # fmt: skip
_BRACKETS = {"[": "(", "]": ")", "(": "[", ")": "]", "{": "[", "}": "]"}
_INTEGER = re.compile(r"\d+")
_ITEM = re.compile(r",[^,\[\]]*")
_BRACKET = re.compile(r"[\[\](){}]")
_WRONG = ("None", "True", "1.5", "{}", "[[[0]]]", "x", "'x'", "1 + 1", "", "-3", "99", "1_0", "9" * 30)


def mutated(pen: Pen, text: str) -> str:
    """The text after one to four accidents."""
    for _ in range(pen.number(1, 4)):
        text = pen.choose(_ACCIDENTS)(pen, text)
    return text


def _drop(pen: Pen, text: str) -> str:
    start, end = _slice(pen, text)
    return text[:start] + text[end:]


def _double(pen: Pen, text: str) -> str:
    start, end = _slice(pen, text)
    return text[:end] + text[start:end] + text[end:]


def _insert(pen: Pen, text: str) -> str:
    at = pen.number(0, len(text))
    return text[:at] + pen.choose(TOKENS) + text[at:]


def _replace(pen: Pen, text: str) -> str:
    start, end = _slice(pen, text)
    return text[:start] + pen.choose(TOKENS) + text[end:]


def _truncate(pen: Pen, text: str) -> str:
    return text[: pen.number(0, len(text))]


def _swap_bracket(pen: Pen, text: str) -> str:
    return _at_match(pen, text, _BRACKET, lambda bracket: _BRACKETS[bracket])


def _wrong_type(pen: Pen, text: str) -> str:
    return _at_match(pen, text, _INTEGER, lambda _: pen.choose(_WRONG))


def _lose_item(pen: Pen, text: str) -> str:
    return _at_match(pen, text, _ITEM, lambda _: "")


def _move(pen: Pen, text: str) -> str:
    start, end = _slice(pen, text)
    rest = text[:start] + text[end:]
    at = pen.number(0, len(rest))
    return rest[:at] + text[start:end] + rest[at:]


_ACCIDENTS: tuple[Callable[[Pen, str], str], ...] = (
    _drop, _double, _insert, _replace, _truncate, _swap_bracket, _wrong_type, _lose_item, _move,
)  # fmt: skip


def _at_match(pen: Pen, text: str, pattern: re.Pattern[str], change: Callable[[str], str]) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    match = pen.choose(found)
    return text[: match.start()] + change(match[0]) + text[match.end() :]


def _slice(pen: Pen, text: str) -> tuple[int, int]:
    start = pen.number(0, len(text))
    return start, min(len(text), start + pen.choose((1, 1, 2, 10, 40)))
