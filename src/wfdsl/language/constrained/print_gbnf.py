"""A shape in GBNF, the dialect of llama.cpp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wfdsl.language.constrained.shape import Chars, Choice, Expression, Literal, Name, Repeat, Sequence, most_tokens

if TYPE_CHECKING:
    from wfdsl.language.constrained.shape import Rule, Shape

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def print_gbnf(shape: Shape) -> str:
    """A grammar whose rule `root` describes whole texts."""
    if shape.start != "root":
        raise ValueError("GBNF calls the first rule `root`")
    head = [f"# {shape.remark}", f"# max_tokens {most_tokens(shape)}: with so many none is cut"]
    return "\n".join([*head, *(_rule(name, rule) for name, rule in shape.rules.items())]) + "\n"


def _rule(name: str, rule: Rule) -> str:
    remark = f"\n# {rule.remark}\n" if rule.remark else ""
    return f"{remark}{name} ::= {_written(rule.expression)}"


def _written(expression: Expression, *, inside: bool = False) -> str:
    """An expression; inside a sequence, a choice stands in brackets."""
    match expression:
        case Literal(text):
            return '"' + "".join(_ESCAPES.get(char, char) for char in text) + '"'
        case Chars(ranges):
            return "[" + "".join(_range(first, last) for first, last in ranges) + "]"
        case Name(name):
            return name
        case Repeat(Name(name), least, most):
            return f"{name}{{{least},{most}}}"
        case Sequence(parts):
            return " ".join(_written(part, inside=True) for part in parts)
        case Choice(parts):
            listed = " | ".join(_written(part) for part in parts)
            return f"({listed})" if inside else listed


def _range(first: int, last: int) -> str:
    return _point(first) if first == last else f"{_point(first)}-{_point(last)}"


def _point(number: int) -> str:
    if chr(number).isalnum() and number < 0x80:
        return chr(number)
    if number <= 0xFF:
        return f"\\x{number:02X}"
    return f"\\u{number:04X}" if number <= 0xFFFF else f"\\U{number:08X}"
