"""The best workflows of the gym's presets: for each family of questions, and one for all; and whether they hold.

    python -m tests.benchmarks optimum                                   # the published optimum, as tables
    python -m tests.benchmarks.bench_optimum --price 1                   # lengths at a point for each step
    python -m tests.benchmarks.bench_optimum --preset gym/axes --climb 600 --seed 5  # hill climbing, 10 minutes
    python -m tests.benchmarks.bench_optimum --preset gym/axes --search --publish    # search again: half an hour

What is found is compared with the published optimum on fresh questions; --publish writes what is better there. Each
seed has questions and randomness of its own. All of it is simulated. Accuracies are in percent; those of the published
optimum are on the frozen questions, with randomness that no search has seen.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks.gym_climbing import hill_climbing
from tests.benchmarks.gym_optimum import best_of, difference, publish, published, teams_in
from tests.benchmarks.gym_search import SAYS_NOTHING, Effort, judged, questions_of, search, vocabulary
from wfdsl import load
from wfdsl.errors import UsageError
from wfdsl.language.tree import ALL
from wfdsl_rl.gym.world.accuracy import Exam, Questions
from wfdsl_rl.gym.world.optimum import MAX_STEPS, Found, Optimum, Team, optimum
from wfdsl_rl.gym.world.presets import PRESETS, Preset, preset_of

PUBLISHED = ("gym/axes", "gym/paper7")
SEEN, SEEN_OF_ALL, FRESH, JUDGED = 1200, 250, 3600, 3600
"""Questions of a family that a search sees; that one for all families sees; that compare; of a domain, frozen ones."""
SEARCH_SERIES, FRESH_SERIES, CLIMB_SERIES = 7001, 8001, 9001
"""Of questions, for seed 0. The frozen ones are another."""
OF_ALL = Effort(tried=100, finalists=4)
MARGIN = 0.01
"""Nothing that is found may be better than the published optimum by more than this."""

console = Console(width=160)


def main(arguments: Sequence[str] = ()) -> None:
    parser = _parser()
    given = parser.parse_args(arguments)
    for name in given.preset or PUBLISHED:
        try:
            if given.silent:
                without_instructions(preset_of(name), given)
            elif given.search or given.climb:
                look_for_better(preset_of(name), given)
            else:
                show(name, given.price)
        except UsageError as error:
            parser.error(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--preset", action="append", choices=list(PRESETS), help="all that are published unless given")
    parser.add_argument("--price", type=float, default=0.2, help="of a step, in points")
    parser.add_argument("--search", action="store_true", help="search, also from what is published")
    parser.add_argument("--climb", type=float, metavar="SECONDS", help="hill climbing: processor time for a preset")
    parser.add_argument("--seed", type=int, default=0, help="of a search or climb: questions, randomness and starts")
    parser.add_argument("--publish", action="store_true", help="write what is better on fresh questions")
    parser.add_argument("--family", action="append", help="search, or climb, these only; '' is all questions alike")
    parser.add_argument("--climbs", type=int, default=1, help="of a search, from each of its starts")
    parser.add_argument(
        "--start", type=Path, action="append", metavar="FILE", help="workflow that a search begins with"
    )
    parser.add_argument("--silent", action="store_true", help="search without instructions, and publish nothing")
    return parser


def look_for_better(preset: Preset, given: argparse.Namespace) -> None:
    """Search or climb; say what is better than the published optimum on fresh questions, and publish it if told."""
    known, frozen = published(preset.name), Exam(preset, JUDGED).families
    series = CLIMB_SERIES if given.climb else SEARCH_SERIES
    seen = questions_of(preset, SEEN, seed=series + given.seed)
    fresh = questions_of(preset, FRESH, seed=FRESH_SERIES + given.seed)
    families = given.family or [*frozen, ""]
    starts = [_team_in(path, preset) for path in given.start or ()]
    for family in families:
        before, words = teams_in(known, family), vocabulary(preset, family)
        sets, asked = _asked(seen, family, SEEN_OF_ALL), _asked(fresh, family)
        if given.climb:
            until = time.process_time() + given.climb / len(families)
            climbed = hill_climbing(sets, asked, words, partial(_before, until), seed=given.seed)
            found = {climbed.steps: climbed}
        else:
            found = _searched(sets, asked, words, [*before, *starts], given, of_all=not family)
        console.print(f"{family or 'all questions'}: {_verdict(found, before, asked)}", markup=False)
        if given.publish:
            teams = [*before, *(one.team for one in found.values())]
            publish(preset.name, family, best_of(teams, asked, _asked(frozen, family)))


def _verdict(found: Mapping[int, Found], before: Sequence[Team], asked: Sequence[Questions]) -> str:
    best = _best(found.values())
    if not before:
        return f"found {100 * best.accuracy:.1f} with {best}"
    known = _best([judged(team, asked) for team in before])
    more, error = difference(best.team, known.team, asked)
    verdict = "holds" if more <= MARGIN else "IS BEATEN"
    return (
        f"published {100 * known.accuracy:.1f} {verdict}, found {100 * more:+.1f} ± {100 * error:.1f} "
        f"on fresh questions with {best}"
    )


def _best(found: Iterable[Found]) -> Found:
    return max(found, key=lambda one: one.accuracy)


def without_instructions(preset: Preset, given: argparse.Namespace) -> None:
    """What can be had if every step is told the same, which says nothing."""
    seen, frozen = questions_of(preset, SEEN, seed=SEARCH_SERIES + given.seed), Exam(preset, JUDGED).families
    best: dict[str, Found] = {}
    for family in given.family or [*frozen, ""]:
        sets, asked = _asked(seen, family, SEEN_OF_ALL), _asked(frozen, family)
        best[family] = _best(_searched(sets, asked, SAYS_NOTHING, (), given, of_all=not family).values())
        console.print(f"{family or 'all questions'}: {100 * best[family].accuracy:.1f}; {best[family]}", markup=False)
    if not given.family:
        constant = best.pop("")
        mean = Optimum.mean({family: one.accuracy for family, one in best.items()})
        console.print(f"{preset.name} without instructions: mean over families {100 * mean:.1f}, "
                      f"with one workflow for all {100 * constant.accuracy:.1f}")  # fmt: skip


def _searched(
    sets: Sequence[Questions],
    judges: Sequence[Questions],
    words: tuple[str, ...],
    starts: Sequence[Team],
    given: argparse.Namespace,
    *,
    of_all: bool,
) -> dict[int, Found]:
    effort = replace(OF_ALL if of_all else Effort(), climbs=given.climbs)
    return search(sets, judges, words, effort=effort, starts=starts, seed=given.seed)


def _team_in(path: Path, preset: Preset) -> Team:
    """The workflow in a file."""
    workflow = load(path, pool=len(preset.members))
    views = [range(at) if step.access == ALL else step.access for at, step in enumerate(workflow)]
    return tuple((int(step.worker), step.subtask, tuple(view)) for step, view in zip(workflow, views, strict=True))


def _asked(questions: Mapping[str, Questions], family: str, size: int | None = None) -> list[Questions]:
    """The questions of a family, or with '' the first ones of all families."""
    return [questions[family]] if family else [_first(one, size) for one in questions.values()]


def _before(until: float, _: int) -> bool:
    return time.process_time() < until


def _first(questions: Questions, size: int | None) -> Questions:
    parts = questions.keys[:size], questions.base[..., :size], questions.blindness[:, :size]
    return Questions(questions.preset, questions.family, *parts, questions.shared_errors[:, :size])


def show(name: str, price: float) -> None:
    """The published optimum, as tables."""
    known = optimum(name)
    lengths = [str(length) for length in range(1, MAX_STEPS + 1)]
    table = Table("", *lengths, "best", "steps", "workflow", title=f"{name}: best found, by most steps")
    for family, found in {**known.families, "all questions": known.constants}.items():
        best = known.constant(price) if family == "all questions" else known.per_family(price)[family]
        shares = [f"{100 * one.accuracy:.1f}" for one in found.values()]
        table.add_row(family, *shares, f"{100 * best.accuracy:.1f}", str(best.steps), str(best))
    best_of = known.per_family(price).values()
    steps = sum(one.steps for one in best_of) / len(best_of)
    table.add_row("mean of the domains", *[""] * len(lengths), f"{100 * known.accuracy(price):.1f}", f"{steps:.1f}", "")
    table.caption = f"simulated; best at a price of {price:g} points a step"
    console.print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
