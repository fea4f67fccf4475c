"""Diagnostics as a person reads them (source line, caret, help) and as JSON.

Tabs become spaces and control characters become pictures of themselves, so that the caret is where the eye
expects it and no text can steer a terminal; wide characters count two cells, combining ones none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

from wfdsl.language.diagnostics.diagnostic import Diagnostic
from wfdsl.language.source import Source, Span

_TAB = "    "
_WIDEST = 100  # cells of a source line that are shown; our choice
_ELLIPSIS = "..."


def as_text(found: Diagnostic, source: Source | None = None) -> str:
    """A diagnostic as text of several lines, without colour. Without a source only what it says, not where."""
    lines = [f"{found.severity}[{found.code}]: {_shown(found.message)}"]
    gutter = " "
    if source is not None:
        line, column = source.position(found.span.start)
        gutter = " " * len(str(line))
        lines.append(f"{gutter} --> {_shown(source.name)}:{line}:{column}")
        if source.text:
            lines += _excerpt(found, source.text, line, column)
    if found.help:
        lines.append(f"{gutter} = help: {_shown(found.help)}")
    return "\n".join(lines)


def as_json(found: Diagnostic, source: Source) -> dict[str, Any]:
    """A diagnostic as the JSON object that `wfdsl check --json` prints."""
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


def _excerpt(found: Diagnostic, text: str, line: int, column: int) -> list[str]:
    before, marked, after = _window(*_around(found.span, text, column))
    number = str(line)
    gutter = " " * len(number)
    carets = "^" * max(1, _cells(marked))
    label = f" {_shown(found.label)}" if found.label else ""
    return [
        f"{gutter} |",
        f"{number} | {before}{marked}{after}".rstrip(),
        f"{gutter} | {' ' * _cells(before)}{carets}{label}",
    ]


def _around(span: Span, text: str, column: int) -> tuple[str, str, str]:
    """The text before, in and after a span on its first line. No more of a long line is looked at than is shown."""
    start, end = span.start, max(span.end, span.start + 1)
    before = text[start - min(column - 1, _WIDEST + 1) : start].rstrip("\r\n")
    marked = _line_of(text[start : min(end, start + _WIDEST + 1)])
    after = _line_of(text[end : end + _WIDEST + 1]) if len(marked) == end - start else ""
    return _shown(before), _shown(marked), _shown(after)


def _line_of(text: str) -> str:
    return text.partition("\n")[0].partition("\r")[0]


def _window(before: str, marked: str, after: str) -> tuple[str, str, str]:
    """Cut a long line to the text around the mark."""
    if _cells(before) + _cells(marked) + _cells(after) <= _WIDEST:
        return before, marked, after
    if _cells(marked) > _WIDEST // 2:
        marked, after = _fitting(marked, _WIDEST // 2) + _ELLIPSIS, ""
    if _cells(before) > _WIDEST // 2:
        before = _ELLIPSIS + _fitting(before[::-1], _WIDEST // 2)[::-1]
    room = max(0, _WIDEST - _cells(before) - _cells(marked))
    return before, marked, after if _cells(after) <= room else _fitting(after, room) + _ELLIPSIS


def _fitting(text: str, cells: int) -> str:
    """As much of the beginning of a text as fits into a number of cells."""
    for index, char in enumerate(text):
        cells -= _width(char)
        if cells < 0:
            return text[:index]
    return text


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
    # Direction marks and other invisible characters would move the text after them.
    return char if unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} else "\ufffd"


def _cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_width(char) for char in text)


def _width(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
