"""A language model as a Conductor: valid and right without a grammar, stage by stage, on fresh gym questions.

    python -m tests.benchmarks.bench_language_model FOLDER...             # models that `wfdsl-train` has left

All of it is simulated. Nothing is asked again and nothing falls back: an invalid completion is wrong. Intervals are of
95 %; differences to the best worker are paired by question.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from tests.benchmarks.bench_conductor import best_alone, marks_of
from tests.benchmarks.writing import Writer
from wfdsl import Pool
from wfdsl.conductor.listing import WorkerListing
from wfdsl.evaluation.baselines.random_policies import random_workflow
from wfdsl_rl import gym

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.bench_conductor import Marks

PRESET, QUESTIONS, SERIES, NORMAL = "gym/paper7", 200, 135, 1.96
"""The gym, how many questions of which series (training has others), and the normal quantile of 95 %."""


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="*", type=Path, help="models, stage after stage")
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--series", type=int, default=SERIES)
    parser.add_argument("--temperature", type=float, nargs="*", default=[0.0])
    given = parser.parse_args(arguments)
    tasks, pool = gym.make(PRESET, given.questions, seed=given.series), Pool.load(PRESET)
    chance = random.Random(given.series)
    best = marks_of(tasks, [best_alone(pool.indices, PRESET)] * len(tasks), PRESET)
    drawn = marks_of(tasks, [random_workflow(chance, pool.indices, max_steps=3) for _ in tasks], PRESET)
    table = Table("", "valid", "accuracy", "over the best worker", "steps")
    table.add_row("best worker alone", *_row(best, best))
    table.add_row("random workflow of 1 to 3 steps", *_row(drawn, best))
    for folder in given.folder:
        writer = Writer(folder, given.series)
        for temperature in given.temperature:
            written = writer.workflows(tasks, [WorkerListing.of(pool)] * len(tasks), temperature)
            table.add_row(f"{folder}, T = {temperature:g}", *_row(marks_of(tasks, written, PRESET), best))
    console = Console(width=140)
    console.print(f"{PRESET}, {len(tasks)} questions of series {given.series}. Everything is simulated.")
    console.print(table)


def _row(marks: Marks, best: Marks) -> list[str]:
    mean, error = marks.accuracy()
    above, apart = marks.above(best)
    low, high = wilson(sum(marks.valid), len(marks.valid))
    return [
        f"{statistics.mean(marks.valid):.1%} ({low:.1%} to {high:.1%})",
        f"{mean:.1f} ± {NORMAL * error:.1f}",
        f"{above:+.1f} ({above - NORMAL * apart:+.1f} to {above + NORMAL * apart:+.1f})",
        f"{statistics.mean(marks.calls):.2f}" if marks.calls else "-",
    ]


def wilson(right: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share. Source: Wilson 1927."""
    share, square = right / count, NORMAL**2 / count
    middle, half = share + square / 2, NORMAL * math.sqrt(share * (1 - share) / count + square / (4 * count))
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))


if __name__ == "__main__":
    main(sys.argv[1:])
