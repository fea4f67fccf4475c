"""Values as JSON, between processes that do not trust each other.

A value travels by its content and never by its class: a subclass of a built-in type arrives as that type, so that no
method of a program's own, such as an `__eq__` that is always true, comes along. What has no content that could be
written down (iterators, functions, objects) stays where it is and arrives as a handle.
"""
# Runs inside and outside of the sandbox, so it imports nothing of this package, and no `typing`, which is slow.

from __future__ import annotations

import sys
from json import dumps as write_json
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # start-up time: every program waits for imports
    from collections.abc import Callable
    from typing import Any

MALFORMED = (ValueError, TypeError, KeyError, IndexError, ArithmeticError, AttributeError, RecursionError)
"""What reading bytes that are not a value may raise."""
MAX_DEPTH = 200
_PLAIN_INT = 1 << 53


class CannotTravelError(Exception):
    """A value that the other side cannot be given."""


def to_json(packed: Any) -> bytes:
    """JSON of scalars and lists."""
    return write_json(packed).encode("ascii")


def pack(value: object, handle: Callable[[object], list[Any]], depth: int = 0) -> Any:
    """Scalars as they are, everything else as [tag, content]; `handle` keeps what cannot travel, and says what is sent.

    Raises: CannotTravelError.
    """
    if depth > MAX_DEPTH:
        raise CannotTravelError(f"a value is nested more than {MAX_DEPTH} levels deep")
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        whole = int.__index__(value)
        return whole if -_PLAIN_INT < whole < _PLAIN_INT else ["int", hex(whole)]
    if isinstance(value, float):
        exact = float.__float__(value)
        return exact if exact - exact == 0 else ["float", float.__repr__(exact)]
    for tag, kind in _CONTAINERS.items():
        if isinstance(value, kind):
            parts = (part for pair in dict.items(value) for part in pair) if kind is dict else kind.__iter__(value)
            return [tag, [pack(part, handle, depth + 1) for part in list(parts)]]
    for name, (module, write, _) in _SCALARS.items():
        kind = getattr(sys.modules.get(module), name, None)  # a module that is not imported has no values here
        if kind is not None and isinstance(value, kind):
            return [name, write(value)]
    return handle(value)


def unpack(packed: Any, opened: Callable[[list[Any]], object]) -> Any:
    """The other way round; `opened` gives what is there for a value that stayed on the other side.

    Raises: one of MALFORMED, if these are not values.
    """
    if not isinstance(packed, list):
        if isinstance(packed, dict):
            raise ValueError("an object without a tag")  # noqa: TRY004  (bytes that are not a value)
        return packed
    tag, content = packed
    if tag in _CONTAINERS:
        parts = [unpack(part, opened) for part in content]
        return dict(zip(parts[::2], parts[1::2], strict=True)) if tag == "dict" else _CONTAINERS[tag](parts)
    if tag in _SCALARS:
        module, _, read = _SCALARS[tag]
        return read(getattr(__import__(module), tag), content)
    return opened(packed)


_CONTAINERS: dict[str, Any] = {"list": list, "tuple": tuple, "dict": dict, "set": set, "frozenset": frozenset}
_SCALARS: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "int": ("builtins", hex, lambda kind, text: kind(text, 16)),
    "float": ("builtins", repr, lambda kind, text: kind(text)),
    "complex": (
        "builtins",
        lambda value: [repr(value.real), repr(value.imag)],
        lambda kind, parts: kind(*map(float, parts)),
    ),
    "bytes": ("builtins", bytes.hex, lambda kind, text: kind.fromhex(text)),
    "bytearray": ("builtins", bytearray.hex, lambda kind, text: kind.fromhex(text)),
    "range": (
        "builtins",
        lambda value: [str(value.start), str(value.stop), str(value.step)],
        lambda kind, parts: kind(*map(int, parts)),
    ),
    "Decimal": ("decimal", str, lambda kind, text: kind(text)),
    "Fraction": (
        "fractions",
        lambda value: [hex(value.numerator), hex(value.denominator)],
        lambda kind, parts: kind(*(int(part, 16) for part in parts)),
    ),
    **dict.fromkeys(
        ("datetime", "date", "time"),
        ("datetime", lambda value: value.isoformat(), lambda kind, text: kind.fromisoformat(text)),
    ),
    "timedelta": (
        "datetime",
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda kind, parts: kind(*parts),
    ),
}
"""By name: the module of the class, how a value of it is written, and how it is read. Some modules import slowly."""
