"""Exact values of arithmetic expressions: whole numbers, + - * / and parentheses, and nothing else.

`slipped=True` gives what a hasty reader gets, who works from left to right and takes no operator before another.
"""

from __future__ import annotations

import operator
import re
from fractions import Fraction

PATTERN = r"-?[0-9(][0-9+*/() -]{0,58}"
"""What may be an expression; `value` tells whether it is one."""

_TOKEN = re.compile(r" *(\d{1,9}|[-+*/()])")
_SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}


def value(text: str, *, slipped: bool = False) -> Fraction | None:
    """The value of the expression; None if it is none, or divides by zero."""
    tokens = _tokens(text)
    if tokens is None:
        return None
    reading = _Reading(tokens, dict.fromkeys(_RANK, 1) if slipped else _RANK)
    try:
        result = reading.sum(1)
    except (IndexError, ValueError, ZeroDivisionError):
        return None
    return None if reading.left else result


def _tokens(text: str) -> list[str] | None:
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return None
        tokens.append(found[1])
        at = found.end()
    return tokens


class _Reading:
    """Precedence climbing over what is left of the tokens, the next one last."""

    def __init__(self, tokens: list[str], rank: dict[str, int]) -> None:
        self.left = tokens[::-1]
        self._rank = rank

    def sum(self, least: int) -> Fraction:
        result = self._factor()
        while self.left and self._rank.get(self.left[-1], 0) >= least:
            sign = self.left.pop()
            result = _SIGNS[sign](result, self.sum(self._rank[sign] + 1))
        return result

    def _factor(self) -> Fraction:
        token = self.left.pop()
        if token == "-":
            return -self._factor()
        if token != "(":
            return Fraction(int(token))
        result = self.sum(1)
        if self.left.pop() != ")":
            raise ValueError("a parenthesis is not closed")
        return result
