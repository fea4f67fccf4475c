"""How trainings on the gym went: the exact value of each iteration's workflows, by kind of question.

`python docs/pictures/gym_training.py FOLDER... --out curves.svg` draws the stage `base` of one or several trainings.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

import wfdsl
from wfdsl_rl.gym.optimum import MAX_STEPS, optimum, right_chance
from wfdsl_rl.gym.questions import KINDS, Kind
from wfdsl_rl.gym.world import WORKERS

_WINDOW: Final = 5
"""Iterations that are averaged."""


def values(folder: Path) -> dict[Kind, list[float]]:
    """By kind, the mean chance of a right answer of an iteration's completions; invalid and cut ones are worth 0."""
    found: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
    for file in sorted((folder / "base" / "samples").glob("step-*.jsonl.gz")):
        of_kind: dict[Kind, list[float]] = defaultdict(list)
        for line in gzip.decompress(file.read_bytes()).splitlines():
            row = json.loads(line)
            of_kind[row["domain"]].append(_value(row, row["domain"]))
        for kind in KINDS:
            found[kind].append(fmean(of_kind[kind]))
    return found


def _value(row: dict[str, object], kind: Kind) -> float:
    if row["workflow"] is None:
        return 0.0
    workflow = wfdsl.analyze(str(row["completion"]), pool=len(WORKERS), max_steps=MAX_STEPS).workflow
    return 0.0 if workflow is None else right_chance(workflow, kind)


def smoothed(series: Sequence[float]) -> list[float]:
    """Means of the last `_WINDOW` values."""
    return [fmean(series[max(0, at + 1 - _WINDOW) : at + 1]) for at in range(len(series))]


def main() -> None:
    """Draw the curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="of `wfdsl-train gym`, one a seed")
    parser.add_argument("--out", type=Path, default=Path("curves.svg"))
    args = parser.parse_args()
    from matplotlib import rcParams  # noqa: PLC0415  (large, and only the picture needs it)
    from matplotlib.figure import Figure  # noqa: PLC0415

    rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "wfdsl"})
    drawn = Figure(figsize=(9, 2.6), layout="constrained")
    panels = drawn.subplots(1, len(KINDS), sharey=True)
    single = optimum(1)
    for folder in args.folders:
        for axes, series in zip(panels, values(folder).values(), strict=True):
            axes.plot(range(1, len(series) + 1), smoothed(series), linewidth=1.2)
    for axes, kind in zip(panels, KINDS, strict=True):
        axes.axhline(single.by_kind[kind][0], color="#8a8a8a", linewidth=0.8, linestyle="--")
        axes.set(title=kind, xlabel="iteration", ylim=(0, 1))
    panels[0].set_ylabel("chance of a right answer")
    drawn.supxlabel("simulated workers; dashed: the best single call", fontsize=7.5, color="#a03000", x=0.01, ha="left")
    drawn.savefig(args.out, metadata={"Date": None} if args.out.suffix == ".svg" else None)


if __name__ == "__main__":
    main()
