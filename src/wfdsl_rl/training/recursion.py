"""Recursion: groups that revise a first round, as a mix-in for TRL's GRPO trainer.

In a row with `forced`, the model first writes a workflow, which is run. The row's prompt becomes the conversation with
that completion and its response. All completions of the row revise the same first round, so they are a group with a
baseline of its own.

`_generate_and_score_completions` and `_generate` are private names of TRL; a contract test holds them to the pinned
version. Source of forced rounds: arXiv 2512.04388, section 4; one first round per group is our choice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from wfdsl_rl.training.data import completion_text, second_round
from wfdsl_rl.training.rewarding import Rewarder
from wfdsl_rl.training.samples import Sample
from wfdsl_rl.training.setup import Setup

_COMPLETIONS: Final = 3
"""The place of the completions in the result of `_generate`."""


class Revisions:
    """How first rounds are run and revised. An extension may put a subclass into the trainer."""

    def __init__(self, setup: Setup, rewarder: Rewarder) -> None:
        self.setup = setup
        self.rewarder = rewarder

    def first(self, row: dict[str, Any], completion: str) -> dict[str, Any]:  # noqa: ARG002
        """The row that a first round is run with; `completion` is the first of the row's."""
        return row

    def choose(self, samples: Sequence[Sample], log: Sequence[Mapping[str, Any]]) -> Mapping[int, Sample]:  # noqa: ARG002
        """For each row, the first round that its group revises. `log` is the trainer's log so far."""
        return first_with_answer(samples)

    def second(self, row: dict[str, Any], first: Sample) -> dict[str, Any]:
        """The row of a second round."""
        return second_round(row, first, self.setup.prompt, max_steps=self.setup.max_steps)


class ForcedFirstRounds:
    """The mix-in, which comes before TRL's trainer among the base classes."""

    revisions: Revisions
    """Set before training."""
    _generate: Any
    state: Any
    async_loop: asyncio.AbstractEventLoop

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Any:
        score: Any = super()._generate_and_score_completions  # type: ignore[misc]  # of TRL's trainer
        return score(self._with_first_rounds(inputs))

    def _with_first_rounds(self, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        forced = [row for row in inputs if row["forced"]]
        if not forced:
            return inputs
        completions = self._generate([row["prompt"] for row in forced])[_COMPLETIONS]
        texts = [completion_text(row, completion) for row, completion in zip(forced, completions, strict=True)]
        rows: dict[int, dict[str, Any]] = {}
        for row, text in zip(forced, texts, strict=True):
            if row["row"] not in rows:
                rows[row["row"]] = self.revisions.first(row, text)
        work = self.revisions.rewarder.first_rounds([rows[row["row"]] for row in forced], texts, self.state.global_step)
        samples = asyncio.run_coroutine_threadsafe(work, self.async_loop).result()
        chosen = self.revisions.choose(samples, self.state.log_history)
        second = {number: self.revisions.second(rows[number], first) for number, first in chosen.items()}
        return [second.get(row["row"], row) for row in inputs]  # without an answer to revise, it is a first round


def first_with_answer(samples: Sequence[Sample]) -> dict[int, Sample]:
    """For each row, its first sample with an answer."""
    found: dict[int, Sample] = {}
    for sample in samples:
        if sample.scored.pair is not None:
            found.setdefault(sample.row["row"], sample)
    return found
