"""A reader of pictures who has only the ink: who follows lines by their coordinates, and says which step sees which.

Lines that run on in one another, or side by side closer than an eye tells apart, are one line to it. It turns where a
rounded corner turns, and crosses what it meets at a right angle. `python -m tests.render.edge_reader 10000` reads the
pictures of as many workflows.
"""

from __future__ import annotations

import re
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from tests.render.drawn_workflows import random_workflow

from wfdsl import to_svg
from wfdsl.language.workflow import Workflow

SVG = "{http://www.w3.org/2000/svg}"
APART = 3.0
"""Pixels; closer lines are one."""
_NUMBER = re.compile(r"-?[\d.]+")
Point: TypeAlias = tuple[float, float]
Place: TypeAlias = tuple[bool, int]
"""Where lines of one kind are looked for."""


class Box(NamedTuple):
    steps: tuple[int, ...]
    sees_all: bool
    left: float
    right: float
    top: float
    bottom: float


class Stroke(NamedTuple):
    """A straight piece of a line: at `at` on one axis, from `start` to `end` on the other."""

    is_upright: bool
    at: float
    start: float
    end: float


class Corner(NamedTuple):
    start: Point
    end: Point
    is_from_upright: bool


def seen_in(workflow: Workflow) -> set[tuple[int, int]]:
    """Which step sees which."""
    return {(seen, step) for step in range(len(workflow)) for seen in workflow.sees(step)}


def edges_in(svg: str) -> set[tuple[int, int]]:
    """Which step sees which, as the picture of a workflow says it."""
    root = ET.fromstring(svg)
    boxes = [_box(group) for group in root.iter(f"{SVG}g") if "step" in group.attrib.get("class", "").split()]
    ink = _Ink([path.attrib["d"] for path in root.iter(f"{SVG}path") if "line" in path.attrib["class"].split()])
    found = {
        (one, other)
        for source in boxes
        for target in ink.arrivals(source, boxes)
        for one in source.steps
        for other in target.steps
    }
    for box in boxes:
        found |= {(earlier, step) for step in box.steps for earlier in range(step) if box.sees_all}
    return found


def _box(group: ET.Element) -> Box:
    written = [("".join(text.itertext()), text.attrib["class"]) for text in group.iter(f"{SVG}text")]
    texts = [text for text, _ in written]
    outline = [each for each in group if each.attrib.get("class") == "box"][-1]  # the front card of a stack
    if "d" in outline.attrib:  # cut corners
        x, y, across, cut, _, down, *_ = map(float, _NUMBER.findall(outline.attrib["d"]))
        left, top, width, height = x - cut, y, across + 2 * cut, down + 2 * cut
    else:
        left, top, width, height = (float(outline.attrib[name]) for name in ("x", "y", "width", "height"))
    members = [text for text, style in written if style == "small" and re.fullmatch(r"[\d, -]+", text)]
    listed = texts[0] if texts[0] != "steps" else " ".join(members)
    return Box(tuple(_indices(listed)), "sees all" in texts, left, left + width, top, top + height)


def _indices(heading: str) -> Iterator[int]:
    for part in heading.removeprefix("steps").removeprefix("step").split(","):
        first, _, last = part.strip().partition("-")
        yield from range(int(first), int(last or first) + 1)


