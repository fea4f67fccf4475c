"""A Conductor's second rounds on held-out gym questions: what they gain, what they cost, how often they keep.

Run with `python -m tests.benchmarks recursion`; WFDSL_CONDUCTORS names other folders than the one that ships, parted
by colons. All of it is simulated. Each question has its first round, greedy, and then a second one that sees it and
its final reply; gains are paired. Nothing is asked again and nothing falls back: an invalid completion is wrong. The
largest possible gain is what `tests.benchmarks.gym_second_round.second_round` finds for the workflow that the
Conductor most often writes for each kind of question: it knows the gym, and chooses for each kind of reply between
keeping and all revisions of up to two steps.

The last line of a Conductor has subsets of the workers that no training has offered, under shuffled indices, where
no one has searched for the most to gain.
"""

from __future__ import annotations

import asyncio
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table

from tests.benchmarks.bench_conductor import SUBSET_QUESTIONS, alone_in, unseen_offers
from tests.benchmarks.domains import mean_over_domains
from tests.benchmarks.gym_second_round import second_round
from tests.benchmarks.writing import Writer, conductors
from wfdsl import Pool, Workflow
from wfdsl.conductor.listing import WorkerListing
from wfdsl.graph import graph_of
from wfdsl_rl import gym
from wfdsl_rl.gym.world.accuracy import Exam
from wfdsl_rl.gym.world.presets import preset_of
from wfdsl_rl.gym.world.profiles import DOMAINS
from wfdsl_rl.scoring import Rollout, Scored, Scorer
from wfdsl_rl.training.data import revision_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl.tasks.task import Task

TRAINED_ON, PRESETS = "gym/paper7", ("gym/paper7", "gym/shifted")
QUESTIONS, SEED, SEARCHED = 4000, 177, 1200

console = Console(width=140)


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, and the results of its two rounds."""

    kind: str
    first: Scored
    second: Scored | None
    """None if there was none, because the first round was not valid."""

    @property
    def before(self) -> float:
        return float(self.first.outcome == "right")

    @property
    def after(self) -> float:
        return self.before if self.second is None else float(self.second.outcome == "right")

    @property
    def kept(self) -> bool:
        return self.second is not None and self.second.kept

    @property
    def calls(self) -> tuple[int, int]:
        """Of the first round, and of both."""
        first, second = (0 if each is None or each.workflow is None else len(graph_of(each.workflow).live)
                         for each in (self.first, self.second))  # fmt: skip
        return first, first + second


def main() -> None:
    tasks = gym.make(TRAINED_ON, QUESTIONS, seed=SEED)
    whole = Pool.load(TRAINED_ON)
    offers = unseen_offers(whole, SUBSET_QUESTIONS)
    alone = alone_in(offers, tasks[:SUBSET_QUESTIONS], TRAINED_ON)
    table = Table("", "", "first round", "second round", "gain", "most to gain", "part of it", "kept", "calls", "valid")
    for folder in conductors():
        writer = Writer(folder, SEED)
        for preset in PRESETS:
            pool = Pool.load(preset)
            turns = asyncio.run(play(writer, tasks, pool, [WorkerListing.of(pool)] * len(tasks)))
            table.add_row(str(folder), preset, *_figures(turns, _most(turns, preset)))
        turns = asyncio.run(play(writer, tasks[:SUBSET_QUESTIONS], whole, offers))
        table.add_row(str(folder), "subsets", *_figures(turns, None))
    console.print(f"[bold]{len(tasks)} questions of held-out wordings, series {SEED}, greedy. Everything is simulated.")
    console.print(table)
    console.print(
        f"subsets: of {TRAINED_ON}, never offered in training, {SUBSET_QUESTIONS} questions; the best worker of each, "
        f"alone: {alone.accuracy()[0]:.1f}"
    )
    console.print("calls: both rounds, as a multiple of the first one's; the target is less than 2")


async def play(writer: Writer, tasks: Sequence[Task], pool: Pool, offers: Sequence[WorkerListing]) -> list[Turn]:
    """Both rounds of each question."""
    scorer = Scorer(max_steps=writer.max_steps)
    asked = writer.asked(tasks, offers)
    said = writer.texts(asked, 0.0)
    async with pool.open():
        firsts = await asyncio.gather(
            *(scorer.score(Rollout(completion=text, task=task, sample_id=f"first {at}", offer=offer), pool)
              for at, (text, task, offer) in enumerate(zip(said, tasks, offers, strict=True)))
        )  # fmt: skip
        pairs = {at: first.pair for at, first in enumerate(firsts) if first.pair is not None}
        second = [
            revision_messages(asked[at], said[at], response, writer.prompt, max_steps=writer.max_steps)
            for at, (_, response) in pairs.items()
        ]
        again = writer.texts(second, 0.0)
        seconds = await asyncio.gather(
            *(scorer.score(
                Rollout(
                    completion=text, task=tasks[at], sample_id=f"second {at}", offer=offers[at], previous=pair
                ),
                pool,
            )
              for text, (at, pair) in zip(again, pairs.items(), strict=True))
        )  # fmt: skip
    revised = dict(zip(pairs, seconds, strict=True))
    return [Turn(task.kind, first, revised.get(at)) for at, (task, first) in enumerate(zip(tasks, firsts, strict=True))]


def _figures(turns: Sequence[Turn], most: float | None) -> list[str]:
    gain, error = _mean([turn.after - turn.before for turn in turns], turns)
    seconds = [turn.second for turn in turns if turn.second is not None]
    first, both = (sum(calls) for calls in zip(*(turn.calls for turn in turns), strict=True))
    return [
        f"{_mean([turn.before for turn in turns], turns)[0]:.1f}",
        f"{_mean([turn.after for turn in turns], turns)[0]:.1f}",
        f"{gain:+.1f} ± {error:.1f}",
        "" if most is None else f"{most:+.1f}",
        "" if most is None else f"{gain / most:.0%}",
        f"{statistics.mean(turn.kept for turn in turns):.0%}",
        f"{both / first:.2f}",
        f"{statistics.mean(second.outcome != 'invalid' for second in seconds):.2%}",
    ]


def _mean(values: Sequence[float], turns: Sequence[Turn]) -> tuple[float, float]:
    by_kind: dict[str, list[float]] = defaultdict(list)
    for value, turn in zip(values, turns, strict=True):
        by_kind[turn.kind].append(value)
    return mean_over_domains(by_kind)


def _most(turns: Sequence[Turn], preset: str) -> float:
    """What the best second round gains after the Conductor's most frequent workflow of each domain, in percent."""
    exam = Exam(preset_of(preset), SEARCHED)
    usual: dict[str, Counter[Workflow]] = defaultdict(Counter)
    for turn in turns:
        if turn.first.workflow is not None:
            usual[turn.kind][turn.first.workflow] += 1
    found = [second_round(usual[domain].most_common(1)[0][0], exam.questions[domain], draws=4) for domain in DOMAINS]
    return 100 * float(np.mean([each.best - each.first for each in found]))
