"""A shape in llguidance's dialect of Lark.

llguidance splits a text into tokens before it parses, each as long as can be. So what overlaps with what follows must
be one token: such rules get names in capitals, which Lark reads as regular expressions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wfdsl.language.constrained.shape import Chars, Choice, Expression, Literal, Name, Repeat, Sequence, most_tokens

if TYPE_CHECKING:
    from wfdsl.language.constrained.shape import Rule, Shape

_START = "start"


def print_lark(shape: Shape) -> str:
    """A grammar whose rule `start` describes whole texts."""
    printer = _Printer(shape)
    lines = [printer.rule(name, rule) for name, rule in shape.rules.items()]
    head = [f"// {shape.remark}", f"// max_tokens {most_tokens(shape)}: with so many none is cut"]
    return "\n".join(["%llguidance {}", *head, *lines]) + "\n"


class _Printer:
    def __init__(self, shape: Shape) -> None:
        self._names = {name: _name(name, rule) for name, rule in shape.rules.items()} | {shape.start: _START}

    def rule(self, name: str, rule: Rule) -> str:
        remark = f"\n// {rule.remark}\n" if rule.remark else ""
        return f"{remark}{self._names[name]}: {self._written(rule.expression)}"

    def _written(self, expression: Expression, *, inside: bool = False) -> str:
        """An expression; inside a sequence, a choice stands in brackets."""
        match expression:
            case Literal(text):
                return json.dumps(text)
            case Chars(ranges):
                return "/[" + "".join(_range(first, last) for first, last in ranges) + "]/"
            case Name(name):
                return self._names[name]
            case Repeat(Name(name), least, most):
                return f"{self._names[name]}{{{least},{most}}}"
            case Sequence(parts):
                return " ".join(self._written(part, inside=True) for part in parts)
            case Choice(parts):
                listed = " | ".join(self._written(part) for part in parts)
                return f"({listed})" if inside else listed


def _name(name: str, rule: Rule) -> str:
    plain = name.replace("-", "_")
    return plain.upper() if rule.is_token else plain


def _range(first: int, last: int) -> str:
    return _point(first) if first == last else f"{_point(first)}-{_point(last)}"


def _point(number: int) -> str:
    return chr(number) if chr(number).isalnum() and number < 0x80 else f"\\x{{{number:X}}}"
