"""Diagnostics as a person reads them (source line, caret, help) and as JSON.

Tabs become spaces and control characters become pictures of themselves, so that the caret stands where the eye
expects it; wide characters count two cells, combining ones none.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wfdsl.diagnostics.diagnostic import Diagnostic
    from wfdsl.source import Source

_TAB = "    "
_WIDEST = 100  # cells of a source line that are shown; our choice
_ELLIPSIS = "..."


def as_text(found: Diagnostic, source: Source | None = None) -> str:
    """A diagnostic as text of several lines, without colour. Without a source only what it says, not where."""
    lines = [f"{found.severity}[{found.code}]: {found.message}"]
    if source is not None and source.text:
        lines += _excerpt(found, source)
        gutter = " " * len(str(source.position(found.span.start)[0]))
    else:
        gutter = " "
        if source is not None:
            lines.append(f"  --> {source.name}:1:1")
    if found.help:
        lines.append(f"{gutter} = help: {found.help}")
    return "\n".join(lines)


def as_json(found: Diagnostic, source: Source) -> dict[str, Any]:
    """A diagnostic as the JSON object that `wfdsl check --format json` prints."""
    line, column = source.position(found.span.start)
    return {
        "code": found.code,
        "severity": found.severity,
        "message": found.message,
        "help": found.help,
        "start": found.span.start,
        "end": found.span.end,
        "line": line,
        "column": column,
    }


def summary(found: Iterable[Diagnostic]) -> str:
    """How many of each severity, such as "2 errors, 1 note"; empty for none."""
    counts: dict[str, int] = {}
    for diagnostic in found:
        counts[diagnostic.severity] = counts.get(diagnostic.severity, 0) + 1
    return ", ".join(
        f"{counts[severity]} {severity}{'s' if counts[severity] > 1 else ''}"
        for severity in ("error", "warning", "note")
        if severity in counts
    )


def _excerpt(found: Diagnostic, source: Source) -> list[str]:
    line, column = source.position(found.span.start)
    text = source.line(line)
    last = min(len(text), column - 1 + max(1, found.span.end - found.span.start))
    before, marked, after = _window(_shown(text[: column - 1]), _shown(text[column - 1 : last]), _shown(text[last:]))
    number = str(line)
    gutter = " " * len(number)
    carets = "^" * max(1, _cells(marked))
    label = f" {found.label}" if found.label else ""
    return [
        f"{gutter} --> {source.name}:{line}:{column}",
        f"{gutter} |",
        f"{number} | {before}{marked}{after}".rstrip(),
        f"{gutter} | {' ' * _cells(before)}{carets}{label}",
    ]


def _window(before: str, marked: str, after: str) -> tuple[str, str, str]:
    """Cut a long line to what stands around the mark."""
    if _cells(before) + _cells(marked) + _cells(after) <= _WIDEST:
        return before, marked, after
    if _cells(marked) > _WIDEST // 2:
        marked = marked[: _WIDEST // 2] + _ELLIPSIS
        after = ""
    if len(before) > _WIDEST // 2:
        before = _ELLIPSIS + before[-_WIDEST // 2 :]
    room = max(0, _WIDEST - len(before) - len(marked))
    return before, marked, after if len(after) <= room else after[:room] + _ELLIPSIS


def _shown(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(_picture(char) for char in text)


def _picture(char: str) -> str:
    if char == "\t":
        return _TAB
    if ord(char) < 0x20:
        return chr(0x2400 + ord(char))  # Unicode's control pictures
    if char == "\x7f":
        return "\u2421"
    # Direction marks and other invisible characters would move what stands behind them.
    return char if unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} else "\ufffd"


def _cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_width(char) for char in text)


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
