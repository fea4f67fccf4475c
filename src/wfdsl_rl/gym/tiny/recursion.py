"""Second rounds of the tiny model: swapped descriptions, class-balanced groups, forced prefixes."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

from wfdsl_rl.gym.tiny.config import TinyConfig
from wfdsl_rl.gym.tiny.forced_first_rounds import Revisions, Written, first_with_answer
from wfdsl_rl.gym.tiny.generation import force_prefix
from wfdsl_rl.gym.tiny.reasoning_prefix import shows_doubt
from wfdsl_rl.gym.tiny.sft_rows import correct_annotation_of, workflow_in
from wfdsl_rl.gym.world.replies import signs_in
from wfdsl_rl.reward import Reward
from wfdsl_rl.rows import offer_of
from wfdsl_rl.scoring import Sample
from wfdsl_rl.training.setup import Setup

_RECENT: Final = 3
"""Iterations over which kept rounds are counted. Our choice."""


class TinyRevisions(Revisions):
    """How first rounds are run and revised."""

    def __init__(self, setup: Setup, reward: Reward, config: TinyConfig, tokenizer: Any) -> None:
        super().__init__(setup, reward)
        self.config = config
        self.tokenizer = tokenizer

    def first(self, row: dict[str, Any], completion: str) -> dict[str, Any]:
        """In some training rows, a worker of the first round and one that it did not ask answer for each other."""
        setup, config = self.setup, self.config
        rng = random.Random(f"exchanged:{setup.train.seed}:{row['row']}")  # a random stream's name: it keeps its word
        if row["split"] != "train" or rng.random() >= config.swapped_descriptions:
            return row
        offer = offer_of(row, setup.pool)
        asked = {step.worker for step in workflow_in(setup, completion, offer) or ()}
        fixed = {*config.never_swapped, *setup.pool.conductors}
        movable = [worker for worker in offer.indices if offer.pool_indices[worker] not in fixed]
        sides = [[worker for worker in movable if (worker in asked) is side] for side in (True, False)]
        if not all(sides):
            return row
        one, other = (row["shown"].index(rng.choice(side)) for side in sides)
        answering = list(row["answering"])
        answering[one], answering[other] = answering[other], answering[one]
        return {**row, "answering": answering}

    def started(self, written: Sequence[Written]) -> Sequence[Written]:
        """All first rounds where groups are balanced by their answers."""
        return written if self.config.class_balanced_groups else super().started(written)

    def choose(self, samples: Sequence[Sample], log: Sequence[Mapping[str, Any]]) -> Mapping[int, Sample]:
        """As many groups revise a doubtful answer as recent second rounds kept theirs.

        So neither keeping nor revising can win without looking at the answer. The log is part of checkpoints.
        """
        if not self.config.class_balanced_groups:
            return first_with_answer(samples)
        kept = [float(entry["kept"]) for entry in log if "kept" in entry]
        return class_balanced(samples, doubtful=statistics.fmean(kept[-_RECENT:] or [0.5]))

    def second(self, row: dict[str, Any], first: Sample) -> dict[str, Any]:
        """The row of a second round, with a forced prefix if the stage has one."""
        second = super().second({**row, "prompt": row.get("conversation") or row["prompt"]}, first)
        if "recursion" not in self.config.forced_prefix or row["split"] != "train":
            return second
        annotation = correct_annotation_of(self.setup, self.config.reasoning_prefix, second)
        return force_prefix(second, annotation, self.tokenizer)


def class_balanced(samples: Sequence[Sample], *, doubtful: float) -> dict[int, Sample]:
    """For each row, its first sample whose answer is doubtful, in that fraction of the rows, or is not, in the others.

    A row without such a sample has its first sample with an answer.
    """
    chosen = first_with_answer(samples)
    for number in chosen:
        drawn = random.Random(f"doubtful:{number}").random() < doubtful
        answered = (each for each in samples if each.row["row"] == number and each.scored.pair is not None)
        chosen[number] = next((each for each in answered if _is_doubtful(each) is drawn), chosen[number])
    return chosen


def _is_doubtful(sample: Sample) -> bool:
    assert sample.scored.pair is not None
    return shows_doubt(signs_in(sample.scored.pair[1]))
