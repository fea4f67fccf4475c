"""A grammar file as a page: its comments as text, its definitions as code, in the order of the file."""

from __future__ import annotations

import re
from itertools import groupby

from .pages import ROOT

_HEADING = re.compile(r"-{2,} (?P<title>.*?) -{2,}$")


def literate(name: str) -> str:
    """The whole file."""
    lines = (ROOT / "grammars" / name).read_text("utf-8").splitlines()
    parts = []
    for is_comment, group in groupby(lines, key=_is_comment):
        text = "\n".join(group).strip("\n")
        if text.strip():
            parts.append(_prose(text) if is_comment else f"```lark\n{text}\n```")
    return "\n\n".join(parts)


def _is_comment(line: str) -> bool:
    return line.startswith("//")


def _prose(comment: str) -> str:
    """A comment as Markdown: what follows a list without an indent is a paragraph of its own."""
    lines: list[str] = []
    for line in comment.splitlines():
        inside = line.removeprefix("//").removeprefix(" ")
        if lines and inside[:1].strip() and lines[-1].startswith(" "):
            lines.append("")
        lines.append(inside)
    return "\n".join(map(_prose_line, lines)).strip("\n")


def _prose_line(line: str) -> str:
    heading = _HEADING.match(line)
    if heading:
        return f"### {heading['title'].capitalize()}\n"
    return re.sub(r"^ {1,3}(?=\S)", "", line.replace("<", "&lt;"))
