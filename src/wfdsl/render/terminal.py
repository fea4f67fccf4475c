"""Workflows in the terminal: steps in order, with lanes at the left that show which step sees which.

The drawing wraps to the width of the console that prints it. Lanes are drawn as `git log --graph` does: a lane opens at
a step, runs down to the last step that a line leads to, and ends there. Each place in a lane is a set of directions in
which ink leaves it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from wfdsl.language.diagnostics import cells
from wfdsl.language.tree import ALL
from wfdsl.render.model import Card, Panel, placed, spans
from wfdsl.render.text import wrap

if TYPE_CHECKING:  # start-up time: rich's console takes as long as all the rest of `wfdsl show`
    from rich.console import Console, ConsoleOptions, RenderResult

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_LINES: dict[int, str] = {
    _UP: "╵", _DOWN: "╷", _UP | _DOWN: "│", _LEFT | _RIGHT: "─", _UP | _LEFT: "╯", _UP | _RIGHT: "╰",
    _DOWN | _LEFT: "╮", _DOWN | _RIGHT: "╭", _UP | _DOWN | _LEFT: "┤", _UP | _DOWN | _RIGHT: "├",
    _UP | _LEFT | _RIGHT: "┴", _DOWN | _LEFT | _RIGHT: "┬", _UP | _DOWN | _LEFT | _RIGHT: "┼", 0: " ",
}  # fmt: skip


class LaneRow(NamedTuple):
    """The lanes left of one step."""

    joint: tuple[int, ...]
    """Directions of ink at each lane in the line above the step; empty if nothing leads to it."""
    own: int
    """The step's own lane."""
    passing: tuple[bool, ...]
    """Which lanes run past the step's own line."""
    below: tuple[bool, ...]
    """Which lanes run on below the step's own line."""


def lane_rows(drawn: Sequence[Sequence[int]]) -> tuple[LaneRow, ...]:
    """Give each step a lane; `drawn[i]` are the earlier steps from which a line leads to step i."""
    last_use: dict[int, int] = {}
    for step, sources in enumerate(drawn):
        last_use.update(dict.fromkeys(sources, step))
    lanes: list[int | None] = []
    return tuple(_next_row(step, sources, lanes, last_use) for step, sources in enumerate(drawn))


def _next_row(step: int, sources: Sequence[int], lanes: list[int | None], last_use: dict[int, int]) -> LaneRow:
    """The row of one step; `lanes` (which step's output each lane carries) is brought up to date."""
    before = list(lanes)
    lanes[:] = [None if output is not None and last_use.get(output, -1) <= step else output for output in lanes]
    own = _free_lane(lanes, [place for place, output in enumerate(before) if output in sources])
    passing = tuple(output is not None and place != own for place, output in enumerate(lanes))
    joint = _joint([place for place, output in enumerate(before) if output in sources], before, lanes, own)
    lanes[own] = step if step in last_use else None
    return LaneRow(joint, own, passing, tuple(output is not None for output in lanes))


def _free_lane(lanes: list[int | None], wished: Sequence[int]) -> int:
    """The first lane that one of the step's sources has just left, else the first free one."""
    for place in chain(wished, range(len(lanes))):
        if lanes[place] is None:
            return place
    lanes.append(None)
    return len(lanes) - 1


def _joint(
    sources: Sequence[int], before: Sequence[int | None], after: Sequence[int | None], own: int
) -> tuple[int, ...]:
    if not sources:
        return ()
    ink: defaultdict[int, int] = defaultdict(int)
    for place, output in enumerate(before):
        ink[place] |= _UP if output is not None else 0
        ink[place] |= _DOWN if after[place] is not None else 0
    ink[own] |= _DOWN
    left, right = min(own, *sources), max(own, *sources)
    for place in range(left, right + 1):
        if place in (*sources, own) or not ink[place]:
            ink[place] |= (_LEFT if place > left else 0) | (_RIGHT if place < right else 0)
    return tuple(ink[place] for place in range(max(len(after), right + 1)))


def column(lanes: Sequence[bool]) -> tuple[int, ...]:
    """The directions of ink where lanes only run straight down."""
    return tuple(_UP | _DOWN if is_open else 0 for is_open in lanes)


def ink_text(directions: Sequence[int]) -> str:
    """Draw one line of lanes, two characters a lane, carrying horizontal ink into the gap between lanes."""
    drawn = []
    for place, ink in enumerate(directions):
        before = any(other & _RIGHT for other in directions[:place])
        after = any(other & (_LEFT | _RIGHT) for other in directions[place + 1 :])
        crosses = ink & _RIGHT or (not ink & (_LEFT | _RIGHT) and before and after)
        drawn.append(_LINES[ink] + ("─" if crosses else " "))
    return "".join(drawn).rstrip()


