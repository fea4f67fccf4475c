"""The plots of an evaluation: accuracy against cost, bars per benchmark, worker share, steps per kind of task.

matplotlib is imported when the first plot is drawn, and draws without a display. Source of the kinds of plots:
arXiv 2512.04388, figures 5 and 8; how they are drawn is our choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from io import StringIO
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl.evaluation.point_labels import Point, label_points
from wfdsl.evaluation.series import Series, series_of
from wfdsl.evaluation.summary import PolicySummary, Summary
from wfdsl.evaluation.workflow_statistics import WorkflowStatistics
from wfdsl.installation import install_command


def draw_plots(summary: Summary, folder: Path, *, workers: Sequence[str] = ()) -> list[Path]:
    """Draw what there is to draw, as PNG and SVG; gives the files.

    `workers` are the names of the pool's workers in its order: each has the same colour in all plots of the pool.

    Raises:
        UsageError: matplotlib is not installed.
    """
    if not summary.policies:
        return []
    return [
        *draw_accuracy_against_cost(summary, folder),
        *draw_benchmarks(summary, folder),
        *draw_worker_share(summary, folder, workers),
        *draw_steps(summary, folder),
    ]


def draw_accuracy_against_cost(summary: Summary, folder: Path) -> list[Path]:
    """A point for each policy: average accuracy against dollars per sample, or tokens where a price is not known."""
    shown = [policy for policy in summary.policies if policy.average is not None]
    if not shown:
        return []
    in_usd = all(policy.list_usd is not None for policy in shown) and any(policy.list_usd for policy in shown)
    with figure(8.4, 5.6, simulated=summary.simulated) as (drawn, (axes,)):
        found = {policy.policy: policy for policy in shown}
        points = [
            point
            for number, series in enumerate(series_of(found))
            for point in _draw_series(axes, series, [found[name] for name in series.policies], number, in_usd=in_usd)
        ]
        steps = _draw_frontier(axes, points)
        _draw_best_worker(axes, [point for point in points if point.name.startswith("worker:")])
        _spread(axes, [point.x for point in points], unit="$" if in_usd else "")
        axes.set_xlabel("US dollars per sample, by the price list" if in_usd else "tokens per sample")
        axes.set_ylabel("average accuracy in %, with its standard error")
        axes.set_title(_titled("Accuracy against cost", summary))
        axes.margins(x=0.12, y=0.1)
        axes.set_ylim(_at_least(axes.get_ylim(), 10.0))
        label_points(drawn, axes, points, lines=steps)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="best", fontsize=7.5, frameon=False)
        return save(drawn, folder, "accuracy-against-cost")


def _draw_series(
    axes: Any, series: Series, policies: Sequence[PolicySummary], number: int, *, in_usd: bool
) -> list[Point]:
    """The points of policies that differ in one thing, joined by a line; the most expensive has the name of them all.

    Efforts have a name each: they are few, and what they are called says what a point means.
    """
    points = []
    for policy in policies:
        assert policy.average is not None  # those without one are not shown
        x = (policy.list_usd or 0.0) if in_usd else policy.tokens
        y, error = 100 * policy.average.value, 100 * (policy.average.error or 0.0)
        points.append(Point(x, y, policy.policy, error))
    points.sort()
    fmt, colour = _mark(policies[0], number), colour_of(number)
    at, heights = [point.x for point in points], [point.y for point in points]
    axes.errorbar(at, heights, yerr=[point.error for point in points], fmt=fmt, color=colour, elinewidth=0.8)
    if len(points) > 1:
        axes.plot(at, heights, color=colour, linewidth=0.8, zorder=1.5)
        by_effort = series.name.endswith("@...")
        cheaper = [point._replace(name=point.name.rpartition("@")[2] if by_effort else "") for point in points[:-1]]
        points = [*cheaper, points[-1] if by_effort else points[-1]._replace(name=series.name)]
    return points


def frontier(points: Sequence[Point]) -> list[Point]:
    """The points that no other point beats, at no more cost, from the cheapest to the best."""
    found: list[Point] = []
    for point in sorted(points, key=lambda each: (each.x, -each.y)):
        if not found or point.y > found[-1].y:
            found.append(point)
    return found


def _draw_frontier(axes: Any, points: Sequence[Point]) -> list[tuple[Point, Point]]:
    """A line of steps through the frontier; gives the ends of its parts."""
    best = frontier(points)
    corners = [Point(after.x, before.y, "") for before, after in pairwise(best)]
    line = [each for pair in zip_longest(best, corners) for each in pair if each is not None]
    if len(line) > 1:
        label = "the best for their cost (Pareto frontier)"
        at, heights = [point.x for point in line], [point.y for point in line]
        axes.plot(at, heights, color=FAINT, linewidth=1.0, linestyle="--", label=label, zorder=1)
    return list(pairwise(line))


def _draw_best_worker(axes: Any, workers: Sequence[Point]) -> None:
    if workers:
        best = max(workers, key=lambda point: point.y)
        axes.axhline(best.y, color=FAINT, linewidth=0.8, linestyle=":", label="the best worker alone", zorder=1)


def draw_benchmarks(summary: Summary, folder: Path) -> list[Path]:
    """Bars for each policy, a panel for each benchmark, with standard errors."""
    names = [policy.policy for policy in summary.policies]
    panels = summary.benchmarks
    size = (max(2.6 + 1.7 * len(panels), 5.0), _height(len(names)))
    with figure(*size, columns=len(panels), simulated=summary.simulated) as (drawn, axes):
        for panel, (each, benchmark) in enumerate(zip(axes, panels, strict=True)):
            found = [policy.benchmarks[benchmark] for policy in summary.policies]
            values = [100 * (accuracy.value or 0.0) for accuracy in found]
            errors = [100 * (accuracy.error or 0.0) for accuracy in found]
            each.barh(names, values, xerr=errors, color=COLOURS[panel % len(COLOURS)], height=0.72, ecolor="#444444")
            for row, (accuracy, value, error) in enumerate(zip(found, values, errors, strict=True)):
                text = "none judged" if accuracy.value is None else f"{value:.1f}"
                each.text(min(value + error, 100) + 1.5, row, text, va="center", fontsize=7)
            each.set_xlim(0, 118)
            each.set_xticks([0, 25, 50, 75, 100])
            each.grid(visible=False, axis="y")
            each.set_title(benchmark)
        axes[0].set_ylim(len(names) - 0.5, -0.5)
        drawn.suptitle(_titled("Accuracy in %, with its standard error", summary), fontsize=11, fontweight="bold")
        return save(drawn, folder, "accuracy-by-benchmark")


def draw_worker_share(summary: Summary, folder: Path, workers: Sequence[str] = ()) -> list[Path]:
    """A bar for each policy: which part of the answers each worker gave; `workers` are in the pool's order."""
    shown = [policy for policy in summary.policies if policy.workers]
    if not shown:
        return []
    shares = {policy.policy: _shares(policy.workers) for policy in shown}
    title = "Share of workers' answers"
    return _stacked(shares, folder, "worker-share", title=title, simulated=summary.simulated, order=workers)


