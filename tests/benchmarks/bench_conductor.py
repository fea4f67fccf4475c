"""A Conductor on held-out gym questions: accuracy, validity, calls, steps by family, and pools it has not seen.

    python -m tests.benchmarks conductor                                  # the Conductor of gym/paper7 that ships
    python -m tests.benchmarks.bench_conductor gym/axes                   # that of gym/axes, at each effort
    python -m tests.benchmarks.bench_conductor gym/axes FOLDER...         # checkpoints

All of it is simulated. Questions have wordings that no training has shown; the luck of calls is averaged over
`LUCK` draws for each completion, and standard errors are those of the mean over the questions. Nothing is asked again
and nothing falls back: an invalid completion is wrong.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from tests.benchmarks.domains import mean_over_domains
from tests.benchmarks.writing import Writer
from wfdsl import Pool, Step, Workflow
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.effort import EFFORTS
from wfdsl.conductor.listing import WorkerListing
from wfdsl.conductor.named import conductor_name
from wfdsl.graph import graph_of
from wfdsl_rl import gym
from wfdsl_rl.gym.checkpoints import load
from wfdsl_rl.gym.world.optimum import optimum, workflow_of
from wfdsl_rl.gym.world.presets import preset_of
from wfdsl_rl.gym.world.profiles import DOMAINS
from wfdsl_rl.gym.world.simulate import simulate
from wfdsl_rl.training.data import Draw

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wfdsl.tasks.task import Task

QUESTIONS, SUBSET_QUESTIONS, SEED, LUCK = 4000, 2000, 77, 4
"""How many questions, of which series (training has others), and draws of luck for each completion."""
RANDOM = {"gym/paper7": 57.5, "gym/axes": 52.9}
"""Random well-formed workflows, the mean over lengths. Measured on the two presets."""
PRICES = {"": 0.2, "minimal": 4.0, "low": 2.0, "medium": 1.0, "high": 0.2}
"""Points for a step, at which the optimum is as long as a Conductor with this effort should be: those of training, and
of lengths that are nearly as good the shorter."""
UNSEEN = Draw(pick=(2, 3, 4, 5, 6), shuffle=True, held_out=0.25, unseen=True, seed=SEED)

console = Console(width=140)


@dataclass(slots=True)
class Marks:
    """The results of a policy on some questions."""

    right: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Shares of right answers over luck, by domain."""
    steps: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Steps of valid workflows, by family."""
    calls: list[int] = field(default_factory=list)
    valid: list[bool] = field(default_factory=list)

    def add(self, task: Task, workflow: Workflow | None, preset: str) -> None:
        """Play a workflow on a task; None counts as wrong."""
        self.valid.append(workflow is not None)
        plays = [] if workflow is None else [_right(workflow, task, preset, draw) for draw in range(LUCK)]
        self.right[task.kind].append(statistics.mean(plays) if plays else 0.0)
        if workflow is not None:
            self.steps[str(task.metadata["family"])].append(len(workflow))
            self.calls.append(len(graph_of(workflow).live))

    def accuracy(self) -> tuple[float, float]:
        """The mean over the domains in percent, and its standard error."""
        return mean_over_domains(self.right)

    def above(self, other: Marks) -> tuple[float, float]:
        """The difference to another policy's on the same questions, paired, in points; and its standard error."""
        pairs: dict[str, list[float]] = {
            domain: [one - two for one, two in zip(self.right[domain], other.right[domain], strict=True)]
            for domain in DOMAINS
        }
        return mean_over_domains(pairs)

    def rank_correlation(self, enough: Mapping[str, int]) -> float:
        """Spearman's, of the mean steps by family with those that are enough."""
        families = sorted(enough)
        mine = [statistics.mean(self.steps[family] or [0]) for family in families]
        return statistics.correlation(_ranks(mine), _ranks([enough[family] for family in families]))


