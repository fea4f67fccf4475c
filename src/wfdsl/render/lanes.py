"""The lines at the left of a terminal drawing, as `git log --graph` draws them: a lane for each output in use.

A lane opens at a step, runs down to the last step that a line leads to, and ends there. Each place in the column is a
set of directions in which ink leaves it, so one table turns it into box-drawing characters or into ASCII.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_LINES: dict[int, str] = {
    _UP: "╵", _DOWN: "╷", _UP | _DOWN: "│", _LEFT | _RIGHT: "─", _UP | _LEFT: "╯", _UP | _RIGHT: "╰",
    _DOWN | _LEFT: "╮", _DOWN | _RIGHT: "╭", _UP | _DOWN | _LEFT: "┤", _UP | _DOWN | _RIGHT: "├",
    _UP | _LEFT | _RIGHT: "┴", _DOWN | _LEFT | _RIGHT: "┬", _UP | _DOWN | _LEFT | _RIGHT: "┼", 0: " ",
}  # fmt: skip
_ASCII = {directions: "|" if directions in (_UP, _DOWN, _UP | _DOWN) else "+" for directions in _LINES}
_ASCII |= {0: " ", _LEFT | _RIGHT: "-"}


@dataclass(frozen=True, slots=True)
class LaneRow:
    """What stands left of one step."""

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


def ink_text(directions: Sequence[int], *, is_ascii: bool) -> str:
    """Draw one line of lanes, two characters a lane, carrying horizontal ink into the gap between lanes."""
    table = _ASCII if is_ascii else _LINES
    dash = table[_LEFT | _RIGHT]
    drawn = []
    for place, ink in enumerate(directions):
        following = [other for other in directions[place + 1 :] if other & (_LEFT | _RIGHT)]
        crosses = ink & _RIGHT or (not ink & (_LEFT | _RIGHT) and _is_inside(directions, place) and following)
        drawn.append(table[ink] + (dash if crosses else " "))
    return "".join(drawn).rstrip()


def _is_inside(directions: Sequence[int], place: int) -> bool:
    """Whether a horizontal line passes beneath this lane: one that is open to the right began further left."""
    return any(ink & _RIGHT for ink in directions[:place])
