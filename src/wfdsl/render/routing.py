"""How lines run between two rows: down, along a track, and down again, so that a picture has only one reading.

What leaves one spot, or what arrives at one, is a bundle and may share ink. Each bundle has a track of its own; tracks
at the same height do not meet. Where what leaves a spot would run on in what arrives below it, the track of the first
is above that of the second, and where no order of tracks allows that, the second arrives beside the middle of its box.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import TypeAlias

from wfdsl.render.layout import Lane, Layout, Spot

# Pixels; our choice, all of them.
_CLEAR = 5.0  # lines that are closer side by side may be taken for one
_PITCH = 9.0  # from track to track
_LEAD, _TIP = 14.0, 20.0  # from the row above to the first track, and from the last one to the row below
_LEAST_GAP = 46.0
_CORNER = 8.0
_BESIDE = (18.0, 36.0, 54.0)  # how far from the middle of a box a line may arrive: one of six places is always free
_LANE_SHIFT = 10.0
LANE = 26.0  # lanes that are shifted towards each other, and lines above them, stay apart

Segment: TypeAlias = tuple[Spot, Spot]
Bundle: TypeAlias = tuple[str, Spot]


@dataclass(slots=True)
class Gap:
    """The lines between a row and the next one."""

    height: float = _LEAST_GAP
    track: dict[Segment, float] = field(default_factory=dict)
    """How far below the upper row a line turns; none for a straight one."""
    arrival: dict[Segment, float] = field(default_factory=dict)
    """Where on the x axis it arrives."""


@dataclass(frozen=True, slots=True)
class Routes:
    """The lines of a layout."""

    layout: Layout
    x: Mapping[Spot, float]
    gaps: Sequence[Gap]

    def moved(self, right: float) -> Routes:
        """The lines, moved to the right."""
        gaps = [replace(gap, arrival={each: at + right for each, at in gap.arrival.items()}) for gap in self.gaps]
        return Routes(self.layout, {spot: at + right for spot, at in self.x.items()}, gaps)

    def path(self, edge: tuple[int, int], top: Sequence[float], heights: Sequence[float], start: float) -> str:
        """The SVG path of a line, which starts at the height `start`; `top` and `heights` are those of the rows."""
        spots = self.layout.lines[edge]
        row = self.layout.row_of[spots[0]]
        at = self.x[spots[0]]
        drawn = f"M{at:.1f} {start:.1f}"
        for number, (upper, lower) in enumerate(pairwise(spots), row):
            gap, below = self.gaps[number], top[number] + heights[number]
            to = gap.arrival[upper, lower]
            if (turn := gap.track.get((upper, lower))) is not None:
                y, corner = below + turn, min(_CORNER, abs(to - at) / 2)
                side = corner if to > at else -corner
                drawn += (
                    f"V{y - corner:.1f}Q{at:.1f} {y:.1f} {at + side:.1f} {y:.1f}"
                    f"H{to - side:.1f}Q{to:.1f} {y:.1f} {to:.1f} {y + corner:.1f}"
                )
            at, end = to, top[number + 1]
            drawn += f"V{end + heights[number + 1] if isinstance(lower, Lane) else end - 6:.1f}"
        return drawn

    def tip(self, edge: tuple[int, int]) -> float:
        """Where on the x axis a line arrives."""
        *_, before, last = self.layout.lines[edge]
        return self.gaps[self.layout.row_of[last] - 1].arrival[before, last]


def routed(layout: Layout) -> Routes:
    """The lines of a layout, from the first row down; lanes may be moved a little."""
    x = dict(layout.x)
    segments: dict[int, dict[Segment, None]] = defaultdict(dict)
    for spots in layout.lines.values():
        for segment in pairwise(spots):
            segments[layout.row_of[segment[0]]][segment] = None
    return Routes(layout, x, [_gap(list(segments[row]), x) for row in range(len(layout.rows) - 1)])


def _gap(segments: Sequence[Segment], x: dict[Spot, float]) -> Gap:
    bundle = _bundles(segments)
    gap = Gap(arrival={(upper, lower): x[lower] for upper, lower in segments})
    for upper, lower in segments:
        if abs(x[upper] - x[lower]) < _CLEAR:
            _arrive(gap, x, lower, x[upper], [each for each in segments if each[1] == lower])
    while True:
        above = _above(segments, bundle, gap, x)
        before = {each: dict.fromkeys(pair[0] for pair in above if pair[1] == each) for each in bundle.values()}
        try:
            order = list(TopologicalSorter(before).static_order())
            break
        except CycleError as error:
            circle = set(pairwise(error.args[1]))
            for lower in dict.fromkeys(spot for first, second, spot in above if (first, second) in circle):
                _move(lower, segments, gap, x)
    extent = {each: _extent(each, bundle, gap, x) for each in order}
    levels: dict[Bundle, int] = {}
    for each in [each for each in order if extent[each]]:
        level = max((levels[first] + 1 for first, second, _ in above if second == each and first in levels), default=0)
        while any(taken == level and _meet(extent[other], extent[each]) for other, taken in levels.items()):
            level += 1
        levels[each] = level
    used = max(levels.values(), default=0) * _PITCH
    gap.height = max(_LEAST_GAP, _LEAD + used + _TIP)
    first = _LEAD + (gap.height - _LEAD - used - _TIP) / 2
    for segment in segments:
        if x[segment[0]] != gap.arrival[segment]:
            gap.track[segment] = first + levels[bundle[segment]] * _PITCH
    return gap


def _bundles(segments: Sequence[Segment]) -> dict[Segment, Bundle]:
    """With what each line shares its ink: with all that leave the same spot, or with all that arrive at the same."""
    leaving: dict[Spot, int] = defaultdict(int)
    arriving: dict[Spot, int] = defaultdict(int)
    for upper, lower in segments:
        leaving[upper] += 1
        arriving[lower] += 1
    found: dict[Segment, Bundle] = {}
    for upper, lower in segments:
        is_left = isinstance(upper, Lane) and upper.end == "from"
        is_joined = isinstance(lower, Lane) and lower.end == "to"
        from_upper = is_left or (not is_joined and leaving[upper] >= arriving[lower])
        found[upper, lower] = ("from", upper) if from_upper else ("to", lower)
    return found


def _above(
    segments: Sequence[Segment], bundle: Mapping[Segment, Bundle], gap: Gap, x: Mapping[Spot, float]
) -> list[tuple[Bundle, Bundle, Spot]]:
    """Pairs of bundles of which the first has to turn above the second, each with the spot below."""
    turning = [segment for segment in segments if x[segment[0]] != gap.arrival[segment]]
    return [
        (bundle[one], bundle[other], other[1])
        for one in turning
        for other in turning
        if bundle[one] != bundle[other] and abs(x[one[0]] - gap.arrival[other]) < _CLEAR
    ]


def _move(lower: Spot, segments: Sequence[Segment], gap: Gap, x: dict[Spot, float]) -> None:
    """Let the lines that turn arrive beside the middle of a box; a lane is moved with all its lines."""
    own = [segment for segment in segments if segment[1] == lower]
    moved = own if isinstance(lower, Lane) else [each for each in own if x[each[0]] != gap.arrival[each]]
    side = 1.0 if sum(x[upper] - x[lower] for upper, _ in moved) >= 0 else -1.0
    taken = [x[upper] for upper, _ in segments]
    taken += [at for segment, at in gap.arrival.items() if segment not in moved]
    shifts = (_LANE_SHIFT,) if isinstance(lower, Lane) else _BESIDE
    places = [x[lower] + shift * sign for shift in shifts for sign in (side, -side)]
    free = [place for place in places if min(abs(place - at) for at in taken) >= _CLEAR]
    _arrive(gap, x, lower, free[0], moved)


def _arrive(gap: Gap, x: dict[Spot, float], lower: Spot, at: float, moved: Sequence[Segment]) -> None:
    if isinstance(lower, Lane):
        x[lower] = at
    gap.arrival.update(dict.fromkeys(moved, at))


def _extent(
    bundle: Bundle, bundles: Mapping[Segment, Bundle], gap: Gap, x: Mapping[Spot, float]
) -> tuple[float, float] | None:
    """From where to where the track of a bundle goes; None if all of its lines are straight."""
    own = [each for each, other in bundles.items() if other == bundle and x[each[0]] != gap.arrival[each]]
    ends = [at for each in own for at in (x[each[0]], gap.arrival[each])]
    return (min(ends), max(ends)) if ends else None


def _meet(one: tuple[float, float] | None, other: tuple[float, float] | None) -> bool:
    return one is not None and other is not None and one[0] - _PITCH < other[1] and other[0] - _PITCH < one[1]
