"""A completion as pages show it: its three lists marked, each item with its step, and every problem below its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from wfdsl.api import Checked, Form, analyze
from wfdsl.language.check import CheckConfig
from wfdsl.language.completion import read_completion
from wfdsl.language.source import Source

_LOGGED: Final = re.compile(r"line (\d+): (.*?)(?: \[([a-z0-9-]+)\])?", re.DOTALL)
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_LONGEST: Final = 20_000
"""Characters that are marked; a longer completion is shown plain. Our choice."""


class Piece(NamedTuple):
    """A part of a line."""

    text: str
    list: str = ""
    """The list that it is an item of: `workers`, `subtasks` or `access`."""
    step: int | None = None
    """The step that the item belongs to."""
    is_wrong: bool = False
    """Whether a problem is here."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the completion, and what is wrong with it."""

    pieces: tuple[Piece, ...]
    problems: tuple[str, ...] = ()


class _Mark(NamedTuple):
    start: int
    end: int
    list: str
    step: int


def lines_of(text: str, problems: Sequence[str]) -> list[Line]:
    """The lines of a completion. The problems are those of its log, which says how it was read when it was run."""
    if len(text) > _LONGEST:
        return [Line((Piece(text),), tuple(problems))]
    source = Source(text)
    logged = [_logged(problem) for problem in problems]
    wrong = [
        (found.span.start, max(found.span.end, found.span.start + 1))
        for found in analyze(text, CheckConfig(profile="lenient", max_steps=None, recursion=True)).diagnostics
        if (source.position(found.span.start)[0], found.code) in {(line, code) for line, _, code in logged}
    ]
    by_line: dict[int, list[str]] = {}
    for line, message, code in logged:
        by_line.setdefault(line, []).append(f"{message} [{code}]" if code else message)
    return _lines(text, list(_marks(text)), wrong, by_line)


def checked_lines(checked: Checked, form: Form) -> list[Line]:
    """The lines of a text in either form with its diagnostics; of a long text only these."""
    problems: dict[int, list[str]] = {}
    for found in checked.diagnostics:
        line = checked.source.position(found.span.start)[0]
        told = f"{found.severity}: {found.message}{f' ({found.help})' if found.help else ''} [{found.code}]"
        problems.setdefault(line, []).append(told)
    text = checked.source.text
    if len(text) > _LONGEST:
        return [Line((Piece(f"line {line}:"),), tuple(told)) for line, told in sorted(problems.items())]
    wrong = [(found.span.start, max(found.span.end, found.span.start + 1)) for found in checked.diagnostics]
    return _lines(text, list(_marks(text)) if form == "completion" else [], wrong, problems)


def _lines(
    text: str, marks: list[_Mark], wrong: list[tuple[int, int]], problems: Mapping[int, Sequence[str]]
) -> list[Line]:
    """The lines of a text, each with its problems; those of no line come last."""
    found, start = [], 0
    for number, line in enumerate(_LINE.findall(text) or [""], 1):
        pieces = tuple(_pieces(line.rstrip("\r\n"), start, marks, wrong))
        found.append(Line(pieces, tuple(problems.get(number, ()))))
        start += len(line)
    beyond = tuple(each for number, told in problems.items() if not 0 < number <= len(found) for each in told)
    return [*found, Line((), beyond)] if beyond else found


def _logged(problem: str) -> tuple[int, str, str]:
    """The line, message and code of a problem as the log writes it; a code is cut off where the message is long."""
    found = _LOGGED.fullmatch(problem)
    return (int(found[1]), found[2], found[3] or "") if found else (0, problem, "")


def _marks(text: str) -> Iterator[_Mark]:
    tree = read_completion(text, "lenient").tree
    if tree is None:
        return
    yield from (_Mark(node.start, node.end, "workers", step) for step, node in enumerate(tree.workers))
    yield from (_Mark(node.start, node.end, "subtasks", step) for step, node in enumerate(tree.subtasks))
    yield from (_Mark(entry.start, entry.end, "access", step) for step, entry in enumerate(tree.access))


def _pieces(text: str, start: int, marks: list[_Mark], wrong: list[tuple[int, int]]) -> Iterator[Piece]:
    """A line, cut wherever a mark or a problem begins or ends."""
    end = start + len(text)
    inside = [mark for mark in marks if mark.start < end and mark.end > start]
    bad = [span for span in wrong if span[0] < end and span[1] > start]
    edges = {start, end, *(at for mark in inside for at in mark[:2]), *(at for span in bad for at in span)}
    cuts = sorted(at for at in edges if start <= at <= end)
    for first, last in pairwise(cuts):
        mark = next((mark for mark in inside if mark.start <= first < mark.end), None)
        yield Piece(
            text[first - start : last - start],
            mark.list if mark else "",
            mark.step if mark else None,
            any(low <= first < high for low, high in bad),
        )
