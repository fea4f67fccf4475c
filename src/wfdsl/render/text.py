"""Text in pictures: made harmless, wrapped to a width, and measured in terminal cells or in a sans-serif typeface.

A subtask may hold anything: line breaks, escape codes, marks that turn the direction of the text after them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from wfdsl.language.diagnostics import cells

_SPACE = re.compile(r"\s+")
_NONCHARACTERS = "".join(chr(plane * 0x10000 + last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF))
# Controls, marks of writing direction (they reorder the text around a label), surrogates and noncharacters
# (illegal in XML). Line breaks and tabs stay where there are any.
_UNSAFE = re.compile(
    f"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufff9-\uffff{_NONCHARACTERS}]"
)
ELLIPSIS = "…"
_ROUNDING = 1e-6  # a width that was added up in another order is the same width


def plain(text: str) -> str:
    """One line of harmless text: white space runs become one space, what cannot be shown becomes a visible sign."""
    return _UNSAFE.sub(_visible, _SPACE.sub(" ", text).strip())


def harmless(text: str) -> str:
    """Text with its line breaks and tabs, where what cannot be shown becomes a visible sign."""
    return _UNSAFE.sub(_visible, text.replace("\r\n", "\n"))


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] in "\n\t":
        return found[0]
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def wrap(text: str, *, width: float, lines: int, measure: Callable[[str], float]) -> tuple[str, ...]:
    """Break plain text at spaces, and inside a word only if it is wider than a line; cut it after `lines` lines.

    What is cut off is marked by an ellipsis. Units: `width` in whatever `measure` measures.
    """
    found: list[str] = []
    rest = text
    while rest and len(found) < lines:
        line, rest = _first_line(rest, width=width, measure=measure)
        found.append(line)
    if rest and found:
        found[-1] = _with_ellipsis(f"{found[-1]} {rest}", width=width, measure=measure)
    return tuple(found)


def _first_line(text: str, *, width: float, measure: Callable[[str], float]) -> tuple[str, str]:
    end = _fitting(text, width=width, measure=measure)
    if end == len(text):
        return text, ""
    space = text.rfind(" ", 0, end + 1)
    cut = space if space > 0 else end
    return text[:cut].rstrip(), text[cut:].lstrip()


def _fitting(text: str, *, width: float, measure: Callable[[str], float]) -> int:
    """How many characters fit, at least one; a character that only modifies the one before it stays with it."""
    used = 0.0
    for place, character in enumerate(text):
        used += measure(character)
        if used > width + _ROUNDING and place:
            return _cluster_start(text, place)
    return len(text)


def _cluster_start(text: str, place: int) -> int:
    start = place
    while start > 1 and (
        unicodedata.combining(text[start]) or text[start] in "\u200d\ufe0f" or text[start - 1] == "\u200d"
    ):
        start -= 1
    return start


def _with_ellipsis(text: str, *, width: float, measure: Callable[[str], float]) -> str:
    room = width - measure(ELLIPSIS)
    end = _fitting(text, width=room, measure=measure) if measure(text[:1]) <= room else 0
    return text[:end].rstrip() + ELLIPSIS


def shorten(text: str, *, width: float, measure: Callable[[str], float]) -> str:
    """The text on one line, with an ellipsis if it does not fit."""
    return "".join(wrap(text, width=width, lines=1, measure=measure))


_WIDTHS = {
    "ijl'|": 0.25,
    "ftI.,:;![]()/\\ -`r": 0.36,
    "JckszvyxLE*^": 0.55,
    "mMW%@": 0.94,
    "wACDGHKNOQRUXYBPSVT&+<=>~…—": 0.73,
}
_WIDTH = {character: width for characters, width in _WIDTHS.items() for character in characters}
_NARROW, _WIDE = 0.58, 1.08


def text_width(text: str, size: float) -> float:
    """The width of a text in a usual sans-serif typeface, for pictures whose viewer picks the font.

    Widths are those of Arial rounded up a little, so text that fits here fits in what is shown. Units: that of `size`.
    """
    return size * sum(map(_em, text))


def _em(character: str) -> float:
    known = _WIDTH.get(character)
    return known if known is not None else (0.0, _NARROW, _WIDE)[cells(character)]


def counted(count: int, word: str) -> str:
    """A number and what it counts: `1 step`, `2,000 steps`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
