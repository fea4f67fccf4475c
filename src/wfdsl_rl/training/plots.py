"""Plots of a stage: reward and accuracy, steps per kind of question, worker share, topology mix; of one metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final, NamedTuple

from wfdsl.evaluation.plots import COLOURS, FAINT, colour_of, figure, save, svg_of
from wfdsl_rl.training.samples import Iteration

_WINDOW: Final = 5
"""Iterations that a point of a line is the mean of."""
_NAME_HEIGHT: Final = 0.045
"""The height of a worker's name, as a part of the axis."""
_LEADER: Final = {"arrowstyle": "-", "linewidth": 0.6, "shrinkA": 1, "shrinkB": 0, "relpos": (0, 0.5)}
_BESIDE: Final = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}


class _Canvas(NamedTuple):
    """Where plots go, and whether the workers are simulated, which every plot says."""

    folder: Path
    simulated: bool

    @contextmanager
    def plot(self, name: str, title: str, label: str, *, height: float = 3.8) -> Iterator[tuple[Any, Any]]:
        """A figure and its axes over iterations, which are saved as PNG and SVG."""
        with figure(7.2, height, simulated=self.simulated) as (drawn, (axes,)):
            axes.set_title(title)
            axes.set_xlabel("iteration")
            axes.set_ylabel(label)
            yield drawn, axes
            axes.xaxis.get_major_locator().set_params(integer=True)
            save(drawn, self.folder, name)


def draw_stage(
    iterations: Sequence[Iteration],
    held_out: Sequence[Iteration],
    folder: Path,
    *,
    alone: Mapping[str, float],
    names: Mapping[int, str],
    simulated: bool,
) -> None:
    """Draw the plots of a stage's iterations, except empty ones.

    Args:
        iterations: The training batches.
        held_out: The evaluations.
        folder: Where the plots go.
        alone: Each single worker's accuracy by its name.
        names: The workers' names by index.
        simulated: Whether the workers are simulated.

    Raises:
        UsageError: matplotlib is not installed.
    """
    if not iterations:
        return
    folder.mkdir(parents=True, exist_ok=True)
    canvas = _Canvas(folder, simulated)
    _draw_learning(canvas, iterations, held_out, alone, [names[index] for index in sorted(names)])
    _draw_steps(canvas, iterations)
    workers = {
        f"{index}: {name}": [_share(each.workers, index) for each in iterations] for index, name in names.items()
    }
    _draw_shares(canvas, iterations, "worker-share", "Share of calls by worker", workers)
    found = sorted({name for each in iterations for name in each.topologies})
    topologies = {name: [_share(each.topologies, name) for each in iterations] for name in found}
    _draw_shares(canvas, iterations, "topology-mix", "Share of valid workflows by topology", topologies)


class Means(NamedTuple):
    """Values over iterations."""

    at: Sequence[int]
    values: Sequence[float]
    errors: Sequence[float | None]
    """Standard errors; None where none is known."""