def draw_steps(summary: Summary, folder: Path) -> list[Path]:
    """A row for each policy: steps per sample in each domain."""
    names = [policy.policy for policy in summary.policies]
    domains = list(dict.fromkeys(name for policy in summary.policies for name in policy.steps_by_domain))
    with figure(7.2, _height(len(names)), simulated=summary.simulated) as (drawn, (axes,)):
        for number, domain in enumerate(domains):
            rows = [row for row, policy in enumerate(summary.policies) if domain in policy.steps_by_domain]
            values = [policy.steps_by_domain[domain] for policy in summary.policies if domain in policy.steps_by_domain]
            # Next to each other, so that domains with as many steps do not hide each other.
            shifted = [row + 0.16 * (number - (len(domains) - 1) / 2) for row in rows]
            colour = colour_of(number)
            axes.plot(values, shifted, "o", markersize=5, color=colour, label=domain)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("steps per sample")
        axes.set_title(_titled("Steps by kind of task", summary))
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
        return save(drawn, folder, "steps-by-domain")


def draw_strategies(strategies: Mapping[str, WorkflowStatistics], folder: Path, *, simulated: bool) -> list[Path]:
    """Topologies, numbers of steps and roles of sets of workflows; gives the files.

    Raises:
        UsageError: matplotlib is not installed.
    """
    shown = {name: found for name, found in strategies.items() if found.workflows}
    if not shown:
        return []
    topologies = {name: _shares(found.topologies) for name, found in shown.items()}
    steps = {
        name: _shares({str(steps): count for steps, count in found.steps.items()}) for name, found in shown.items()
    }
    return [
        *_stacked(topologies, folder, "strategy-topologies", title="Topology of workflows", simulated=simulated),
        *_stacked(steps, folder, "strategy-steps", title="Live steps of workflows", simulated=simulated),
        *_draw_roles(shown, folder, simulated=simulated),
    ]


