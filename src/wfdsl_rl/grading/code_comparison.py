"""When an output or a result is the expected one.

The rules are those of LiveCodeBench's own runner, so that figures can be compared. They run out here, on plain values.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from math import isclose
from typing import Any

SHOWN = 120  # characters of a value in a reason
_RELATIVE = 1e-9  # what the order of a sum may change, and no more. Our choice
_LONGEST_NUMBER = 400  # characters


def output_difference(output: str, expected: str) -> str:
    """Where two outputs differ, in one line; empty if they do not.

    Spaces at the ends of lines, and empty lines at the ends of the text, do not count. Two lines of numbers are equal
    if their numbers are, so that `1.0` is `1`.
    """
    found, wanted = _lines(output), _lines(expected)
    for number, (one, other) in enumerate(zip_longest(found, wanted), start=1):
        if one is None:
            return f"the output ends after {number - 1} of {len(wanted)} lines"
        if other is None:
            return f"the output has {len(found)} lines, not {len(wanted)}"
        if one != other and not _same_numbers(one, other):
            return f"line {number} of the output is {shown(one)}, not {shown(other)}"
    return ""


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_numbers(one: str, other: str) -> bool:
    found, wanted = one.split(), other.split()
    if len(found) != len(wanted):
        return False
    return all(_same_number(left, right) for left, right in zip(found, wanted, strict=True))


def _same_number(one: str, other: str) -> bool:
    if one == other:
        return True
    if max(len(one), len(other)) > _LONGEST_NUMBER:
        return False
    try:
        found, wanted = Decimal(one), Decimal(other)
    except InvalidOperation:
        return False
    if not (found.is_finite() and wanted.is_finite()):
        return False
    return found == wanted


def same_result(found: Any, expected: Any) -> bool:
    """Whether a result is the expected JSON value. A tuple is a list; floats may differ by what rounding does."""
    if isinstance(found, list | tuple) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(same_result, found, expected))
    if isinstance(found, dict) and isinstance(expected, dict):
        return _same_members(found, expected)
    if isinstance(found, bool) or isinstance(expected, bool):
        return isinstance(found, bool | int) and isinstance(expected, bool | int) and found == expected
    if isinstance(found, int) and isinstance(expected, int):
        return found == expected
    if isinstance(found, int | float) and isinstance(expected, int | float):
        return _close(found, expected)
    return type(found) is type(expected) and bool(found == expected)


def _close(found: float, expected: float) -> bool:
    try:
        return found == expected or isclose(found, expected, rel_tol=_RELATIVE, abs_tol=1e-12)
    except OverflowError:  # an integer that no float can hold
        return False


def _same_members(found: dict[Any, Any], expected: dict[Any, Any]) -> bool:
    """JSON knows keys as texts only."""
    named = {key if isinstance(key, str) else _key(key): value for key, value in found.items()}
    return (
        len(named) == len(found)
        and named.keys() == expected.keys()
        and all(same_result(value, expected[key]) for key, value in named.items())
    )


def _key(key: object) -> str:
    if key is None or isinstance(key, bool):
        return str(key).lower().replace("none", "null")
    return str(key)


def shown(value: object) -> str:
    """A value in a reason: short, and one line."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text):,} characters)"
