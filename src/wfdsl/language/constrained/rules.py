"""A finite language as data: rules made of literals, character sets, sequences, choices and bounded repetitions.

A rule names only rules that come after it, so every text has a greatest length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Literal:
    """This very text."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    ranges: tuple[tuple[int, int], ...]
    """First and last code points, ascending."""

    def without(self, excluded: str) -> Chars:
        """The set less some characters."""
        ranges = list(self.ranges)
        for point in map(ord, excluded):
            ranges = [
                part
                for first, last in ranges
                for part in ([(first, point - 1), (point + 1, last)] if first <= point <= last else [(first, last)])
                if part[0] <= part[1]
            ]
        return Chars(tuple(ranges))


@dataclass(frozen=True, slots=True)
class Name:
    """Whatever the rule of this name describes."""

    name: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after the other."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the parts."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A rule, from `least` to `most` times."""

    name: Name
    least: int
    most: int


Expression: TypeAlias = Literal | Chars | Name | Sequence | Choice | Repeat


@dataclass(frozen=True, slots=True)
class Rule:
    """The definition of a name."""

    expression: Expression
    remark: str = ""
    """What a reader of the grammar should know, in one line."""
    is_token: bool = False
    """Whether a decoder that splits text into tokens first must take this as one, since its parts overlap."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """A language: its rules by name, the first of which describes whole texts."""

    rules: Mapping[str, Rule]
    remark: str = ""

    @property
    def start(self) -> str:
        """The rule that describes whole texts."""
        return next(iter(self.rules))


def most_tokens(grammar: RuleSet) -> int:
    """The tokens with which no text is cut: a byte each at the worst, and one for the end. Units: tokens."""
    return most_bytes(grammar) + 1


def most_bytes(grammar: RuleSet) -> int:
    """The length of the longest text. Units: bytes in UTF-8."""
    known: dict[str, int] = {}
    for name in reversed(list(grammar.rules)):  # a rule names only rules after it
        known[name] = _most_bytes(grammar.rules[name].expression, known)
    return known[grammar.start]


def _most_bytes(expression: Expression, known: Mapping[str, int]) -> int:
    match expression:
        case Literal(text):
            return len(text.encode())
        case Chars(ranges):
            return len(chr(ranges[-1][1]).encode())
        case Name(name):
            return known[name]
        case Repeat(Name(name), _, most):
            return known[name] * most
        case Sequence(parts):
            return sum(_most_bytes(part, known) for part in parts)
        case Choice(parts):
            return max(_most_bytes(part, known) for part in parts)