def _draw_roles(strategies: Mapping[str, WorkflowStatistics], folder: Path, *, simulated: bool) -> list[Path]:
    names = list(strategies)
    roles = list(next(iter(strategies.values())).roles_by_structure)
    with figure(9.0, _height(len(names)), columns=len(roles), simulated=simulated) as (drawn, axes):
        for each, role in zip(axes, roles, strict=True):
            for shift, label, colour in ((-0.19, "by structure", COLOURS[0]), (0.19, "by wording", COLOURS[1])):
                values = [_role_share(found, role, label) for found in strategies.values()]
                each.barh([row + shift for row in range(len(names))], values, 0.36, color=colour, label=label)
            each.set_xlim(0, 100)
            each.grid(visible=False, axis="y")
            each.set_title(role)
        axes[0].set_yticks(range(len(names)), names)
        axes[0].set_ylim(len(names) - 0.5, -0.5)
        drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
        title = f"Workflows with a step of the role, in %{' (simulated)' if simulated else ''}"
        drawn.suptitle(title, fontsize=11, fontweight="bold")
        return save(drawn, folder, "strategy-roles")


def _role_share(found: WorkflowStatistics, role: Any, label: str) -> float:
    counts = found.roles_by_structure if label == "by structure" else found.roles_by_wording
    return 100 * counts.get(role, 0) / found.workflows


def _stacked(
    shares: Mapping[str, Mapping[str, float]],
    folder: Path,
    name: str,
    *,
    title: str,
    simulated: bool,
    order: Sequence[str] = (),
) -> list[Path]:
    """Rows of stacked shares with one legend; the parts of `order` come first, and their places set their colours."""
    others = sorted({part for each in shares.values() for part in each} - set(order), key=_natural)
    parts = [*order, *others]
    rows = list(shares)
    with figure(8.2, _height(len(rows)), simulated=simulated) as (drawn, (axes,)):
        left = [0.0] * len(rows)
        for number, part in enumerate(parts):
            widths = [100 * shares[row].get(part, 0.0) for row in rows]
            hatch = "///" if number >= len(COLOURS) else None
            label = part if any(widths) else None
            axes.barh(
                rows,
                widths,
                left=left,
                color=colour_of(number),
                label=label,
                height=0.72,
                hatch=hatch,
                edgecolor="white",
            )
            left = [before + width for before, width in zip(left, widths, strict=True)]
        axes.set_xlim(0, 100)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("%")
        axes.set_title(f"{title} (simulated)" if simulated else title)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
        return save(drawn, folder, name)


def _shares(counts: Mapping[str, int]) -> dict[str, float]:
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}


