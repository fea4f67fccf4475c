"""Places for boxes and lines in rows from top to bottom, so that no line runs through a box (Sugiyama's method).

It is our own because grandalf and pyelk are GPL/EPL, and fast-sugiyama is compiled and does not keep siblings in order.

Rows are waves of execution. A line that spans several rows gets a narrow lane in each row between, and lines that
share a source or a target share their lanes. Positions solve, row by row, a least-squares problem that pulls
neighbours above each other and keeps the distances within a row.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple, TypeAlias

# Our choice, all of them, from looking at pictures.
_SWEEPS = 32
_UPRIGHT = (64.0, 0.1, 8.0)  # how much a line wants to be upright: between boxes, at a lane's end, within a lane
_ANCHOR = 0.1  # how much a box that only lanes lead to wants to stay where its row is centred


class Lane(NamedTuple):
    """Where a bundle of lines passes through a row; a bundle is what leaves one box, or what arrives at one."""

    end: Literal["from", "to"]
    box: int
    row: int


Spot: TypeAlias = int | Lane
"""A place in a row: a box, by its number, or a lane."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Rows of spots from left to right, the centre of each on the x axis, and each line's spots from top to bottom."""

    rows: tuple[tuple[Spot, ...], ...]
    x: Mapping[Spot, float]
    lines: Mapping[tuple[int, int], tuple[Spot, ...]]
    row_of: Mapping[Spot, int]


def place(
    edges: Sequence[tuple[int, int]], widths: Sequence[float], *, lane: float, gap: float, row_length: int
) -> Layout:
    """Lay out boxes whose edges all lead from a lower number to a higher one.

    `widths` are those of the boxes, `lane` that of a lane, `gap` the distance between boxes; at most `row_length` boxes
    share a row, because wider pictures cannot be read. Time: O(n^2) for n boxes and lanes in the worst case.
    """
    row = _rows(edges, len(widths), row_length=row_length)
    lines = _lines(edges, row)
    above, below = _neighbours(lines.values())
    rows = _untangled(_initial(row, lines.values()), above, below)
    sizes = _Sizes(widths, lane, gap)
    x = _positions(rows, above, below, sizes)
    left = min((x[spot] - sizes.of(spot) / 2 for spot in x), default=0.0)
    row_of = {spot: number for number, spots in enumerate(rows) for spot in spots}
    return Layout(tuple(map(tuple, rows)), {spot: place - left for spot, place in x.items()}, lines, row_of)


def _rows(edges: Iterable[tuple[int, int]], count: int, *, row_length: int) -> list[int]:
    """The row of each box: below all that it depends on, and one further down where a row is full."""
    sources = defaultdict(list)
    for source, target in edges:
        sources[target].append(source)
    filled: Counter[int] = Counter()
    rows: list[int] = []
    for box in range(count):
        row = max((rows[source] + 1 for source in sources[box]), default=0)
        while filled[row] >= row_length:
            row += 1
        filled[row] += 1
        rows.append(row)
    return rows


def _lines(edges: Sequence[tuple[int, int]], row: Sequence[int]) -> dict[tuple[int, int], tuple[Spot, ...]]:
    long = [(source, target) for source, target in edges if row[target] - row[source] > 1]
    leaving = Counter(source for source, _ in long)
    arriving = Counter(target for _, target in long)
    return {
        (source, target): (
            source,
            *(
                Lane("to", target, passed) if arriving[target] > leaving[source] else Lane("from", source, passed)
                for passed in range(row[source] + 1, row[target])
            ),
            target,
        )
        for source, target in edges
    }


def _neighbours(
    lines: Iterable[tuple[Spot, ...]],
) -> tuple[dict[Spot, list[Spot]], dict[Spot, list[Spot]]]:
    segments = dict.fromkeys(segment for line in lines for segment in pairwise(line))
    above: dict[Spot, list[Spot]] = defaultdict(list)
    below: dict[Spot, list[Spot]] = defaultdict(list)
    for upper, lower in segments:
        above[lower].append(upper)
        below[upper].append(lower)
    return above, below


