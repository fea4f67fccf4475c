"""Values as JSON, between processes that do not trust each other.

A value travels by its content and never by its class: a subclass of a built-in type arrives as that type, so that no
method of a program's own, such as an `__eq__` that is always true, comes along. What has no content that could be
written down (iterators, functions, objects) stays where it is and arrives as a handle.
"""
# Runs inside and outside of the sandbox, so it imports nothing of this package, and no `typing`, which is slow.

from __future__ import annotations

import sys
from json import dumps as write_json
from json import loads as read_json
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # start-up time: every program waits for imports
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    Handle: TypeAlias = Callable[[object], list[Any]]
    """Keeps a value that cannot travel, and gives what is sent instead."""
    Opened: TypeAlias = Callable[[list[Any]], object]
    """Gives the proxy of a value that stayed on the other side."""

MAX_DEPTH = 200
_PLAIN_INT = 1 << 53


class CannotTravelError(Exception):
    """A value that the other side cannot be given."""


def dumps(value: object, handle: Handle) -> bytes:
    """A value as JSON. Raises: CannotTravelError."""
    return to_json(pack(value, handle, 0))


def to_json(packed: Any) -> bytes:
    """JSON of scalars and lists."""
    return write_json(packed).encode("ascii")


def from_json(payload: bytes) -> Any:
    """What is written there. Raises: ValueError."""
    try:
        return read_json(payload.decode("ascii"))
    except RecursionError as problem:
        raise ValueError("this is nested too deeply") from problem


def pack(value: object, handle: Handle, depth: int) -> Any:
    """Scalars as they are, everything else as [tag, content]."""
    if depth > MAX_DEPTH:
        raise CannotTravelError(f"a value is nested more than {MAX_DEPTH} levels deep")
    if value is None or value is True or value is False:
        return value
    for kind, tag, content in _KINDS:
        if isinstance(value, kind):
            found = content(value)
            if tag is None:
                return found
            if isinstance(found, _Parts):
                return [tag, [pack(part, handle, depth + 1) for part in found.parts]]
            return [tag, found]
    return _of_a_module(value) or handle(value)


def _of_a_module(value: object) -> list[Any] | None:
    """Values of modules that are slow to import; one that is not imported has no values here."""
    for module, name, content in _LATE_KINDS:
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(value, kind):
            return [name, content(kind, value)]
    return None


class _Parts:
    """The parts of a container, which are packed in their turn."""

    def __init__(self, parts: Iterator[object]) -> None:
        self.parts = list(parts)


def _int(value: int) -> Any:
    exact = int.__index__(value)
    return exact if -_PLAIN_INT < exact < _PLAIN_INT else ["int", hex(exact)]


def _float(value: float) -> Any:
    exact = float.__float__(value)
    return exact if exact - exact == 0 else ["float", float.__repr__(exact)]


def _pairs(value: dict[object, object]) -> Iterator[object]:
    return (part for pair in dict.items(value) for part in pair)


_KINDS: tuple[tuple[type, str | None, Callable[[Any], Any]], ...] = (
    (str, None, str.__str__),
    (int, None, _int),
    (float, None, _float),
    (list, "list", lambda value: _Parts(list.__iter__(value))),
    (tuple, "tuple", lambda value: _Parts(tuple.__iter__(value))),
    (dict, "dict", lambda value: _Parts(_pairs(value))),
    (set, "set", lambda value: _Parts(set.__iter__(value))),
    (frozenset, "frozenset", lambda value: _Parts(frozenset.__iter__(value))),
    (complex, "complex", lambda value: [repr(value.real), repr(value.imag)]),
    (bytes, "bytes", bytes.hex),
    (bytearray, "bytearray", bytearray.hex),
    (range, "range", lambda value: [str(value.start), str(value.stop), str(value.step)]),
)
_LATE_KINDS: tuple[tuple[str, str, Callable[[Any, Any], Any]], ...] = (
    ("decimal", "Decimal", lambda kind, value: kind.__str__(value)),
    ("fractions", "Fraction", lambda _, value: [hex(value.numerator), hex(value.denominator)]),
    ("datetime", "datetime", lambda kind, value: kind.isoformat(value)),
    ("datetime", "date", lambda kind, value: kind.isoformat(value)),
    ("datetime", "time", lambda kind, value: kind.isoformat(value)),
    ("datetime", "timedelta", lambda _, value: [value.days, value.seconds, value.microseconds]),
)


def loads(payload: bytes, opened: Opened) -> Any:
    """The value. Raises: ValueError, if these bytes are none."""
    try:
        return unpack(from_json(payload), opened)
    except (ValueError, TypeError, KeyError, IndexError, ArithmeticError, AttributeError, RecursionError) as problem:
        raise ValueError(f"not a value: {problem}") from problem


def unpack(packed: Any, opened: Opened) -> Any:
    """The other way round."""
    if not isinstance(packed, list):
        if isinstance(packed, dict):
            raise ValueError("an object without a tag")  # noqa: TRY004  (bytes that are not a value)
        return packed
    tag, content = packed
    if tag in _CONTAINERS:
        parts = [unpack(part, opened) for part in content]
        return dict(zip(parts[::2], parts[1::2], strict=True)) if tag == "dict" else _CONTAINERS[tag](parts)
    if tag in _SCALARS:
        return _SCALARS[tag](content)
    return opened(packed)


_CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "set": set,
    "frozenset": frozenset,
}
_SCALARS: dict[str, Callable[[Any], Any]] = {
    "int": lambda content: int(content, 16),
    "float": float,
    "complex": lambda content: complex(float(content[0]), float(content[1])),
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "range": lambda content: range(*(int(part) for part in content)),
    "Decimal": lambda content: _made("decimal", "Decimal", content),
    "Fraction": lambda content: _made("fractions", "Fraction", *(int(part, 16) for part in content)),
    "datetime": lambda content: _made("datetime", "datetime").fromisoformat(content),
    "date": lambda content: _made("datetime", "date").fromisoformat(content),
    "time": lambda content: _made("datetime", "time").fromisoformat(content),
    "timedelta": lambda content: _made("datetime", "timedelta", *content),
}


def _made(module: str, name: str, *arguments: object) -> Any:
    """A value of a module that is slow to import, or without arguments its class."""
    kind = getattr(__import__(module), name)
    return kind(*arguments) if arguments else kind
