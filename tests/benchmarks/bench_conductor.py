"""A Conductor on held-out gym questions: accuracy, validity, calls, steps by family, and pools it has not seen.

Run with `python -m tests.benchmarks conductor`; WFDSL_CONDUCTORS names other folders than the one that ships, parted by
colons. All of it is simulated. Questions have wordings that no training has shown; the luck of calls is averaged over
`LUCK` draws for each completion, and standard errors are those of the mean over the questions. Nothing is asked again
and nothing falls back: an invalid completion is wrong.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from tests.benchmarks.domains import mean_over_domains
from tests.benchmarks.writing import Writer, conductors
from wfdsl import Pool, Step, Workflow
from wfdsl.conductor.listing import WorkerListing
from wfdsl.graph import graph_of
from wfdsl_rl import gym
from wfdsl_rl.gym.world.presets import preset_of
from wfdsl_rl.gym.world.profiles import DOMAINS
from wfdsl_rl.gym.world.simulate import simulate
from wfdsl_rl.training.data import Draw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl_rl.tasks.task import Task

PRESET = "gym/paper7"
QUESTIONS, SUBSET_QUESTIONS, SEED, LUCK = 4000, 2000, 77, 4
"""How many questions, of which series (training has others), and draws of luck for each completion."""
RANDOM, ORACLE, MOA_CALLS = 57.5, 79.0, 8
"""Random well-formed workflows (mean over lengths), best workflow per family (both docs/research/gym.md), calls of a
mixture of seven agents."""
ENOUGH = {
    "arithmetic": 2, "algebra": 4, "counting": 3, "knowledge": 2, "measures": 2, "numbers": 2, "strings": 3, "dates": 3,
    "units": 5, "list-code": 4, "string-code": 4, "number-code": 4, "line-code": 4,
}  # fmt: skip
"""Steps that are enough for each family. Source: the table of docs/research/gym.md."""
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

    def add(self, task: Task, workflow: Workflow | None) -> None:
        """Play a workflow on a task; None counts as wrong."""
        self.valid.append(workflow is not None)
        plays = [] if workflow is None else [_right(workflow, task, draw) for draw in range(LUCK)]
        self.right[task.kind].append(statistics.mean(plays) if plays else 0.0)
        if workflow is not None:
            self.steps[str(task.metadata["family"])].append(len(workflow))
            self.calls.append(len(graph_of(workflow).live))

    def accuracy(self) -> tuple[float, float]:
        """The mean over the domains in percent, and its standard error."""
        return mean_over_domains(self.right)

    def rank_correlation(self) -> float:
        """Spearman's, of the mean steps by family with those that are enough."""
        families = sorted(ENOUGH)
        mine = [statistics.mean(self.steps[family] or [0]) for family in families]
        return statistics.correlation(_ranks(mine), _ranks([ENOUGH[family] for family in families]))