def _initial(row: Sequence[int], lines: Iterable[tuple[Spot, ...]]) -> list[list[Spot]]:
    rows: list[list[Spot]] = [[] for _ in range(max(row, default=-1) + 1)]
    for box, at in enumerate(row):
        rows[at].append(box)
    for lane in dict.fromkeys(spot for line in lines for spot in line if isinstance(spot, Lane)):
        rows[lane.row].insert(len(rows[lane.row]) // 2, lane)  # a bundle in the middle divides a row evenly
    return rows


def _untangled(
    rows: list[list[Spot]], above: Mapping[Spot, Sequence[Spot]], below: Mapping[Spot, Sequence[Spot]]
) -> list[list[Spot]]:
    """Sort each row by the mean place of its neighbours, down and up in turn; keep the order with fewest crossings."""
    best, fewest = rows, _crossings(rows, below)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        rows = _sorted_down(rows, above) if sweep % 2 == 0 else _sorted_down(rows[::-1], below)[::-1]
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _sorted_down(rows: Sequence[list[Spot]], previous: Mapping[Spot, Sequence[Spot]]) -> list[list[Spot]]:
    done: list[list[Spot]] = []
    at: dict[Spot, int] = {}
    for row in rows:
        own = {spot: place for place, spot in enumerate(row)}
        wish = {spot: _mean([at[other] for other in previous.get(spot, ())], own[spot]) for spot in row}
        done.append(sorted(row, key=lambda spot: (wish[spot], own[spot])))
        at = {spot: place for place, spot in enumerate(done[-1])}
    return done


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else float(default)


def _crossings(rows: Sequence[Sequence[Spot]], below: Mapping[Spot, Sequence[Spot]]) -> int:
    at = {spot: place for row in rows for place, spot in enumerate(row)}
    return sum(
        _inversions([place for spot in row for place in sorted(at[low] for low in below.get(spot, ()))]) for row in rows
    )


def _inversions(places: Sequence[int]) -> int:
    seen: list[int] = []
    total = 0
    for place in places:
        total += len(seen) - bisect_right(seen, place)
        insort(seen, place)
    return total


class _Sizes(NamedTuple):
    widths: Sequence[float]
    lane: float
    gap: float

    def of(self, spot: Spot) -> float:
        return self.lane if isinstance(spot, Lane) else self.widths[spot]

    def apart(self, left: Spot, right: Spot) -> float:
        """The least distance between the centres of two neighbours in a row; lanes lie close together."""
        both_lanes = isinstance(left, Lane) and isinstance(right, Lane)
        return self.lane if both_lanes else (self.of(left) + self.of(right)) / 2 + self.gap


def _positions(
    rows: Sequence[Sequence[Spot]],
    above: Mapping[Spot, Sequence[Spot]],
    below: Mapping[Spot, Sequence[Spot]],
    sizes: _Sizes,
) -> dict[Spot, float]:
    """Each row in turn goes where its neighbours want it, as nearly as the distances within the row allow."""
    x: dict[Spot, float] = {}
    centred: dict[Spot, float] = {}
    for row in rows:
        boxes = _boxes(row)
        centred.update(zip(boxes, _centred(boxes, sizes), strict=True))
        x.update(zip(row, _centred(row, sizes), strict=True))
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wishes = [_wishes(spot, above.get(spot, ()), below.get(spot, ()), x) for spot in row]
            anchors = [(centred.get(spot, x[spot]), _ANCHOR) for spot in row]
            pulls = [_balance(wish or [anchor]) for wish, anchor in zip(wishes, anchors, strict=True)]
            x.update(zip(row, _spread(pulls, _offsets(row, sizes)), strict=True))
    return x


def _offsets(row: Sequence[Spot], sizes: _Sizes) -> list[float]:
    """Where each spot of a row is if all are as close as allowed and the first is at 0."""
    return list(accumulate((sizes.apart(left, right) for left, right in pairwise(row)), initial=0.0))[: len(row)]


def _centred(row: Sequence[Spot], sizes: _Sizes) -> list[float]:
    offsets = _offsets(row, sizes)
    return [offset - offsets[-1] / 2 for offset in offsets]


def _wishes(
    spot: Spot, above: Sequence[Spot], below: Sequence[Spot], x: Mapping[Spot, float]
) -> list[tuple[float, float]]:
    """Where its neighbours want a spot, and how strongly.

    A box follows the boxes above it, so that chains are straight and joins stand centred below what they join, else
    those below it; a lane follows all its neighbours.
    """
    for others in [[*above, *below]] if isinstance(spot, Lane) else [_boxes(above), _boxes(below)]:
        if others:
            return [(x[other], _UPRIGHT[isinstance(spot, Lane) + isinstance(other, Lane)]) for other in others]
    return []


def _boxes(spots: Sequence[Spot]) -> list[Spot]:
    return [spot for spot in spots if not isinstance(spot, Lane)]


def _balance(wishes: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The weighted mean of several wishes."""
    total = sum(pull for _, pull in wishes)
    return sum(at * pull for at, pull in wishes) / total, total


def _spread(pulls: Sequence[tuple[float, float]], offsets: Sequence[float]) -> list[float]:
    """The places nearest to the wishes, in weighted squares, that are no closer than the offsets.

    With the offsets taken off this is isotonic regression, which pooling adjacent violators solves exactly.
    """
    pools: list[tuple[float, float, int]] = []  # place without offset, weight, how many spots
    for (wish, weight), offset in zip(pulls, offsets, strict=True):
        pool = (wish - offset, weight, 1)
        while pools and pools[-1][0] >= pool[0]:
            place, heavier, size = pools.pop()
            total = heavier + pool[1]
            pool = ((place * heavier + pool[0] * pool[1]) / total, total, size + pool[2])
        pools.append(pool)
    places = [place for place, _, size in pools for _ in range(size)]
    return [place + offset for place, offset in zip(places, offsets, strict=True)]