def _natural(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdecimal() else (0, text)


def _titled(title: str, summary: Summary) -> str:
    return f"{title} (simulated)" if summary.simulated else title


def _mark(policy: PolicySummary, number: int) -> str:
    """Single workers are squares; other marks change where the colours begin again, so that no two are alike."""
    return "s" if policy.policy.startswith("worker:") else _MARKS[number // len(COLOURS) % len(_MARKS)]


def colour_of(number: int) -> str:
    """The colour of a place in an order."""
    return COLOURS[number % len(COLOURS)]


def _spread(axes: Any, values: Sequence[float], *, unit: str) -> None:
    """Plain numbers on the axis of costs, and a logarithmic one where costs differ by more than a factor of ten."""
    if min(values) <= 0 or max(values) / min(values) <= 10:
        axes.xaxis.set_major_formatter(lambda value, _: f"{unit}{value:,.6g}")
        return
    axes.set_xscale("log")
    axes.xaxis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
    axes.xaxis.set_major_formatter(lambda value, _: f"{unit}{value:,.6g}")
    axes.xaxis.set_minor_formatter(lambda *_: "")


def _at_least(ends: tuple[float, float], span: float) -> tuple[float, float]:
    """The ends of an axis in per cent, not closer than a span, and not far outside of what there can be."""
    missing = max(span - (ends[1] - ends[0]), 0.0) / 2
    return max(ends[0] - missing, -2.0), min(ends[1] + missing, 102.0)


def _height(rows: int) -> float:
    return 1.5 + 0.27 * max(rows, 2)


COLOURS: Final = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#6A3D9A", "#7F7F7F"),
    *("#8C564B", "#1B9E77", "#A6761D"),
)
"""Okabe and Ito's palette, which colour-blind readers can tell apart, and three more colours."""
FAINT: Final = "#8a8a8a"
"""What points are compared with."""
_MARKS: Final = ("o", "^", "D", "v")
_STYLE: Final[Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "text.parse_math": False,  # names may hold dollars
    "svg.fonttype": "none",
    "svg.hashsalt": "wfdsl",
}
_SIMULATED: Final = "simulated workers: these figures say nothing about real models"
_DPI: Final = 160


def require_matplotlib() -> None:
    """Refuse to draw plots without matplotlib, before work is done that is to be drawn.

    Raises:
        UsageError: it is not installed.
    """
    if find_spec("matplotlib") is None:
        raise UsageError(f"plots need matplotlib: {install_command('eval')}; or leave them out with --no-plots")


@contextmanager
def figure(
    width: float, height: float, *, columns: int = 1, simulated: bool, share_y: bool = True
) -> Iterator[tuple[Any, Any]]:
    """A figure with axes side by side, in inches; closed after the block.

    Raises:
        UsageError: matplotlib is not installed.
    """
    require_matplotlib()
    import matplotlib as mpl  # noqa: PLC0415  (large, and only plots need it)
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context(_STYLE):
        drawn = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
        FigureCanvasAgg(drawn)
        axes = drawn.subplots(1, columns, sharey=share_y, squeeze=False)[0]
        if simulated:
            drawn.supxlabel(_SIMULATED, fontsize=7.5, color="#a03000", x=0.01, ha="left")
        yield drawn, axes


def save(drawn: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG, and as SVG that follows the reader's light or dark setting."""
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    drawn.savefig(paths[0], dpi=_DPI, metadata={"Software": None})
    paths[1].write_text(svg_of(drawn), encoding="utf-8")
    return paths


def svg_of(drawn: Any) -> str:
    """A figure as SVG that follows the reader's light or dark setting."""
    text = StringIO()
    drawn.savefig(text, format="svg", metadata={"Date": None})
    return with_dark_colours(text.getvalue())


def with_dark_colours(svg: str) -> str:
    """The SVG of a plot with a style sheet for dark pages. matplotlib writes colours into each element's style."""
    return svg.replace("<defs>", f'<style id="dark">{_DARK}</style>\n <defs>', 1)


_DARK: Final = """@media (prefers-color-scheme:dark){
text:not([style*="fill:"]){fill:#e6e9ef}
[style*="fill: #ffffff"]{fill:#16191f!important}
[style*="stroke: #000000"]{stroke:#e6e9ef!important}
[style*="stroke: #000000"]:not([style*="fill:"]){fill:#e6e9ef}
[style*="stroke: #e4e4e4"]{stroke:#39404c!important}
[style*="stroke: #444444"]{stroke:#b9c0cc!important}
[style*="fill: #a03000"]{fill:#ff9d70!important}
[style*="fill: #666666"]{fill:#a3acbb!important}
}"""
