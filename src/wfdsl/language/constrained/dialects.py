"""Grammar dialects of constrained decoders: GBNF (llama.cpp) and Lark (llguidance)."""

from __future__ import annotations

import json
from typing import Protocol

from wfdsl.language.constrained.rules import (
    Chars,
    Choice,
    Expression,
    Literal,
    Name,
    Repeat,
    Rule,
    RuleSet,
    Sequence,
    most_tokens,
)

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
