"""The best workflows of the gym's presets: for each family, and one for all questions; and whether they hold.

    python -m tests.benchmarks optimum                                   # the published optimum, as tables
    python -m tests.benchmarks.bench_optimum --price 1                   # lengths at a point for each step
    python -m tests.benchmarks.bench_optimum --preset gym/axes --search  # search again: about half an hour
    python -m tests.benchmarks.bench_optimum --preset gym/axes --climb 600  # hill climbing from elsewhere, 10 minutes
    python -m tests.benchmarks.bench_optimum --picture pictures          # the picture of docs/explanation/gym.md

All of it is simulated. Accuracies are in percent, on the frozen questions, with luck that no search has seen.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks.gym_climbing import hill_climbing
from tests.benchmarks.gym_optimum import publish
from tests.benchmarks.gym_search import MAX_STEPS, SAYS_NOTHING, Effort, search, search_questions, vocabulary
from wfdsl_rl.evaluation.plots import FAINT, colour_of, figure, save
from wfdsl_rl.gym.world.accuracy import Exam, Questions, expected_accuracy
from wfdsl_rl.gym.world.optimum import Optimum, optimum, workflow_of
from wfdsl_rl.gym.world.presets import PRESETS, Preset, preset_of

PUBLISHED = ("gym/axes", "gym/paper7")
SEEN, SEEN_OF_ALL, JUDGED = 1200, 250, 3600
"""Questions of a family that a search sees; that the search for one constant workflow sees; of a domain, judges'."""
OF_ALL = Effort(tried=100, finalists=4)
CLIMB_SEED = 9001
MARGIN = 0.01
"""Hill climbing may find this much more: its winners are the luckiest of many."""

console = Console(width=160)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--preset", action="append", choices=list(PRESETS), help="all that are published unless given")
    parser.add_argument("--price", type=float, default=0.2, help="of a step, in points")
    parser.add_argument("--search", action="store_true", help="search again, and publish what is found")
    parser.add_argument("--family", action="append", help="search, or climb, these only; '' is all questions alike")
    parser.add_argument("--climbs", type=int, default=1, help="of a search, from each of its starts")
    parser.add_argument("--silent", action="store_true", help="search without instructions, and do not publish")
    parser.add_argument(
        "--climb",
        type=float,
        metavar="SECONDS",
        help="hill climbing for so long, for each preset; publish what beats it",
    )
    parser.add_argument("--picture", type=Path, metavar="FOLDER", help="draw the optimum of gym/axes")
    given = parser.parse_args(arguments)
    if given.picture:
        draw(optimum("gym/axes"), preset_of("gym/axes"), given.picture)
        return
    for name in given.preset or PUBLISHED:
        if given.search or given.silent:
            searched(preset_of(name), given.family or (), silent=given.silent, climbs=given.climbs)
        if given.climb:
            climbed(preset_of(name), given.climb, given.family or ())
        if not given.silent:
            show(name, given.price)


def searched(preset: Preset, only: Sequence[str], *, silent: bool, climbs: int) -> None:
    """Search, print and publish; or only print what can be had without instructions."""
    seen, judges = search_questions(preset, SEEN), Exam(preset, JUDGED).families
    known = Optimum({}, {}) if silent else _published(preset.name)
    for family in only or [*judges, ""]:
        sets = [seen[family]] if family else [_first(one, SEEN_OF_ALL) for one in seen.values()]
        asked = [judges[family]] if family else list(judges.values())
        words = SAYS_NOTHING if silent else vocabulary(preset, family)
        began = time.perf_counter()
        before = known.families.get(family, {}) if family else known.constants
        effort = replace(Effort() if family else OF_ALL, climbs=climbs)
        found = search(sets, asked, words, effort=effort, known=before, seed=climbs)
        found = {n: max(before.get(n, one), one, key=lambda each: each.accuracy) for n, one in found.items()}
        shares = " ".join(f"{100 * one.accuracy:.1f}" for one in found.values())
        best = max(found.values(), key=lambda one: one.accuracy)
        console.print(
            f"{family or 'all questions'}: {shares} in {time.perf_counter() - began:.0f} s; {best}", markup=False
        )
        known = (
            Optimum({**known.families, family: found}, known.constants) if family else Optimum(known.families, found)
        )
        if not silent:
            publish(preset.name, known)
    if silent and not only:
        console.print(f"{preset.name} without instructions: mean over families {100 * known.accuracy():.1f}, "
                      f"with one workflow for all {100 * known.constant().accuracy:.1f}")  # fmt: skip


