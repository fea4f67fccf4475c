"""Diagnostics: problems in a text, as values, as a person reads them (source line, caret, help), and as JSON.

Tabs become spaces and control characters become pictures of themselves, so that the caret is where the eye
expects it and no text can steer a terminal; wide characters count two cells, combining ones none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, TypeAlias

from wfdsl.errors import WfdslError
from wfdsl.language.source import Source, Span
from wfdsl.settings import closest

NOWHERE = Span(0, 0)  # of a problem in a value that was never a text
Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem: a stable code, how bad it is, where it is, and what to write instead.

    `label` is shown after the caret; `help` is the cure.
    """

    code: str
    """The stable name of the problem, which `wfdsl check --explain` takes."""
    severity: Severity
    """`error` or `warning`."""
    message: str
    """What is wrong, in one sentence."""
    span: Span
    """Where it is in the text."""
    label: str = ""
    """What is written under the marked place; may be empty."""
    help: str = ""
    """What to do; may be empty."""

    @property
    def is_error(self) -> bool:
        """Whether it makes the text invalid."""
        return self.severity == "error"


MOST_SHOWN = 100  # diagnostics of one code, so that a text made of problems stays cheap to check; our choice


def more_of_the_same(code: str, span: Span) -> Diagnostic:
    """The note that replaces all diagnostics of a code beyond those shown; `span` is the first one's."""
    message = f"there are more than {MOST_SHOWN} problems `{code}`; from here on they are not shown"
    return Diagnostic("more-of-the-same", "note", message, span, help="fix the first ones, and check again")


def in_order(found: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics in the order of the text; at one place errors come first."""
    rank = {"error": 0, "warning": 1, "note": 2}
    return tuple(sorted(found, key=lambda d: (d.span.start, rank[d.severity], d.span.end, d.code)))


def once_per_place(found: list[Diagnostic]) -> list[Diagnostic]:
    """Of several with one code at one place the first: the copies of a step have one place, and one cure."""
    first: dict[tuple[str, Span], Diagnostic] = {}
    for diagnostic in found:
        first.setdefault((diagnostic.code, diagnostic.span), diagnostic)
    return list(first.values())


_SHORTEST = 2  # characters; our choice
_LONGEST = 60  # characters of a word that is looked up; our choice
_CANDIDATES = 200  # known words that it is compared with; our choice


class Suggestions:
    """Finds the closest word, a limited number of times: comparing is slow, and hundreds of hints are not read."""

    def __init__(self, limit: int = 100) -> None:
        self._left = limit

    def closest(self, word: str, known: Iterable[str]) -> str | None:
        """The known word that is most like this one, or begins with it; None if none is."""
        if self._left == 0 or not _SHORTEST <= len(word) <= _LONGEST:
            return None
        self._left -= 1
        return closest(word, islice(known, _CANDIDATES))

    def hint(self, word: str, known: Iterable[str]) -> str:
        """`did you mean ...?`, or nothing."""
        near = self.closest(word, known)
        return f"did you mean `{near}`?" if near else ""


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
    carets = "^" * max(1, cells(marked))
    label = f" {_shown(found.label)}" if found.label else ""
    return [
        f"{gutter} |",
        f"{number} | {before}{marked}{after}".rstrip(),
        f"{gutter} | {' ' * cells(before)}{carets}{label}",
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
    if cells(before) + cells(marked) + cells(after) <= _WIDEST:
        return before, marked, after
    if cells(marked) > _WIDEST // 2:
        marked, after = _fitting(marked, _WIDEST // 2) + _ELLIPSIS, ""
    if cells(before) > _WIDEST // 2:
        before = _ELLIPSIS + _fitting(before[::-1], _WIDEST // 2)[::-1]
    room = max(0, _WIDEST - cells(before) - cells(marked))
    return before, marked, after if cells(after) <= room else _fitting(after, room) + _ELLIPSIS


def _fitting(text: str, room: int) -> str:
    """As much of the beginning of a text as fits into a number of cells."""
    for index, char in enumerate(text):
        room -= _width(char)
        if room < 0:
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


def cells(text: str) -> int:
    """How many cells of a terminal a text takes: 2 for wide characters, 0 for those that modify another."""
    if text.isascii():
        return len(text)
    return sum(_width(char) for char in text)


def _width(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me"} or char in "\u200b\u200c\u200d":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class WorkflowError(WfdslError, ValueError):
    """A text or a value that is not a valid workflow: the writer's mistake.

    `diagnostics` holds every problem; `str()` shows them as the command line would.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source | None = None) -> None:
        self.diagnostics = tuple(diagnostics)
        self.source = source
        super().__init__("\n\n".join(as_text(found, source) for found in self.diagnostics))
