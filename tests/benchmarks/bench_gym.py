"""The gym's known figures: workers, baselines, random workflows, second rounds; and its speed.

Run with `python -m tests.benchmarks gym`; `optimum` has the best workflows. All of it is simulated: nothing here
measures a real model. Accuracies are expected shares of right answers, in percent, over the frozen questions; only the
randomness of calls is drawn, and the largest standard error of a table is printed with it.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table

from tests.benchmarks.gym_search import Effort, search, vocabulary
from tests.benchmarks.gym_second_round import second_round
from tests.benchmarks.gym_teams import random_teams, team
from wfdsl import Pool, Workflow, run
from wfdsl_rl.gym import make
from wfdsl_rl.gym.world.accuracy import Accuracy, Exam, expected_accuracy, mean_of
from wfdsl_rl.gym.world.optimum import workflow_of
from wfdsl_rl.gym.world.presets import PRESETS, Preset, preset_of
from wfdsl_rl.gym.world.profiles import DOMAINS, PROFILES
from wfdsl_rl.gym.world.questions import USUAL_TOKENS
from wfdsl_rl.gym.world.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


LENGTHS = (1, 2, 3, 4, 5)
SEARCHED, RANDOM_TEAMS, RUNS = 1200, 150, 3000
"""Questions of a domain that the search looks at; random workflows of each length; runs that are timed."""
PAPER = {"5x context, best": 67.60, "5x self-reflection, best": 64.52, "MoA": 62.13}
"""Averages. Source: arXiv 2512.04388, controlled setting."""
TARGET_RUNS_PER_MINUTE = 10_000
QUICK = Effort(kept=1, tried=60, climbs=1, exact=0)
"""Of the search for first rounds."""

console = Console(width=140)


def main() -> None:
    console.print("[bold]The gym. Everything below is simulated.")
    for preset in PRESETS.values():
        console.rule(f"{preset.name}, version {preset.version}, {preset.content_hash}: simulated")
        figures_of(preset)
    speed()


def figures_of(preset: Preset) -> None:
    exam, small = Exam(preset), Exam(preset, SEARCHED)
    workers(preset, exam)
    baselines(preset, exam)
    random_workflows(preset, small)
    if preset.members == preset_of("gym/paper7").members:
        second_rounds(preset)


def percent(accuracy: Accuracy) -> str:
    return f"{100 * accuracy.value:.2f}"


def table(title: str, *columns: str) -> Table:
    made = Table(title=title, title_justify="left")
    for column in columns:
        made.add_column(column, justify="left" if column in {"", "workflow", "workflows"} else "right")
    return made


def add(made: Table, name: str, accuracies: Sequence[Accuracy], *more: str) -> float:
    mean = sum(accuracy.value for accuracy in accuracies) / len(accuracies)
    made.add_row(name, *map(percent, accuracies), f"{100 * mean:.2f}", *more)
    return mean


def caption(made: Table, accuracies: Iterable[Accuracy]) -> None:
    made.caption = f"simulated; standard error at most {100 * max(one.error for one in accuracies):.2f}"
    console.print(made)


def workers(preset: Preset, exam: Exam) -> None:
    made, every = table("Single calls (fitted)", "", *DOMAINS, "mean", "largest miss"), []
    for index, agent in enumerate(preset.members):
        found = exam.accuracies(team("S", (index,)), draws=64)
        wanted = [preset.accuracy(agent, domain) for domain in DOMAINS]
        miss = max(abs(one.value - share) for one, share in zip(found, wanted, strict=True))
        add(made, PROFILES[agent].name, found, f"{100 * miss:.2f}")
        every += found
    caption(made, every)


def baselines(preset: Preset, exam: Exam) -> None:
    made, every = table("Baselines", "", *DOMAINS, "mean", "paper"), []
    indices = range(len(preset.members))
    for name, chosen in groups(indices).items():
        found = [(exam.accuracies(one, max_tokens=tokens), who) for one, tokens, who in chosen]
        best, who = max(found, key=lambda pair: sum(one.value for one in pair[0]))
        paper = f"{PAPER[name]:.2f}" if preset.members == preset_of("gym/paper7").members and name in PAPER else ""
        add(made, f"{name} ({who})", best, paper)
        every += best
    caption(made, every)


def groups(indices: range) -> dict[str, list[tuple[Workflow, int, str]]]:
    """Each baseline with the workers that it may have: the best counts, but for those of three roles."""
    first, second, third = list(indices)[:3]
    long = 5 * USUAL_TOKENS
    return {
        "one worker, best": [(team("S", (w,)), USUAL_TOKENS, str(w)) for w in indices],
        "5x context, best": [(team("S", (w,)), long, str(w)) for w in indices],
        "5x self-reflection, best": [(team("SVVVV", (w,) * 5), USUAL_TOKENS, str(w)) for w in indices],
        "5x consensus, best": [(team("SSSSSA", (w,) * 6), USUAL_TOKENS, str(w)) for w in indices],
        "MoA": [(team("S" * len(indices) + "A", (*indices, first)), USUAL_TOKENS, f"aggregator {first}")],
        "MoA of three": [(team("SSSA", (first, second, third, first)), USUAL_TOKENS, f"aggregator {first}")],
        "two attempts, judge": [(team("SSA", (first, second, third)), USUAL_TOKENS, f"judge {third}")],
        "plan, solve, verify": [
            (team("PSV", (second, first, third)), USUAL_TOKENS, f"{second}, {first}, {third}"),
        ],
    }


def random_workflows(preset: Preset, exam: Exam) -> None:
    made = table("Random well-formed workflows", "", *DOMAINS, "mean")
    for length in LENGTHS:
        teams = list(random_teams(length, len(preset.members), RANDOM_TEAMS, 1))
        shares = [
            [expected_accuracy(one, each, draws=1) for one in teams for each in exam.questions[domain]]
            for domain in DOMAINS
        ]
        add(made, f"{length} step{'s' * (length > 1)}", [mean_of(found) for found in shares])
    made.caption = f"simulated; {RANDOM_TEAMS} workflows of each length"
    console.print(made)


def second_rounds(preset: Preset) -> None:
    """First rounds are the best for each domain: on gym/shifted those of gym/paper7, as one trained there would do."""
    name = "gym/paper7" if preset.shifts else preset.name
    trained, tried = Exam(preset_of(name), SEARCHED).questions, Exam(preset, SEARCHED).questions
    found = {
        domain: search(trained[domain], trained[domain], vocabulary(preset), effort=QUICK, longest=4)
        for domain in DOMAINS
    }
    made = table("A second round, by what the first round's final reply shows", "", "first round", "always revised",
                 "revised where it pays", "revised")  # fmt: skip
    for length in (1, 2, 3, 4):
        rounds = [second_round(workflow_of(found[domain][length].team), tried[domain], draws=4) for domain in DOMAINS]
        means = [np.mean([getattr(one, each) for one in rounds]) for each in ("first", "always", "best", "revised")]
        made.add_row(
            f"best {f'{length} steps' if length > 1 else 'step'} of {name}",
            *(f"{100 * mean:.1f}" for mean in means),
        )
    made.caption = "simulated; chosen on half of the questions, judged on the other half; less than twice the calls"
    console.print(made)


def speed() -> None:
    """Runs of three steps in this process, through the interpreter and without texts."""
    tasks, workflow = make("gym/paper7", 400, 1), team("PSV", (0, 2, 1))
    through = asyncio.run(_timed(workflow, [task.question for task in tasks]))
    preset, began = preset_of("gym/paper7"), time.perf_counter()
    for number in range(RUNS):
        simulate(workflow, tasks[number % len(tasks)].question, preset, sample_id=str(number))
    without_us = (time.perf_counter() - began) / RUNS * 1e6
    verdict = "meets" if through >= TARGET_RUNS_PER_MINUTE else "MISSES"
    console.print(f"{through:,.0f} runs of three steps a minute through wfdsl.run in one process ({verdict} the target "
                  f"of {TARGET_RUNS_PER_MINUTE:,}); {without_us:.0f} us a run without texts")  # fmt: skip


async def _timed(workflow: Workflow, questions: Sequence[str]) -> float:
    pool = Pool.load("gym/paper7")
    asked = [questions[number % len(questions)] for number in range(RUNS)]
    await asyncio.gather(*(run(workflow, question, pool) for question in questions))
    began = time.perf_counter()
    await asyncio.gather(*(run(workflow, question, pool) for question in asked))
    return RUNS / (time.perf_counter() - began) * 60
