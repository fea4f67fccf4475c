"""How wide text is in a usual sans-serif typeface, for pictures whose viewer picks the font.

Widths are those of Arial rounded up a little, in units of the font size, so text that fits here fits in what is shown.
"""

from __future__ import annotations

from wfdsl.render.lettering import cells

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
    """The width of a text, in the unit of `size`."""
    return size * sum(map(_em, text))


def _em(character: str) -> float:
    known = _WIDTH.get(character)
    return known if known is not None else (0.0, _NARROW, _WIDE)[int(cells(character))]
