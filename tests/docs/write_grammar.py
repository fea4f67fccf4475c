"""A grammar file as a page: its comments as text, its definitions as code, in the order of the file."""

from __future__ import annotations

import re
from itertools import groupby

from .pages import ROOT

_RULE = re.compile(r"// -{2,} (?P<title>.*?) -{2,}$")


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
    return "\n".join(_prose_line(line) for line in comment.splitlines())


def _prose_line(line: str) -> str:
    heading = _RULE.match(line)
    if heading:
        return f"### {heading['title'].capitalize()}\n"
    inside = line.removeprefix("//").removeprefix(" ").replace("<", "&lt;")
    return re.sub(r"^ {1,3}(?=\S)", "", inside)
