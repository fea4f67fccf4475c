"""Names at the points of a plot, where they hide neither each other nor a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import hypot
from typing import Any, Final, NamedTuple

_DIRECTIONS: Final = ((1, 0), (0, 1), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))
_DISTANCES: Final = (6, 13, 22, 34, 48)


class Point(NamedTuple):
    """A point with a name."""

    x: float
    y: float
    name: str
    error: float = 0.0
    """Half the length of its error bar, on the y axis."""


def label_points(drawn: Any, axes: Any, points: Sequence[Point], *, lines: Sequence[tuple[Point, Point]] = ()) -> None:
    """Write a name at each point that has one, where it hides neither another name nor a point, and nearest to its own.

    Names far off get a thin line. `lines` are the ends of upright and level lines that no name may hide either.
    """
    drawn.canvas.draw()
    at = [axes.transData.transform((point.x, point.y)) for point in points]
    taken: list[Any] = [box for point in points for box in _around(axes, point)]
    taken += [_along(axes, start, end) for start, end in lines]
    for (x, y, name, _), place in sorted(zip(points, at, strict=True), key=lambda pair: -pair[1][1]):
        if not name:
            continue
        written = axes.annotate(name, (x, y), xytext=(0, 0), textcoords="offset points", fontsize=7.5, zorder=5)
        (right, up, offset), box = _best_place(drawn, axes, written, taken, [place, *at])
        written.set(position=offset, ha=_ALIGNED[right], va=_ALIGNED_UP[up])
        taken.append(box)
        if max(map(abs, offset)) > _DISTANCES[0]:
            axes.annotate(
                "",
                (x, y),
                xytext=_nearest(box, place, drawn),
                textcoords="offset points",
                arrowprops={"arrowstyle": "-", "color": "#777777", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3},
            )


_ALIGNED: Final = {1: "left", 0: "center", -1: "right"}
_ALIGNED_UP: Final = {1: "bottom", 0: "center", -1: "top"}


def _best_place(
    drawn: Any, axes: Any, written: Any, taken: list[Any], places: Sequence[Any]
) -> tuple[tuple[int, int, tuple[float, float]], Any]:
    """Where a label covers least, and then where no other point is much nearer to it than its own.

    `places` are those of all points, its own first. Gives its direction and offset in points, and the box that it fills
    there, in pixels.
    """
    scale, frame = drawn.dpi / 72, axes.get_window_extent()
    best: Any = None
    for distance, (right, up) in product(_DISTANCES, _DIRECTIONS):
        offset = (distance * right, distance * up)
        written.set(position=offset, ha=_ALIGNED[right], va=_ALIGNED_UP[up])
        box = written.get_window_extent(drawn.canvas.get_renderer()).padded(scale)
        covered = sum(_overlap(box, other) for other in taken) + 4 * _outside(box, frame)
        own, *others = [hypot(*_to_box(box, place)) for place in places]
        cost = (covered, max([1.0, *(own / max(other, 1.0) for other in others)]))
        if best is None or cost < best[0]:
            best = (cost, (right, up, offset), box)
        if cost == (0, 1):
            break
    return best[1], best[2]


def _nearest(box: Any, place: Any, drawn: Any) -> tuple[float, float]:
    """The point of a label's box that is nearest to its point, as an offset from the point, in points."""
    scale = drawn.dpi / 72
    x, y = _to_box(box, place)
    return x / scale, y / scale


def _to_box(box: Any, place: Any) -> tuple[float, float]:
    """From a point to what is nearest to it in a box, in pixels."""
    x, y = place
    return min(max(x, box.x0), box.x1) - x, min(max(y, box.y0), box.y1) - y


def _around(axes: Any, point: Point) -> Iterator[Any]:
    """What a point fills, in pixels: its mark, and its error bar."""
    from matplotlib.transforms import Bbox  # noqa: PLC0415  (large, and only plots need it)

    x, y = axes.transData.transform((point.x, point.y))
    reach = axes.transData.transform((point.x, point.y + point.error))[1] - y
    yield Bbox.from_extents(x - 9, y - 9, x + 9, y + 9)
    yield Bbox.from_extents(x - 1, y - reach, x + 1, y + reach)


def _along(axes: Any, start: Point, end: Point) -> Any:
    """What a line fills, in pixels."""
    from matplotlib.transforms import Bbox  # noqa: PLC0415  (large, and only plots need it)

    (left, low), (right, high) = axes.transData.transform([(start.x, start.y), (end.x, end.y)])
    return Bbox.from_extents(min(left, right) - 2, min(low, high) - 2, max(left, right) + 2, max(low, high) + 2)


def _overlap(one: Any, other: Any) -> float:
    width = float(min(one.x1, other.x1) - max(one.x0, other.x0))
    height = float(min(one.y1, other.y1) - max(one.y0, other.y0))
    return max(width, 0.0) * max(height, 0.0)


def _outside(box: Any, frame: Any) -> float:
    return float(box.width * box.height - _overlap(box, frame))
