"""A text with a name, and places in it.

Offsets, lines and columns count code points, never bytes; lines and columns start at 1.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

_LINE_BREAK = re.compile(r"\r\n|\r|\n")


class Span(NamedTuple):
    """A half-open range of offsets, in code points."""

    start: int
    """The first offset, from 0."""
    end: int
    """The offset after the last one."""


@dataclass(frozen=True)
class Source:
    """The text that diagnostics point into, and the name that they call it by."""

    text: str
    """The text."""
    name: str = "completion"
    """What diagnostics call it, such as a path."""

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(found.end() for found in _LINE_BREAK.finditer(self.text))]

    def position(self, offset: int) -> tuple[int, int]:
        """The line and column of an offset, both from 1; the end of the text has a position too."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line (from 1), without its line break."""
        starts = self._line_starts
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")
