r"""The values in `\boxed{...}`: braces balanced, neighbours taken together.

Boxes that stand side by side, with nothing but punctuation, `and` or `or` between them, are one answer with several
values. So listing every possible value in a row is no way to be right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPENING = re.compile(r"\\f?box(?:ed)?\s*(?=\{)")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_BETWEEN = re.compile(
    r"(?:[\s,;:.$()*/|]|\\[()\[\],;: ]|\\quad|\\text\{\s*(?:and|or)\s*\}|\b(?:and|or|also|maybe)\b)*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Box:
    """Neighbouring boxes: where they begin and end, and their values."""

    start: int
    end: int
    values: tuple[str, ...]

    @property
    def value(self) -> str:
        """The values as one answer."""
        return ", ".join(dict.fromkeys(self.values))


def boxes(text: str) -> list[Box]:
    """Every group of boxes, in order. A box that is never closed is none."""
    groups: list[Box] = []
    for box in _single(text):
        before = groups[-1] if groups else None
        if before is not None and _BETWEEN.fullmatch(text, before.end, box.start):
            groups[-1] = Box(before.start, box.end, (*before.values, *box.values))
        else:
            groups.append(box)
    return groups


def _single(text: str) -> Iterator[Box]:
    """Each outermost box. Of a box that holds nothing but a box, the inner value."""
    closing = _matching_braces(text)
    end = 0
    for opening in _OPENING.finditer(text):
        if opening.start() < end or opening.end() not in closing:
            continue
        inner, brace = opening, opening.end()
        end = closing[brace] + 1
        while (deeper := _OPENING.match(text, brace + 1)) and closing.get(deeper.end()) == closing[brace] - 1:
            inner, brace = deeper, deeper.end()
        if value := text[inner.end() + 1 : closing[brace]].strip():
            yield Box(opening.start(), end, (value,))


def _matching_braces(text: str) -> dict[int, int]:
    """Where each brace that is opened is closed, in one pass. An escaped brace is no brace."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for found in _BRACE.finditer(text):
        if found[0] == "{":
            opened.append(found.start())
        elif found[0] == "}" and opened:
            closing[opened.pop()] = found.start()
    return closing