def _ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value; equal ones share the mean of theirs."""
    places = sorted(values)
    return [places.index(value) + (places.count(value) - 1) / 2 for value in values]


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("preset", nargs="?", default="gym/paper7", choices=list(RANDOM))
    parser.add_argument(
        "folder", nargs="*", type=Path, help="checkpoints; the Conductor that ships for the preset unless given"
    )
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--series", type=int, default=SEED)
    given = parser.parse_args(arguments)
    preset = given.preset
    tasks, pool = gym.make(preset, given.questions, seed=given.series), Pool.load(preset)
    console.print(
        f"[bold]{preset}, {len(tasks)} questions of held-out wordings, series {given.series}. Everything is simulated."
    )
    known = optimum(preset)
    alone = marks_of(tasks, [best_alone(pool.indices, preset)] * len(tasks), preset)
    constant = marks_of(tasks, [workflow_of(known.constant().team)] * len(tasks), preset)
    families = {family: workflow_of(one.team) for family, one in known.per_family().items()}
    best = marks_of(tasks, [families[str(task.metadata["family"])] for task in tasks], preset)
    table = Table("", *DOMAINS, "mean", "valid", "calls", "of the way", "steps and optimum", "over the best constant")
    for name, marks in {
        "best worker alone": alone, "best constant workflow": constant, "best workflow per family": best
    }.items():  # fmt: skip
        table.add_row(*_row(name, marks, preset, ""), "")
    subsets = []
    for folder in given.folder or [trained_for(pool)]:
        writer = Writer(folder, given.series)
        asked = product(EFFORTS, (0.0,)) if writer.prompt.says_effort else product((None,), (0.0, 1.0))
        for effort, temperature in asked:
            written = writer.workflows(tasks, [WorkerListing.of(pool)] * len(tasks), temperature, effort)
            marks = marks_of(tasks, written, preset)
            name = ", ".join([str(folder), *filter(None, [effort]), f"T = {temperature:g}"])
            table.add_row(*_row(name, marks, preset, effort or ""), "{:+.1f} ± {:.1f}".format(*marks.above(constant)))
        subsets.append(_on_subsets(writer, tasks[:SUBSET_QUESTIONS], pool))
    console.print(table)
    console.print(
        f"of the way: from random workflows ({RANDOM[preset]}) to the best per family ({100 * known.accuracy():.1f}); "
        "steps and optimum: Spearman's correlation by family, at the effort's price"
    )
    _print_subsets(subsets)


def trained_for(pool: Pool) -> Path:
    """The folder of the Conductor that ships for a pool."""
    return load(conductor_name(ConductorConfig(), pool))


def best_alone(workers: Iterable[int], preset: str) -> Workflow:
    """The most accurate of some workers on all domains, alone."""
    known = preset_of(preset)
    worker = max(workers, key=lambda each: sum(known.accuracy(known.members[each], domain) for domain in DOMAINS))
    return Workflow((Step(worker, "Solve it.", ()),))


def marks_of(tasks: Sequence[Task], workflows: Sequence[Workflow | None], preset: str) -> Marks:
    marks = Marks()
    for task, workflow in zip(tasks, workflows, strict=True):
        marks.add(task, workflow, preset)
    return marks


def _row(name: str, marks: Marks, preset: str, effort: str) -> list[str]:
    mean, error = marks.accuracy()
    domains = [f"{100 * statistics.mean(marks.right[domain]):.1f}" for domain in DOMAINS]
    known = optimum(preset)
    way = f"{(mean - RANDOM[preset]) / (100 * known.accuracy() - RANDOM[preset]):.0%}"
    same = len({steps for each in marks.steps.values() for steps in each}) == 1
    enough = {family: one.steps for family, one in known.per_family(PRICES[effort]).items()}
    ranks = "" if same else f"{marks.rank_correlation(enough):+.2f}"
    valid = f"{statistics.mean(marks.valid):.2%}"
    return [name, *domains, f"{mean:.1f} ± {error:.1f}", valid, f"{statistics.mean(marks.calls):.2f}", way, ranks]


def _right(workflow: Workflow, task: Task, preset: str, draw: int) -> bool:
    return simulate(workflow, task.question, preset_of(preset), sample_id=f"conductor {draw}").right


def _on_subsets(writer: Writer, tasks: Sequence[Task], pool: Pool) -> tuple[str, Marks, Marks]:
    """A Conductor and the best worker of each subset, on subsets that were held out."""
    offers = unseen_offers(pool, len(tasks))
    effort = EFFORTS[-1] if writer.prompt.says_effort else None
    written = writer.workflows(tasks, offers, 0.0, effort)
    return str(writer.folder), marks_of(tasks, written, pool.name), alone_in(offers, tasks, pool.name)


def unseen_offers(pool: Pool, count: int) -> list[WorkerListing]:
    """Subsets of a pool that no training has offered, under shuffled indices."""
    return [UNSEEN.offer(pool, row) for row in range(count)]


def alone_in(offers: Sequence[WorkerListing], tasks: Sequence[Task], preset: str) -> Marks:
    """What the best worker of each offer makes of a task, alone."""
    return marks_of(tasks, [best_alone(offer.pool_indices.values(), preset) for offer in offers], preset)


def _print_subsets(found: Sequence[tuple[str, Marks, Marks]]) -> None:
    title = (
        f"Held-out subsets of 2 to 6 workers under shuffled indices, {SUBSET_QUESTIONS} questions, greedy. Simulated"
    )
    table = Table("", "Conductor", "best worker of the subset", "difference", "valid", title=title)
    for name, marks, alone in found:
        figures = [marks.accuracy(), alone.accuracy(), marks.above(alone)]
        table.add_row(
            name, *[f"{mean:.1f} ± {error:.1f}" for mean, error in figures], f"{statistics.mean(marks.valid):.2%}"
        )
    console.print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
