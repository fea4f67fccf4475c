"""A workflow as a terminal drawing: steps in order, lanes at the left that show who sees whom, at any width.

It fits itself to the console that prints it: wrapping to its width, and plain ASCII where the encoding asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Unpack

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Workflow
from wfdsl.render.drawing import Card, Drawing, Options, draw
from wfdsl.render.lanes import LaneRow, column, ink_text, lane_rows
from wfdsl.render.lettering import wrap

_WIDEST = 110  # our choice: longer lines are hard to read
_SUBTASK_LINES = 2
_STATE_STYLES = {"waiting": "dim", "running": "blue", "done": "green", "failed": "red", "pruned": "dim"}
_ASCII = str.maketrans({"·": "-", "←": "<-", "…": "..."})
_Mark = Literal["step", "dead", "conductor", "answer"]
_MARKS: dict[_Mark, tuple[str, str, str]] = {
    "step": ("●", "*", "cyan"),
    "dead": ("○", "o", "dim"),
    "conductor": ("◆", "#", "magenta"),
    "answer": ("◉", "@", "bold green"),
}


def to_terminal(workflow: Workflow, **options: Unpack[Options]) -> TerminalDrawing:
    """Draw a workflow for a rich console: `console.print(to_terminal(workflow))`.

    Raises:
        ValueError: `names` has not one name for each step.
    """
    return TerminalDrawing(draw(workflow, **options))


@dataclass(frozen=True, slots=True)
class TerminalDrawing:
    """A rich renderable."""

    drawing: Drawing

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield one line of text after the other; none is wider than the console."""
        paper = _Paper(options.max_width, options.encoding, is_ascii=options.ascii_only)
        yield from _lines(self.drawing, paper)


@dataclass(frozen=True, slots=True)
class _Paper:
    """What is drawn on."""

    width: int
    encoding: str
    is_ascii: bool

    def text(self, written: str) -> str:
        """The text in characters that the encoding has."""
        if not self.is_ascii:
            return written
        return written.translate(_ASCII).encode(self.encoding, "backslashreplace").decode(self.encoding)

    def wrap(self, written: str, *, width: int, lines: int) -> list[str]:
        """Lines of at most `width` cells; room is kept for what an ellipsis becomes in ASCII."""
        room = max(width - 2 * self.is_ascii, 1)
        broken = wrap(self.text(written), width=room, lines=lines, measure=cell_len)
        return [line.translate(_ASCII)[:width] if self.is_ascii else line for line in broken]


def _lines(drawing: Drawing, paper: _Paper) -> Iterator[Text]:
    across = min(paper.width, _WIDEST)
    for text, style, lines in ((drawing.title, "bold", 2), (drawing.description, "", 4), (drawing.summary, "dim", 3)):
        yield from (Text(line, style=style) for line in paper.wrap(text, width=across, lines=lines))
    yield Text("")
    rows = lane_rows([card.drawn for card in drawing.cards])
    lane_count = max((len(row.below) for row in rows), default=0)
    with_lanes = 5 * lane_count <= paper.width
    for card, row in zip(drawing.cards, rows, strict=True):
        yield from _step(card, row if with_lanes else _NO_LANES, 2 * lane_count if with_lanes else 2, paper)


_NO_LANES = LaneRow((), 0, (False,), (False,))


def _step(card: Card, row: LaneRow, indent: int, paper: _Paper) -> Iterator[Text]:
    room = max(min(paper.width - indent, _WIDEST), 1)
    mark, ascii_mark, mark_style = _MARKS[_mark(card)]
    below = ink_text(column(row.below), is_ascii=paper.is_ascii)
    if row.joint:
        yield Text(ink_text(row.joint, is_ascii=paper.is_ascii), style="dim")
    for number, words in enumerate(_rows_of_words(_header(card, paper), room, paper)):
        line = Text(below, style="")
        if not number:
            beside = ink_text(column(row.passing), is_ascii=paper.is_ascii).ljust(2 * row.own + 1)
            line = Text(beside[: 2 * row.own])
            line.append(ascii_mark if paper.is_ascii else mark, style=mark_style)
            line.append(beside[2 * row.own + 1 :])
        yield _beside(line, words, indent)
    for written, style in _body(card, room, paper):
        yield _beside(Text(below), [(written, style)], indent)


def _mark(card: Card) -> _Mark:
    if not card.is_live:
        return "dead"
    if card.is_conductor:
        return "conductor"
    return "answer" if card.is_answer else "step"


def _header(card: Card, paper: _Paper) -> list[tuple[str, str]]:
    """The step's words with their styles: what it is called, who does it, what it sees, what marks it out."""
    heading = f"{card.index} {card.name}" if card.name else card.heading
    sees = "all" if card.access == ALL else ", ".join(map(str, card.sees))
    words = [
        (heading, "bold" if card.is_live else "dim"),
        (card.worker_label, "cyan" if card.is_live else "dim"),
        (f"← {sees}" if sees else "", "dim"),
        *((tag, "green" if tag == "answer" else "yellow") for tag in card.tags),
    ]
    return [(paper.text(word), style) for word, style in words if word]


def _rows_of_words(words: Sequence[tuple[str, str]], room: int, paper: _Paper) -> list[list[tuple[str, str]]]:
    """Words side by side, two blanks apart, as many to a line as fit; one that is wider than a line is cut."""
    rows: list[list[tuple[str, str]]] = [[]]
    used = 0
    for word, style in words:
        short = "".join(paper.wrap(word, width=room, lines=1)) if cell_len(word) > room else word
        if rows[-1] and used + 2 + cell_len(short) > room:
            rows.append([])
            used = 0
        used += cell_len(short) + (2 if rows[-1] else 0)
        rows[-1].append((short, style))
    return rows


def _body(card: Card, room: int, paper: _Paper) -> Iterator[tuple[str, str]]:
    for line in paper.wrap(card.subtask, width=room, lines=_SUBTASK_LINES):
        yield line, "" if card.is_live else "dim"
    if card.status:
        for line in paper.wrap(card.status_text, width=room, lines=2):
            yield line, _STATE_STYLES[card.status.state]


def _beside(lanes: Text, words: Sequence[tuple[str, str]], indent: int) -> Text:
    line = Text(no_wrap=True, overflow="crop", end="\n")
    line.append_text(lanes)
    line.append(" " * (indent - lanes.cell_len))
    for number, (word, style) in enumerate(words):
        line.append("  " if number else "")
        line.append(word, style=style)
    return line
