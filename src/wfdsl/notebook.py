"""What notebooks show of a value: a picture, a page or a table.

Pictures are above what they draw, so what draws is imported by its name when a notebook asks for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class DrawnInNotebooks:
    """A value with a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str | None:
        return _drawn("wfdsl.pictures", "to_svg", self)


class ReadInNotebooks(DrawnInNotebooks):
    """A value with a picture and with texts to read."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        return _drawn("wfdsl.html_page", "to_html_fragment", self)


def _drawn(module: str, function: str, value: Any) -> str | None:
    drawn: str | None = getattr(import_module(module), function)(value)
    return drawn