def running_means(at: Sequence[int], values: Sequence[float]) -> Means:
    """Means of the latest values, with the standard error that follows from how much these differ.

    Iterations ask different questions, so they are independent but for what is learned meanwhile. A mean is over a
    fortieth of all values, five at least, and at most 250 means are given, to the last value. Our choice.
    """
    window, stride = max(_WINDOW, len(values) // 40), max(1, -(-len(values) // 250))
    ends = range(len(values), 0, -stride)[::-1]
    parts = [values[max(0, end - window) : end] for end in ends]
    errors = [stdev(part) / sqrt(len(part)) if len(part) > 1 else None for part in parts]
    return Means([at[end - 1] for end in ends], [fmean(part) for part in parts], errors)


def curve_svg(
    label: str,
    trained: Means,
    held_out: Means,
    *,
    is_share: bool = False,
    alone: Mapping[str, float] | None = None,
    workers: Sequence[str] = (),
    simulated: bool = False,
) -> str:
    """A plot of one metric as SVG: a line with a band of one standard error, and points with error bars.

    `alone` has each single worker's value by its name, and `workers` are the names in the pool's order.

    Raises:
        UsageError: matplotlib is not installed.
    """
    with figure(4.8, 2.9, simulated=simulated) as (drawn, (axes,)):
        if trained.at:
            _draw_means(axes, trained, COLOURS[0], "training")
        if held_out.at:
            bars = [error or 0.0 for error in held_out.errors]
            options = {"fmt": "o--", "color": "#000000", "markersize": 3.5, "linewidth": 0.9, "elinewidth": 0.9}
            axes.errorbar(held_out.at, held_out.values, yerr=bars, label="held-out questions", **options)
        if alone:
            _draw_alone(axes, alone, workers)
        elif is_share:
            axes.set_ylim(*_limits(axes, ()))
        axes.set_xlabel("iteration")
        axes.set_ylabel(label)
        axes.xaxis.get_major_locator().set_params(integer=True)
        if len(axes.get_legend_handles_labels()[0]) > 1:
            drawn.legend(fontsize=7.5, loc="outside upper left", ncols=3, frameon=False)
        return svg_of(drawn)


def _draw_means(axes: Any, means: Means, colour: str, label: str) -> None:
    """A line of means in a band of one standard error."""
    errors = [error or 0.0 for error in means.errors]
    low, high = ([v + sign * e for v, e in zip(means.values, errors, strict=True)] for sign in (-1, 1))
    axes.fill_between(means.at, low, high, color=colour, alpha=0.25, linewidth=0)
    axes.plot(means.at, means.values, color=colour, linewidth=1.4, label=label)


def _means_of(iterations: Sequence[Iteration], values: Sequence[float | None]) -> Means:
    """Running means of the iterations that have a value."""
    known = [(each.step, value) for each, value in zip(iterations, values, strict=True) if value is not None]
    return running_means([step for step, _ in known], [value for _, value in known])


def _draw_learning(
    canvas: _Canvas,
    iterations: Sequence[Iteration],
    held_out: Sequence[Iteration],
    alone: Mapping[str, float],
    workers: Sequence[str],
) -> None:
    """Accuracy, and beside it what is measured in other units: the reward, and the share of valid completions."""
    with figure(11.0, 4.4, columns=2, simulated=canvas.simulated, share_y=False) as (drawn, (left, right)):
        for number, (name, values) in enumerate(_accuracies(iterations).items()):
            _draw_means(left, _means_of(iterations, values), COLOURS[number + 2], name)
        _draw_held_out(left, held_out)
        _draw_alone(left, alone, workers)
        left.set_title("Accuracy")
        left.set_ylabel("share of right answers")
        _draw_means(right, _means_of(iterations, [each.reward for each in iterations]), COLOURS[0], "mean reward")
        _draw_means(right, _means_of(iterations, [each.valid for each in iterations]), COLOURS[1], "valid completions")
        right.set_title("Reward and validity")
        right.set_ylabel("mean reward, or share of completions")
        right.set_ylim(-0.02, 1.05)
        for axes in (left, right):
            axes.set_xlabel("iteration (lines: running means and their standard error)")
            axes.xaxis.get_major_locator().set_params(integer=True)
        drawn.legend(fontsize=7.5, loc="outside upper left", ncols=3, columnspacing=4, frameon=False)
        save(drawn, canvas.folder, "learning")


def _accuracies(iterations: Sequence[Iteration]) -> dict[str, Sequence[float | None]]:
    """The lines of accuracy; a stage with second rounds has a line for each round."""
    if not any(2 in each.by_round for each in iterations):
        return {"accuracy, training questions": [each.accuracy for each in iterations]}
    return {
        "accuracy, first round": [each.by_round.get(1) for each in iterations],
        "accuracy, second round": [each.by_round.get(2) for each in iterations],
    }


def _draw_held_out(axes: Any, held_out: Sequence[Iteration]) -> None:
    """A point for each evaluation, with its standard error."""
    points = [
        (each.step, each.accuracy, sqrt(each.accuracy * (1 - each.accuracy) / each.count))
        for each in held_out
        if each.accuracy is not None
    ]
    if points:
        at, values, errors = zip(*points, strict=True)
        label = "accuracy, held-out questions, with its standard error"
        axes.errorbar(at, values, yerr=errors, fmt="o--", color="#000000", markersize=4, elinewidth=0.9, label=label)


def _draw_alone(axes: Any, alone: Mapping[str, float], workers: Sequence[str]) -> None:
    """A dotted line for each worker alone in its colour, and a thin line from its end to its name right of the axes."""
    by_accuracy = sorted(alone.items(), key=lambda item: item[1])
    bottom, top = _limits(axes, [accuracy for _, accuracy in by_accuracy])
    axes.set_ylim(bottom, top)
    heights = spread([accuracy for _, accuracy in by_accuracy], _NAME_HEIGHT * (top - bottom), top=top)
    for rank, ((name, accuracy), height) in enumerate(zip(by_accuracy, heights, strict=True)):
        label = None if rank else "each worker alone, held-out questions"
        colour = colour_of(workers.index(name)) if name in workers else FAINT
        axes.axhline(accuracy, color=colour, linewidth=0.9, linestyle=":", label=label)
        axes.annotate(
            f"{name} {100 * accuracy:.0f} %",
            (1.0, accuracy),
            xytext=(1.05, height),
            xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"),
            fontsize=7,
            va="center",
            color="#666666",
            arrowprops={**_LEADER, "color": colour},
        )


def _limits(axes: Any, more: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis of shares around what is drawn and some further values, with some room."""
    drawn = axes.dataLim
    values = [value for value in (drawn.y0, drawn.y1, *more) if isfinite(value)] or [0.0, 1.0]
    room = max(0.06 * (max(values) - min(values)), 0.02)
    return max(min(values) - room, -0.02), min(max(values) + room, 1.02)


def _draw_steps(canvas: _Canvas, iterations: Sequence[Iteration]) -> None:
    kinds = sorted({kind for each in iterations for kind in each.steps})
    if not kinds:
        return
    title = "Steps by kind of question (running means and their standard error)"
    with canvas.plot("steps-by-kind", title, "mean steps of valid workflows") as (_, axes):
        for number, kind in enumerate(kinds):
            means = _means_of(iterations, [each.steps.get(kind) for each in iterations])
            _draw_means(axes, means, colour_of(number), kind)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=7.5, **_BESIDE)


def _draw_shares(
    canvas: _Canvas,
    iterations: Sequence[Iteration],
    name: str,
    title: str,
    shares: Mapping[str, Sequence[float | None]],
) -> None:
    if not any(map(any, shares.values())):
        return
    with canvas.plot(name, title, f"share, mean of the last {_WINDOW}") as (_, axes):
        at = [each.step for each in iterations]
        stacked = [[value or 0.0 for value in smoothed(values)] for values in shares.values()]
        colours = [colour_of(number) for number in range(len(shares))]
        axes.stackplot(at, stacked, labels=list(shares), colors=colours)
        axes.set_ylim(0, 1)
        axes.set_xlim(at[0], max(at[-1], at[0] + 1))
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles[::-1], labels[::-1], fontsize=7.5, **_BESIDE)


def spread(values: Sequence[float], distance: float, *, top: float = 1.0) -> list[float]:
    """Ascending values, moved apart to a distance from each other, as little as can be, and not above the top."""
    groups: list[tuple[float, int]] = []  # the mean place of the first of some neighbours, and how many they are
    for place, value in enumerate(values):
        first, size = value - place * distance, 1
        while groups and groups[-1][0] >= first:
            before, count = groups.pop()
            first, size = (before * count + first * size) / (count + size), count + size
        groups.append((first, size))
    firsts = [first for first, size in groups for _ in range(size)]
    last = len(values) - 1
    return [min(first + place * distance, top - (last - place) * distance) for place, first in enumerate(firsts)]


def smoothed(values: Sequence[Any]) -> list[Any]:
    """The mean of each value and the few before it; None where there is none."""
    windows = [
        [value for value in values[max(0, at - _WINDOW + 1) : at + 1] if value is not None] for at in range(len(values))
    ]
    return [sum(window) / len(window) if window else None for window in windows]


def _share(counts: Mapping[Any, int], name: Any) -> float | None:
    """The share of one among all; None without any, so that means are not pulled down."""
    total = sum(counts.values())
    return counts.get(name, 0) / total if total else None
