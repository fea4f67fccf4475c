"""The plot of an evaluation: accuracy against cost, a point for each policy.

matplotlib is imported when it is drawn, and draws without a display. Source of the kind of plot: arXiv 2512.04388,
figure 5; how it is drawn is our choice.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl.evaluation.statistics import TWO_SIDED
from wfdsl.evaluation.summary import Summary, cost_in_usd
from wfdsl.installation import install_command

NAME: Final = "accuracy-against-cost"
_MARKS: Final = ("o", "^", "D", "v")
_COLOURS: Final = 10
_STYLE: Final[list[Any]] = [
    "tableau-colorblind10",
    {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#e4e4e4",
        "text.parse_math": False,  # names may hold dollars
        "svg.fonttype": "none",
        "svg.hashsalt": "wfdsl",
    },
]


def require_matplotlib() -> None:
    """Refuse to draw a plot without matplotlib, before work is done that is to be drawn.

    Raises:
        UsageError: it is not installed.
    """
    if find_spec("matplotlib") is None:
        raise UsageError(f"plots need matplotlib: {install_command('eval')}; or leave them out with --no-plots")


def draw_plot(summary: Summary, folder: Path) -> list[Path]:
    """Average accuracy against dollars per sample, or tokens where a price is not known, as PNG and SVG; gives the
    files.

    Raises:
        UsageError: matplotlib is not installed.
    """
    require_matplotlib()
    import matplotlib.style  # noqa: PLC0415  (large, and only plots need it)
    from matplotlib.figure import Figure  # noqa: PLC0415

    in_usd, paths = cost_in_usd(summary.policies), [folder / f"{NAME}.{form}" for form in ("png", "svg")]
    with matplotlib.style.context(_STYLE):
        drawn = Figure(figsize=(8.4, 5.6), layout="constrained")
        axes = drawn.subplots()
        for number, policy in enumerate(summary.policies):
            if policy.average is not None:
                mark = "s" if policy.policy.startswith("worker:") else _MARKS[number // _COLOURS % len(_MARKS)]
                accuracy, error = 100 * policy.average.value, 100 * TWO_SIDED * (policy.average.error or 0.0)
                cost = policy.cost(in_usd=in_usd)
                axes.errorbar(cost, accuracy, yerr=error, fmt=mark, elinewidth=0.8, label=policy.policy)
        axes.set_xlabel("US dollars per sample, by the price list" if in_usd else "tokens per sample")
        axes.set_ylabel("average accuracy in %, with its 95 % interval")
        axes.set_title("Accuracy against cost")
        if summary.simulated:
            drawn.supxlabel("simulated workers: these figures say nothing about real models", fontsize=7.5)
        if axes.has_data():
            axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=7.5)
        drawn.savefig(paths[0], dpi=160, metadata={"Software": None})
        drawn.savefig(paths[1], metadata={"Date": None})
    return paths
