"""Reading JSON that any server may have sent: what is not of the expected kind counts as absent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def count(counts: Mapping[str, Any], name: str) -> int:
    """A number of tokens, 0 if there is none."""
    value = counts.get(name)
    return max(value, 0) if isinstance(value, int) else 0
