"""The plots of an evaluation: accuracy against cost, worker share, and the strategies of workflows.

matplotlib is imported when the first plot is drawn, and draws without a display. Source of the kinds of plots:
arXiv 2512.04388, figures 5 and 8; how they are drawn is our choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl.evaluation.statistics import TWO_SIDED
from wfdsl.evaluation.summary import Summary
from wfdsl.evaluation.workflow_statistics import WorkflowStatistics
from wfdsl.installation import install_command

COLOURS: Final = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#6A3D9A", "#7F7F7F"),
    *("#8C564B", "#1B9E77", "#A6761D"),
)
"""Okabe and Ito's palette, which colour-blind readers can tell apart, and three more colours."""
_MARKS: Final = ("o", "^", "D", "v")
_STYLE: Final[Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
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


def draw_plots(summary: Summary, folder: Path, *, workers: Sequence[str] = ()) -> list[Path]:
    """Draw what there is to draw, as PNG and SVG; gives the files.

    `workers` are the names of the pool's workers in its order: each has the same colour in all plots of the pool.

    Raises:
        UsageError: matplotlib is not installed.
    """
    shares = {policy.policy: _shares(policy.workers) for policy in summary.policies if policy.workers}
    return [
        *draw_accuracy_against_cost(summary, folder),
        *_stacked(
            shares, folder, "worker-share", "Share of workers' answers", simulated=summary.simulated, first=workers
        ),
    ]


def draw_accuracy_against_cost(summary: Summary, folder: Path) -> list[Path]:
    """A point for each policy: average accuracy against dollars per sample, or tokens where a price is not known."""
    shown = [policy for policy in summary.policies if policy.average is not None]
    if not shown:
        return []
    in_usd = all(policy.list_usd is not None for policy in shown) and any(policy.list_usd for policy in shown)
    with _figure(8.4, 5.6, simulated=summary.simulated) as (drawn, axes):
        for number, policy in enumerate(shown):
            assert policy.average is not None  # those without one are not shown
            mark = "s" if policy.policy.startswith("worker:") else _MARKS[number // len(COLOURS) % len(_MARKS)]
            cost = (policy.list_usd or 0.0) if in_usd else policy.tokens
            accuracy, error = 100 * policy.average.value, 100 * TWO_SIDED * (policy.average.error or 0.0)
            colour = COLOURS[number % len(COLOURS)]
            axes.errorbar(cost, accuracy, yerr=error, fmt=mark, color=colour, elinewidth=0.8, label=policy.policy)
        axes.set_xlabel("US dollars per sample, by the price list" if in_usd else "tokens per sample")
        axes.set_ylabel("average accuracy in %, with its 95 % interval")
        axes.set_title(_titled("Accuracy against cost", simulated=summary.simulated))
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=7.5)
        return _save(drawn, folder, "accuracy-against-cost")


def draw_strategies(strategies: Mapping[str, WorkflowStatistics], folder: Path, *, simulated: bool) -> list[Path]:
    """Topologies and numbers of steps of sets of workflows; gives the files.

    Raises:
        UsageError: matplotlib is not installed.
    """
    shown = {name: found for name, found in strategies.items() if found.workflows}
    topologies = {name: _shares(found.topologies) for name, found in shown.items()}
    steps = {name: _shares({str(key): found.steps[key] for key in found.steps}) for name, found in shown.items()}
    return [
        *_stacked(topologies, folder, "strategy-topologies", "Topology of workflows", simulated=simulated),
        *_stacked(steps, folder, "strategy-steps", "Live steps of workflows", simulated=simulated),
    ]


def _stacked(
    rows: Mapping[str, Mapping[str, float]],
    folder: Path,
    name: str,
    title: str,
    *,
    simulated: bool,
    first: Sequence[str] = (),
) -> list[Path]:
    """Rows of stacked shares with one legend; the parts of `first` come first, and their places set their colours."""
    if not rows:
        return []
    others = sorted(
        {part for shares in rows.values() for part in shares} - set(first), key=lambda part: (len(part), part)
    )
    with _figure(8.2, 1.5 + 0.27 * max(len(rows), 2), simulated=simulated) as (drawn, axes):
        left = [0.0] * len(rows)
        for number, part in enumerate((*first, *others)):
            widths = [100 * shares.get(part, 0.0) for shares in rows.values()]
            if any(widths):
                colour = COLOURS[number % len(COLOURS)]
                axes.barh(list(rows), widths, left=left, color=colour, label=part, height=0.72, edgecolor="white")
            left = [before + width for before, width in zip(left, widths, strict=True)]
        axes.set_xlim(0, 100)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("%")
        axes.set_title(_titled(title, simulated=simulated))
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
        return _save(drawn, folder, name)


def _shares(counts: Mapping[str, int]) -> dict[str, float]:
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}


def _titled(title: str, *, simulated: bool) -> str:
    return f"{title} (simulated)" if simulated else title


@contextmanager
def _figure(width: float, height: float, *, simulated: bool) -> Iterator[tuple[Any, Any]]:
    """A figure with its axes, sizes in inches."""
    require_matplotlib()
    import matplotlib as mpl  # noqa: PLC0415  (large, and only plots need it)
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context(_STYLE):
        drawn = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
        FigureCanvasAgg(drawn)
        if simulated:
            drawn.supxlabel(_SIMULATED, fontsize=7.5, color="#a03000", x=0.01, ha="left")
        yield drawn, drawn.subplots()


def _save(drawn: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG, and as SVG that follows the reader's light or dark setting."""
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    drawn.savefig(paths[0], dpi=_DPI, metadata={"Software": None})
    text = StringIO()
    drawn.savefig(text, format="svg", metadata={"Date": None})
    # matplotlib writes colours into each element's style
    svg = text.getvalue().replace("<defs>", f'<style id="dark">{_DARK}</style>\n <defs>', 1)
    paths[1].write_text(svg, encoding="utf-8")
    return paths


_DARK: Final = """@media (prefers-color-scheme:dark){
text:not([style*="fill:"]){fill:#e6e9ef}
[style*="fill: #ffffff"]{fill:#16191f!important}
[style*="stroke: #000000"]{stroke:#e6e9ef!important}
[style*="stroke: #e4e4e4"]{stroke:#39404c!important}
[style*="fill: #a03000"]{fill:#ff9d70!important}
}"""
