"""Diagnostics with colour, where the terminal wants it."""

from __future__ import annotations

import os
import re
from typing import IO, TYPE_CHECKING

from wfdsl.language.diagnostics.render import as_text

if TYPE_CHECKING:
    from wfdsl.language.diagnostics.diagnostic import Diagnostic
    from wfdsl.language.source import Source

_COLOURS = {"error": "31", "warning": "33", "note": "36"}
_CARETS = re.compile(r"^(\s*\| *)(\^+.*)$", re.MULTILINE)
_GUTTER = re.compile(r"^(\s*(?:-->|\d+ \||\|| = ))", re.MULTILINE)


def colour_for(stream: IO[str]) -> bool:
    """Whether a stream shows colours and its reader wants them (NO_COLOR, TERM)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def draw(found: Diagnostic, source: Source, *, colour: bool) -> str:
    """A diagnostic as text, coloured or not."""
    text = as_text(found, source)
    if not colour:
        return text
    head, _, rest = text.partition("\n")
    paint = _COLOURS[found.severity]
    title, colon, message = head.partition(": ")
    rest = _CARETS.sub(rf"\1\x1b[{paint}m\2\x1b[0m".replace("\\x1b", "\x1b"), rest)
    rest = _GUTTER.sub("\x1b[34m\\1\x1b[0m", rest)
    return f"\x1b[1;{paint}m{title}\x1b[0m\x1b[1m{colon}{message}\x1b[0m\n{rest}"