def _ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value; equal ones share the mean of theirs."""
    places = sorted(values)
    return [places.index(value) + (places.count(value) - 1) / 2 for value in values]


def main() -> None:
    tasks = gym.make(PRESET, QUESTIONS, seed=SEED)
    pool = Pool.load(PRESET)
    console.print(
        f"[bold]{PRESET}, {len(tasks)} questions of held-out wordings, series {SEED}. Everything is simulated."
    )
    table = Table("", *DOMAINS, "mean", "valid", "calls", "of the way", "steps and optimum")
    for name, workflow in FIXED.items():
        table.add_row(*_row(name, _marks(tasks, [workflow] * len(tasks))))
    subsets: list[tuple[str, Marks, Marks]] = []
    for folder in conductors():
        writer = Writer(folder, SEED)
        for temperature in (0.0, 1.0):
            name = f"{folder}, T = {temperature:g}"
            written = writer.workflows(tasks, [WorkerListing.of(pool)] * len(tasks), temperature)
            table.add_row(*_row(name, _marks(tasks, written)))
        subsets.append(_on_subsets(writer, tasks[:SUBSET_QUESTIONS], pool))
    console.print(table)
    console.print(
        f"of the way: from random workflows ({RANDOM}) to the best per family ({ORACLE}); calls: a mixture of seven "
        f"agents has {MOA_CALLS}; steps and optimum: Spearman's correlation over {len(ENOUGH)} families"
    )
    _print_subsets(subsets)


def _alone(worker: int) -> Workflow:
    return Workflow((Step(worker, "Solve it.", ()),))


FIXED = {
    "best worker alone": _alone(0),
    "plan 1, solve 0, verify 2": Workflow(
        (Step(1, "Plan it.", ()), Step(0, "Use the plan.", (0,)), Step(2, "Check it.", (1,)))
    ),
}


def _marks(tasks: Sequence[Task], workflows: Sequence[Workflow | None]) -> Marks:
    marks = Marks()
    for task, workflow in zip(tasks, workflows, strict=True):
        marks.add(task, workflow)
    return marks


def _row(name: str, marks: Marks) -> list[str]:
    mean, error = marks.accuracy()
    domains = [f"{100 * statistics.mean(marks.right[domain]):.1f}" for domain in DOMAINS]
    way = f"{(mean - RANDOM) / (ORACLE - RANDOM):.0%}"
    same = len({steps for each in marks.steps.values() for steps in each}) == 1
    ranks = "" if same else f"{marks.rank_correlation():+.2f}"
    valid = f"{statistics.mean(marks.valid):.2%}"
    return [name, *domains, f"{mean:.1f} ± {error:.1f}", valid, f"{statistics.mean(marks.calls):.2f}", way, ranks]


def _right(workflow: Workflow, task: Task, draw: int) -> bool:
    return simulate(workflow, task.question, preset_of(PRESET), sample_id=f"conductor {draw}").right


def _on_subsets(writer: Writer, tasks: Sequence[Task], pool: Pool) -> tuple[str, Marks, Marks]:
    """A Conductor and the best worker of each subset, on subsets that were held out."""
    offers = unseen_offers(pool, len(tasks))
    return str(writer.folder), _marks(tasks, writer.workflows(tasks, offers, 0.0)), alone_in(offers, tasks)


def unseen_offers(pool: Pool, count: int) -> list[WorkerListing]:
    """Subsets of a pool that no training has offered, under shuffled indices."""
    return [UNSEEN.offer(pool, row) for row in range(count)]


def alone_in(offers: Sequence[WorkerListing], tasks: Sequence[Task]) -> Marks:
    """What the best worker of each offer makes of a task, alone."""
    return _marks(tasks, [_alone(min(offer.pool_indices.values(), key=ORDER.index)) for offer in offers])


ORDER = (0, 2, 1, 5, 3, 6, 4)
"""The workers, the best alone first. Source: the fitted single calls of docs/research/gym.md."""


def _print_subsets(found: Sequence[tuple[str, Marks, Marks]]) -> None:
    title = (
        f"Held-out subsets of 2 to 6 workers under shuffled indices, {SUBSET_QUESTIONS} questions, greedy. Simulated"
    )
    table = Table("", "Conductor", "best worker of the subset", "difference", "valid", title=title)
    for name, marks, alone in found:
        pairs = [a - b for domain in DOMAINS for a, b in zip(marks.right[domain], alone.right[domain], strict=True)]
        gain = f"{100 * statistics.mean(pairs):+.1f} ± {100 * statistics.stdev(pairs) / len(pairs) ** 0.5:.1f}"
        figures = [f"{each.accuracy()[0]:.1f} ± {each.accuracy()[1]:.1f}" for each in (marks, alone)]
        table.add_row(name, *figures, gain, f"{statistics.mean(marks.valid):.2%}")
    console.print(table)


if __name__ == "__main__":
    main()
