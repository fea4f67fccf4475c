"""A finite language as data (literals, characters, sequences, choices, bounded repetitions), printed in two dialects.

A rule names only rules that come after it, so every text has a greatest length. The dialects are those of constrained
decoders: GBNF (llama.cpp) and Lark (llguidance).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias


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


_GBNF_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_START = "start"


def print_gbnf(grammar: RuleSet) -> str:
    """A grammar for llama.cpp whose rule `root` describes whole texts."""
    if grammar.start != "root":
        raise ValueError(f"GBNF requires the first rule to be named `root` (got `{grammar.start}`)")
    return _printed(_Gbnf(), grammar)


def print_lark(grammar: RuleSet) -> str:
    """A grammar for llguidance whose rule `start` describes whole texts.

    llguidance splits a text into tokens before it parses, each as long as possible. So what overlaps with what follows
    must be one token: such rules get names in capitals, which Lark reads as regular expressions.
    """
    return "%llguidance {}\n" + print_openai_lark(grammar)


def print_openai_lark(grammar: RuleSet) -> str:
    """The same for OpenAI's custom tools, which read it as llguidance does, and know no directives."""
    return _printed(_Lark(grammar), grammar)


class _Dialect(Protocol):
    comment: str
    defines: str

    def name(self, name: str) -> str: ...

    def literal(self, text: str) -> str: ...

    def chars(self, ranges: str) -> str: ...

    def point(self, number: int) -> str: ...


class _Gbnf:
    comment, defines = "#", " ::="

    def name(self, name: str) -> str:
        return name

    def literal(self, text: str) -> str:
        return '"' + "".join(_GBNF_ESCAPES.get(char, char) for char in text) + '"'

    def chars(self, ranges: str) -> str:
        return f"[{ranges}]"

    def point(self, number: int) -> str:
        if number <= 0xFF:
            return f"\\x{number:02X}"
        return f"\\u{number:04X}" if number <= 0xFFFF else f"\\U{number:08X}"


class _Lark:
    comment, defines = "//", ":"

    def __init__(self, grammar: RuleSet) -> None:
        self._names = {name: _lark_name(name, rule) for name, rule in grammar.rules.items()} | {grammar.start: _START}

    def name(self, name: str) -> str:
        return self._names[name]

    def literal(self, text: str) -> str:
        return json.dumps(text)

    def chars(self, ranges: str) -> str:
        return f"/[{ranges}]/"

    def point(self, number: int) -> str:
        return f"\\x{{{number:X}}}"


def _printed(dialect: _Dialect, grammar: RuleSet) -> str:
    head = [grammar.remark, f"max_tokens {most_tokens(grammar)}: with this limit no text is cut"]
    lines = [f"{dialect.comment} {line}" for line in head]
    for name, rule in grammar.rules.items():
        lines += [f"\n{dialect.comment} {rule.remark}"] if rule.remark else []
        lines.append(f"{dialect.name(name)}{dialect.defines} {_written(dialect, rule.expression)}")
    return "\n".join(lines) + "\n"


def _written(dialect: _Dialect, expression: Expression, *, inside: bool = False) -> str:
    """An expression; inside a sequence, a choice is put in round brackets."""
    match expression:
        case Literal(text):
            return dialect.literal(text)
        case Chars(ranges):
            return dialect.chars("".join(_range(dialect, first, last) for first, last in ranges))
        case Name(name):
            return dialect.name(name)
        case Repeat(Name(name), least, most):
            return f"{dialect.name(name)}{{{least},{most}}}"
        case Sequence(parts):
            return " ".join(_written(dialect, part, inside=True) for part in parts)
        case Choice(parts):
            listed = " | ".join(_written(dialect, part) for part in parts)
            return f"({listed})" if inside else listed


def _range(dialect: _Dialect, first: int, last: int) -> str:
    return _point(dialect, first) if first == last else f"{_point(dialect, first)}-{_point(dialect, last)}"


def _point(dialect: _Dialect, number: int) -> str:
    return chr(number) if chr(number).isalnum() and number < 0x80 else dialect.point(number)


def _lark_name(name: str, rule: Rule) -> str:
    plain = name.replace("-", "_")
    return plain.upper() if rule.is_token else plain