class _Ink:
    def __init__(self, paths: list[str]) -> None:
        strokes: set[Stroke] = set()
        self.corners: set[Corner] = set()
        for path in paths:
            x, y = 0.0, 0.0
            for command, written in re.findall(r"([MVHQ])([^MVHQ]*)", path):
                numbers = [float(number) for number in _NUMBER.findall(written)]
                if command == "V":
                    strokes.add(Stroke(True, x, *sorted((y, numbers[0]))))
                    y = numbers[0]
                elif command == "H":
                    strokes.add(Stroke(False, y, *sorted((x, numbers[0]))))
                    x = numbers[0]
                else:
                    to_x, to_y = numbers[-2], numbers[-1]
                    if command == "Q":
                        is_from_upright = abs(numbers[0] - x) < abs(numbers[1] - y)
                        self.corners.add(Corner((x, y), (to_x, to_y), is_from_upright))
                    x, y = to_x, to_y
        self.lines = _merged(strokes)
        self.turns: dict[Place, list[Corner]] = {}
        for corner in self.corners:
            at = corner.start[0 if corner.is_from_upright else 1]
            self.turns.setdefault(_place(corner.is_from_upright, at), []).append(corner)

    def _lines(self, is_upright: bool, point: Point) -> Iterator[Stroke]:
        """The lines of one kind that a point is on."""
        across = point[0 if is_upright else 1]
        for place in _near(is_upright, across):
            yield from (line for line in self.lines.get(place, ()) if _is_on(line, point))

    def arrivals(self, source: Box, boxes: Sequence[Box]) -> set[Box]:
        """The boxes that somebody comes to who goes down from a box, and along the lines."""
        left = [
            ((line.at, source.bottom), 1, line)
            for lines in self.lines.values()
            for line in lines
            if line.is_upright and source.left < line.at < source.right and _is_on(line, (line.at, source.bottom))
        ]
        found: set[Box] = set()
        taken: set[Corner] = set()
        while left:
            at, way, line = left.pop()
            if line.is_upright:
                below = [box for box in boxes if abs(line.end + 6 - box.top) < APART]
                found |= {box for box in below if box.left < line.at < box.right}
            for corner in set(self._turns(line, at, way)) - taken:
                taken.add(corner)
                way_on = 1 if line.is_upright is False or corner.end[0] > corner.start[0] else -1
                left += [(corner.end, way_on, each) for each in self._lines(not line.is_upright, corner.end)]
        return found

    def _turns(self, line: Stroke, at: Point, way: int) -> Iterator[Corner]:
        """The corners at which a line can be left by somebody who goes this way along it."""
        axis = 1 if line.is_upright else 0
        for corner in (each for place in _near(line.is_upright, line.at) for each in self.turns.get(place, ())):
            if not _is_on(line, corner.start):
                continue
            turns = 1 if corner.end[axis] > corner.start[axis] else -1
            if turns == way and (corner.start[axis] - at[axis]) * way >= -APART:
                yield corner


def _is_on(line: Stroke, point: Point) -> bool:
    across, along = point if line.is_upright else point[::-1]
    return abs(across - line.at) < APART and line.start - APART <= along <= line.end + APART


def _merged(strokes: set[Stroke]) -> dict[Place, list[Stroke]]:
    """Strokes that run on in one another, or side by side, as one."""
    found: dict[Place, list[Stroke]] = {}
    for stroke in sorted(strokes):
        line, near = stroke, _near(stroke.is_upright, stroke.at)
        while same := next((each for place in near for each in found.get(place, ()) if _runs_on(each, line)), None):
            found[_place(same.is_upright, same.at)].remove(same)
            line = line._replace(start=min(same.start, line.start), end=max(same.end, line.end))
        found.setdefault(_place(line.is_upright, line.at), []).append(line)
    return found


def _place(is_upright: bool, at: float) -> Place:
    return is_upright, int(at // APART)


def _near(is_upright: bool, at: float) -> list[Place]:
    return [(is_upright, int(at // APART) + step) for step in (-1, 0, 1)]


def _runs_on(one: Stroke, other: Stroke) -> bool:
    return (
        one.is_upright == other.is_upright
        and abs(one.at - other.at) < APART
        and one.start <= other.end + APART
        and other.start <= one.end + APART
    )


def _main(count: int) -> None:
    """Print which workflows are drawn as others."""
    began = time.monotonic()
    wrong = [seed for seed in range(count) if edges_in(to_svg(workflow := random_workflow(seed))) != seen_in(workflow)]
    print(f"{count} workflows in {time.monotonic() - began:.0f} s; read as another workflow: {wrong}")


if __name__ == "__main__":
    _main(int(sys.argv[1]))
