"""Recursion of the tiny model: groups that revise one first round, as a mix-in for TRL's GRPO trainer.

In a row with `forced`, the model first writes a workflow, which is run. The row's prompt becomes the conversation with
that completion and its response. All completions of the row revise the same first round, so they are a group with a
baseline of its own.

`_generate_and_score_completions` and `_generate` are private names of TRL; a contract test holds them to the pinned
version. Source of forced rounds: arXiv 2512.04388, section 4; one first round per group is our choice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from wfdsl.conductor.prompt import Prompt
from wfdsl_rl.reward import Reward
from wfdsl_rl.scoring import Sample
from wfdsl_rl.training import grpo
from wfdsl_rl.training.data import completion_text, draw_of, falls_into, revision_messages, setup_rows
from wfdsl_rl.training.setup import Setup

Written: TypeAlias = tuple[dict[str, Any], str]
"""A row with the completion of its first round."""

_TOKENS: Final = 1
_COMPLETIONS: Final = 3
"""The places of the completions' tokens and of the completions in the result of `_generate`."""


class Revisions:
    """How first rounds are run and revised. An extension may put a subclass into the trainer."""

    def __init__(self, setup: Setup, reward: Reward) -> None:
        self.setup = setup
        self.reward = reward

    def first(self, row: dict[str, Any], completion: str) -> dict[str, Any]:  # noqa: ARG002
        """The row that its first rounds are run with; `completion` is the first of those that are run."""
        return row

    def started(self, written: Sequence[Written]) -> Sequence[Written]:
        """The first rounds that are run: the first valid one of each row, because only one is revised."""
        found: dict[int, Written] = {}
        for row, text in written:
            if row["row"] not in found and is_valid(self.reward, row, text):
                found[row["row"]] = (row, text)
        return [*found.values()]

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
        processes = self.revisions.setup.processes
        forced = [row for row in inputs if row["forced"]]
        most = max(processes.everywhere(len(forced)))
        if not most:
            return inputs
        prompts = [row["prompt"] for row in forced]
        padding = [inputs[0]["prompt"]] * (most - len(forced))  # TRL needs equally many in each process
        generated = self._generate(prompts + padding)
        cut = self.revisions.reward.cut(generated[_TOKENS]) or []
        written: list[Written] = [
            (row, completion_text(row, each))
            for row, each, is_cut in zip(forced, generated[_COMPLETIONS], cut, strict=False)
            if not is_cut  # an invalid one has no answer that could be revised
        ]
        work = processes.on_all(written, self._second_rounds)
        second, _ = asyncio.run_coroutine_threadsafe(work, self.async_loop).result()
        return [second.get(row["row"], row) for row in inputs]  # without an answer to revise, it is a first round

    async def _second_rounds(self, written: Sequence[Written]) -> dict[int, dict[str, Any]]:
        """Run first rounds, and make the row of a second round for each row that has an answer."""
        started = self.revisions.started(written)
        if not started:
            return {}
        rows: dict[int, dict[str, Any]] = {}
        for row, text in started:
            if row["row"] not in rows:
                rows[row["row"]] = self.revisions.first(row, text)
        samples = await first_rounds(
            self.revisions.reward,
            [rows[row["row"]] for row, _ in started],
            [text for _, text in started],
            self.state.global_step,
        )
        chosen = self.revisions.choose(samples, self.state.log_history)
        return {number: self.revisions.second(rows[number], first) for number, first in chosen.items()}


class TinyRecursionTrainer(ForcedFirstRounds, grpo.GRPOTrainer):  # type: ignore[misc,unused-ignore,name-defined]
    """GRPO in which some groups revise one first round."""


def forced_rows(setup: Setup) -> list[dict[str, Any]]:
    """The rows of the stage, with a second round forced in a share of them; the others are weighted."""
    config = setup.train.recursion
    tasks = setup.stage_tasks.get("recursion", setup.tasks)
    count = config.iterations * config.prompts_per_step
    rows = setup_rows(setup, tasks, count=count, draw=draw_of(setup, "recursion"))
    return [
        {**row, "forced": True}
        if falls_into(config.forced, at)
        else {**row, "forced": False, "weight": config.discount}
        for at, row in enumerate(rows)
    ]


def is_valid(reward: Reward, row: Mapping[str, Any], text: str) -> bool:
    """Whether a row's completion is a valid workflow; nothing is run."""
    (rollout,) = reward.rollouts([row], [text], 0)
    problems, _ = reward.scorer.read(rollout, reward.pool)
    return not problems


async def first_rounds(
    reward: Reward, rows: Sequence[Mapping[str, Any]], texts: Sequence[str], step: int
) -> list[Sample]:
    """Run the first rounds of rows that force a second one. Listeners get those of training rows only."""
    splits = {row["split"] for row in rows}
    split = "first eval" if "eval" in splits else "first"
    samples = await reward.samples([{**row, "split": split} for row in rows], texts, step)
    if "train" in splits:
        reward.tell(samples)
    return samples


def second_round(row: Mapping[str, Any], first: Sample, prompt: Prompt, *, max_steps: int) -> dict[str, Any]:
    """The row of a second round: the conversation continues after a first round, which must have an answer."""
    pair = first.scored.pair
    assert pair is not None
    messages = revision_messages(row["prompt"], first.completion, pair[1], prompt, max_steps=max_steps)
    return {**row, "prompt": messages, "prefix": "", "previous": list(pair), "weight": 1.0}


def first_with_answer(samples: Sequence[Sample]) -> dict[int, Sample]:
    """For each row, its first sample with an answer."""
    found: dict[int, Sample] = {}
    for sample in samples:
        if sample.scored.pair is not None:
            found.setdefault(sample.row["row"], sample)
    return found
