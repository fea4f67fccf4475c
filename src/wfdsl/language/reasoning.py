"""Reasoning in what a model writes: where it begins and ends, and what is left of a text without it.

The marks of all models are the terminals THINK, END_THINK, ASIDE and END_ASIDE of `conductor.lark`. The parser, the
workers and the graders use them, and this rule: reasoning is the text between two marks, before a lone closing one, and
after an opening one that is not closed.
"""

from __future__ import annotations

import re
from typing import Final

from wfdsl.language.completion_scanner import scanner

MARKER: Final = "=== workflow ==="
"""The line that constrained decoding puts between reasoning and the lists."""
_END_OF_REASONING: Final = "</think>"
_LONGEST_MARK: Final = 128  # characters


def begins(mark: str) -> bool:
    """Whether a mark, by its terminal, begins reasoning."""
    return mark in ("THINK", "ASIDE")


def ends(mark: str, opened: str) -> bool:
    """Whether a mark ends reasoning that another one began; "" if none did."""
    return mark == "END_THINK" or (mark == "END_ASIDE" and opened == "ASIDE")


def split_reasoning(text: str) -> tuple[str, str]:
    """The reasoning at the start of a text, without its marks, and the rest."""
    start, end = _opening(text), reasoning_end(text)
    if end is not None:
        return text[start.end() if start else 0 : end.start()].strip(), text[end.end() :].lstrip()
    return (text[start.end() :].strip(), "") if start else ("", text)


def reasoning_end(text: str, searched: int = 0) -> re.Match[str] | None:
    """The mark that ends the reasoning at the start of a text, of which so many characters hold no whole one."""
    start = _opening(text)
    opened = start.lastgroup or "" if start else ""
    found = scanner().reasoning.finditer(text, max(0, searched - _LONGEST_MARK))
    return next((mark for mark in found if ends(mark.lastgroup or "", opened)), None)


def _opening(text: str) -> re.Match[str] | None:
    start = scanner().reasoning.match(text, len(text) - len(text.lstrip()))
    return start if start and begins(start.lastgroup or "") else None


def after_reasoning(text: str) -> str:
    """What was said after the last reasoning: all of the text if there is none, nothing if it never ended."""
    opened, rest = "", 0
    for mark in scanner().reasoning.finditer(text):
        name = mark.lastgroup or ""
        if ends(name, opened):
            opened, rest = "", mark.end()
        elif begins(name):
            opened = opened or name
    return "" if opened else text[rest:]


def marked_start(text: str) -> int | None:
    """Where the lists begin that constrained decoding put after reasoning; None if it did not.

    Under its grammars the first `</think>` ends the reasoning, and the marker line follows it at once.
    """
    end = f"{_END_OF_REASONING}\n{MARKER}\n"
    at = text.find(_END_OF_REASONING)
    return at + len(end) if at >= 0 and text.startswith(end, at) else None