def draw(known: Optimum, preset: Preset, folder: Path) -> None:
    """For each family: the best step, the best constant workflow and the best workflow."""
    judges, constant = Exam(preset, JUDGED).families, workflow_of(known.constant().team)
    families = sorted(known.families, key=lambda family: known.families[family][1].accuracy)
    shown = {
        "best single step": [100 * known.families[family][1].accuracy for family in families],
        "best workflow for all questions": [
            100 * expected_accuracy(constant, judges[family]).value for family in families
        ],
        "best workflow for the family": [100 * one.accuracy for one in map(known.per_family().get, families) if one],
    }
    with figure(7.2, 4.4, simulated=True) as (drawn, (axes,)):
        for number, ((name, values), mark) in enumerate(zip(shown.items(), "|os", strict=True)):
            axes.plot(values, range(len(families)), mark, color=colour_of(number), label=name, markersize=7)
        for row in range(len(families)):
            ends = [values[row] for values in shown.values()]
            axes.plot(ends, [row] * len(ends), color=FAINT, linewidth=1, zorder=0)
        axes.set_yticks(range(len(families)), families)
        axes.set_xlabel("accuracy in %")
        axes.set_title("gym/axes: what a workflow is worth")
        axes.legend(loc="upper left", fontsize=8, frameon=False)
        folder.mkdir(parents=True, exist_ok=True)
        save(drawn, folder, "gym-axes")


def _before(until: float, _: int) -> bool:
    return time.perf_counter() < until


def _published(name: str) -> Optimum:
    try:
        return optimum(name)
    except (FileNotFoundError, KeyError):
        return Optimum({}, {})


def _first(questions: Questions, size: int) -> Questions:
    parts = questions.keys[:size], questions.base[..., :size], questions.blindness[:, :size]
    return Questions(questions.preset, questions.family, *parts, questions.shared_errors[:, :size])


def show(name: str, price: float) -> None:
    """The published optimum, as tables."""
    known = optimum(name)
    lengths = [str(length) for length in range(1, MAX_STEPS + 1)]
    table = Table("", *lengths, "best", "steps", "workflow", title=f"{name}: best found, by number of steps")
    for family, found in {**known.families, "all questions": known.constants}.items():
        best = known.constant(price) if family == "all questions" else known.per_family(price)[family]
        shares = [f"{100 * one.accuracy:.1f}" for one in found.values()]
        table.add_row(family, *shares, f"{100 * best.accuracy:.1f}", str(best.steps), str(best))
    best_of = known.per_family(price).values()
    steps = sum(one.steps for one in best_of) / len(best_of)
    table.add_row("mean of the domains", *[""] * len(lengths), f"{100 * known.accuracy(price):.1f}", f"{steps:.1f}", "")
    table.caption = f"simulated; best at a price of {price:g} points a step"
    console.print(table)


def climbed(preset: Preset, seconds: float, only: Sequence[str]) -> None:
    """Hill climbing for each family and for all questions; says where it beats what is published, and publishes it."""
    known, judges = optimum(preset.name), Exam(preset, JUDGED).families
    seen, families = search_questions(preset, SEEN, seed=CLIMB_SEED), only or [*judges, ""]
    for family in families:
        sets = [seen[family]] if family else [_first(one, SEEN_OF_ALL) for one in seen.values()]
        asked = [judges[family]] if family else list(judges.values())
        best = known.families[family] if family else known.constants
        most = max(one.accuracy for one in best.values())
        until = time.perf_counter() + seconds / len(families)
        found = hill_climbing(sets, asked, vocabulary(preset), partial(_before, until))
        verdict = "holds" if found.accuracy <= most + MARGIN else "IS BEATEN"
        console.print(f"{family or 'all questions'}: published {100 * most:.1f} {verdict}, climbed to "
                      f"{100 * found.accuracy:.1f} with {found}", markup=False)  # fmt: skip
        if found.accuracy > most + MARGIN:
            best[found.steps] = found
            publish(preset.name, known)


if __name__ == "__main__":
    main(sys.argv[1:])
