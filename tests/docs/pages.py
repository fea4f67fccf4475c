"""The pages of the documentation and the fenced examples in them.

What a test has to know about an example is in an HTML comment before it, which readers do not see:

    <!-- file: plan.wf -->            the example is written to this file, for the examples that follow on the page
    <!-- error: access-not-earlier --> the example is invalid, for this reason
    <!-- run: local -->               it needs the small local model
    <!-- not run: needs a key -->     it cannot be run here; it is read as far as that goes

A comment of several lines, `<!-- file: NAME` and then the content, makes a file that readers do not need to see.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(
    r"^(?P<indent> *)(?P<marks>`{3,})(?P<language>[\w-]*)[^\n`]*\n(?P<body>.*?)^(?P=indent)(?P=marks)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_COMMENT = re.compile(r"<!--(?P<inside>.*?)-->", re.DOTALL)
_MARK = re.compile(r"\s*(?P<key>file|error|run|not run):[ ]*(?P<value>[^\n]*?)[ ]*(?:\n(?P<content>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Example:
    """One fenced block, or a file that a comment holds."""

    page: str
    line: int
    language: str
    """The word after the fence; empty for a file in a comment."""
    text: str
    marks: dict[str, str] = field(default_factory=dict)
    adjacent: bool = False
    """Whether there is no text between this block and the one before."""

    @property
    def place(self) -> str:
        """Where it is, as an editor understands it."""
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """The paths of all pages, from the root of the repository."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(path.relative_to(ROOT).as_posix() for path in files)


def read_page(page: str) -> str:
    """The text of a page."""
    return (ROOT / page).read_text("utf-8")


def table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown; a bar in a cell of code has to be escaped."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def examples_of(page: str, text: str) -> list[Example]:
    """The examples of a page with this text, in order."""
    found: list[Example] = []
    end = 0
    for fence in _FENCE.finditer(text):
        between = text[end : fence.start()]
        marks = _marks(between, page, text.count("\n", 0, end) + 1, found)
        adjacent = bool(found) and not _COMMENT.sub("", between).strip()
        found.append(
            Example(page, text.count("\n", 0, fence.start()) + 1, fence["language"], _dedented(fence), marks, adjacent)
        )
        end = fence.end()
    return found


def _marks(between: str, page: str, line: int, found: list[Example]) -> dict[str, str]:
    """The marks of the next fence; files in comments are added as examples of their own."""
    marks: dict[str, str] = {}
    for comment in _COMMENT.finditer(between):
        mark = _MARK.fullmatch(comment["inside"])
        if mark is None:
            continue
        if mark["content"] is not None:
            found.append(Example(page, line, "", mark["content"], {"file": mark["value"]}))
        elif not _COMMENT.sub("", between[comment.end() :]).strip():
            marks[mark["key"]] = mark["value"]
    return marks


def _dedented(fence: re.Match[str]) -> str:
    width = len(fence["indent"])
    return "".join(
        line[width:] if line.strip() else line.lstrip(" ") for line in fence["body"].splitlines(keepends=True)
    )