_WIDEST = 110  # our choice: longer lines are hard to read
_TEXT_WIDTH = 100  # columns of a drawing as plain text; our choice
_INDENT = 4  # columns for each workflow that a workflow ran in
_SUBTASK_LINES = 2
_REASON_LINES = 12
_BAD = "red"
_STATE_STYLES = {"waiting": "dim", "running": "blue", "done": "green", "failed": "bold red", "pruned": "dim"}
Line: TypeAlias = list[tuple[str, str]]
"""Pieces of text, each with its style in rich's words, such as `bold green`; empty for none."""


@dataclass(frozen=True, slots=True)
class TerminalDrawing:
    """A picture that a rich console prints in colour and to its width; `str` gives plain text, 100 columns wide."""

    panel: Panel

    def __str__(self) -> str:
        return "".join("".join(text for text, _ in line) + "\n" for line in self.lines(_TEXT_WIDTH))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield one line of text after the other; none is wider than the console."""
        from rich.text import Text  # noqa: PLC0415  (start-up time)

        for line in self.lines(options.max_width):
            yield Text.assemble(*line, no_wrap=True, overflow="crop")

    def lines(self, width: int) -> Iterator[Line]:
        """The drawing line by line; none has more columns than `width`."""
        for each in placed(self.panel):
            if each.number:
                yield []
            indent = min(_INDENT * each.level, width // 2)
            for line in _lines(each.panel, max(width - indent, 1)):
                yield [(" " * indent, ""), *line] if line else line


def _lines(panel: Panel, width: int) -> Iterator[Line]:
    across = min(width, _WIDEST)
    drawing = panel.shown
    summary = drawing.summary if drawing else ""
    head = [(panel.title, "bold", 2), (panel.description, "", 4)]
    head += [(note.text, _BAD if note.is_bad else "yellow", _REASON_LINES) for note in panel.notes]
    for text, style, lines in (*head, (summary, "dim", 3)):
        yield from ([(line, style)] for line in _wrap(text, across, lines))
    if drawing is None:
        return
    yield []
    rows = lane_rows([card.drawn for card in drawing.cards])
    lane_count = max((len(row.below) for row in rows), default=0)
    with_lanes = 5 * lane_count <= width
    for card, row in zip(drawing.cards, rows, strict=True):
        yield from _step(card, row if with_lanes else _NO_LANES, 2 * lane_count if with_lanes else 2, width)


_NO_LANES = LaneRow((), 0, (False,), (False,))


def _step(card: Card, row: LaneRow, indent: int, width: int) -> Iterator[Line]:
    room = max(min(width - indent, _WIDEST), 1)
    below: Line = [(ink_text(column(row.below)).ljust(indent), "")]
    beside = ink_text(column(row.passing)).ljust(indent)
    lanes: Line = [(beside[: 2 * row.own], ""), _mark(card), (beside[2 * row.own + 1 :], "")]
    if row.joint:
        yield [(ink_text(row.joint), "dim")]
    for words in _rows_of_words(_header(card), room):
        yield [*lanes, *words]
        lanes = below
    for piece in _body(card, room):
        yield [*below, piece]


def _wrap(text: str, width: int, lines: int) -> tuple[str, ...]:
    return wrap(text, width=width, lines=lines, measure=cells)


def _mark(card: Card) -> tuple[str, str]:
    """The sign of a step, and its style."""
    if not card.is_live:
        return "○", "dim"
    if card.is_conductor:
        return "◆", "magenta"
    return ("◉", "bold green") if card.is_answer else ("●", "cyan")


def _header(card: Card) -> Line:
    """The step's words with their styles: what it is called, who does it, what it sees, what marks it out."""
    heading = f"{spans(card.steps)} {card.heading}" if card.is_named or card.members else card.heading
    sees = "all" if card.access == ALL else spans(card.sees)
    words = [
        (heading, "bold" if card.is_live else "dim"),
        (f"× {card.count}" if card.count > 1 else "", "bold yellow"),
        (card.worker_label, "cyan" if card.is_live else "dim"),
        (f"← {sees}" if sees else "", "dim"),
        *((tag, "green" if tag == "answer" else "yellow") for tag in card.tags),
    ]
    return [(word, style) for word, style in words if word]


def _rows_of_words(words: Line, room: int) -> list[Line]:
    """Words side by side, two blanks apart, as many to a line as fit; one that is wider than a line is cut."""
    rows: list[Line] = []
    used = room
    for word, style in words:
        short = "".join(_wrap(word, room, 1)) if cells(word) > room else word
        if used + 2 + cells(short) > room:
            rows.append([(short, style)])
            used = cells(short)
        else:
            rows[-1] += [("  ", ""), (short, style)]
            used += 2 + cells(short)
    return rows


def _body(card: Card, room: int) -> Iterator[tuple[str, str]]:
    for line in _wrap(card.subtask, room, _SUBTASK_LINES):
        yield line, "" if card.is_live else "dim"
    if card.state:
        for line in _wrap(card.facts, room, 2):
            yield line, _STATE_STYLES[card.state]
    for reason in card.reasons:
        for line in _wrap(reason, room, _REASON_LINES):
            yield line, _BAD
