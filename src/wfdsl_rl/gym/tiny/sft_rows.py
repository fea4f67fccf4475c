"""SFT rows of the tiny model: synthetic completions, and completions that the model writes itself.

Second rounds need first rounds that were run; a rewarder without grading runs them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from wfdsl.api import analyze
from wfdsl.conductor.listing import WorkerListing
from wfdsl.errors import UsageError
from wfdsl.language.workflow import Workflow
from wfdsl_rl.gym.tiny.config import TinyConfig
from wfdsl_rl.gym.tiny.forced_first_rounds import first_rounds, first_with_answer, second_round
from wfdsl_rl.gym.tiny.reasoning_prefix import KEEP, Asked, Format, correct_annotation, named, shape_in
from wfdsl_rl.gym.tiny.synthetic import SyntheticWorkflows
from wfdsl_rl.gym.world.replies import signs_in
from wfdsl_rl.reward import Reward
from wfdsl_rl.rows import offer_of
from wfdsl_rl.training.config import STAGES, StageName
from wfdsl_rl.training.data import draw_of, falls_into, setup_rows
from wfdsl_rl.training.setup import Setup

Write: TypeAlias = Callable[[Sequence[Any], Sequence[str]], list[str]]
"""The completions that the model writes for conversations, each from a forced prefix."""

_FEWEST: Final = 2
"""The fewest workers that a stage of random pools offers."""


class SftRows:
    """The rows of a training's SFT phases: messages `prompt` and `completion`."""

    def __init__(self, setup: Setup, config: TinyConfig, reward: Reward) -> None:
        self.setup = setup
        self.config = config
        self.reward = reward
        self._questions = {task.id: task.question for task in setup.tasks}
        self.synthetic = SyntheticWorkflows(
            lengths=_lengths(config, setup.max_steps),
            form=config.reasoning_prefix,
            wordings=config.wordings,
            bias=config.bias,
            thrift=config.thrift,
            parts=config.parts,
            checks=config.checks,
            seed=setup.train.seed,
        )

    def before_rewards(self, count: int) -> list[dict[str, Any]]:
        """Synthetic completions; if a recursion stage follows, some of them are second rounds."""
        train, config = self.setup.train, self.config
        rows = self._drawn(count, seed=train.seed + 1 if train.pools.iterations else train.seed)
        rng = random.Random(f"warmup:{train.seed}")
        texts = [self.synthetic.completion(rng, offer_of(row, self.setup.pool), Asked.of(row)) for row in rows]
        if train.recursion.iterations:
            seconds = self._second_rounds(rows, texts, share=config.second_rounds, batch=train.sft.batch_size)
            for at, row in seconds.items():
                rows[at], texts[at] = row, self._revision(rng, row)
        return [_shown(row, text) for row, text in zip(rows, texts, strict=True)]

    def before_recursion(self, write: Write) -> list[dict[str, Any]]:
        """The model's own first rounds, and synthetic or alternative second rounds."""
        train, sft = self.setup.train, self.config.recursion_sft
        rows = self._drawn(sft.steps * sft.batch_size, seed=1000 * train.seed + 2)
        rng = random.Random(f"recursion warmup:{train.seed}")
        texts = write([row["prompt"] for row in rows], [self._annotation(row) for row in rows])
        seconds = self._second_rounds(rows, texts, share=sft.second_rounds, batch=sft.batch_size)
        for at, row in seconds.items():
            rows[at], texts[at] = row, self._revision(rng, row, heuristic=sft.heuristic_labels)
        again = [at for at in seconds if shape_in(texts[at]) != KEEP and rng.random() < sft.alternative_revisions]
        for at, text in zip(again, self.alternative_revisions(write, [rows[at] for at in again]), strict=True):
            texts[at] = text or texts[at]
        return self._valid(rows, texts)

    def replay(self, write: Write, stage: StageName) -> list[dict[str, Any]]:
        """The model's own completions after a correct annotation; after recursion some are second rounds."""
        train, sft = self.setup.train, self.config.replay_of(stage)
        rows = self._drawn(sft.steps * sft.batch_size, seed=1000 * train.seed + 3 + STAGES.index(stage))
        texts = write([row["prompt"] for row in rows], [self._annotation(row) for row in rows])
        shown = self._with_word_noise(rows, stage)
        if stage == "recursion":
            seconds = self._second_rounds(rows, texts, share=train.recursion.forced, batch=sft.batch_size)
            again = write(
                [row["prompt"] for row in seconds.values()], [self._annotation(row) for row in seconds.values()]
            )
            for (at, row), text in zip(seconds.items(), again, strict=True):
                shown[at], texts[at] = row, text
        return self._valid(shown, texts)

    def _with_word_noise(self, rows: Sequence[dict[str, Any]], stage: StageName) -> list[dict[str, Any]]:
        """The rows, every second one with noise in the words of its question."""
        share = self.config.replay.word_noise
        if not share:
            return list(rows)
        rng = random.Random(f"word noise:{stage}:{self.setup.train.seed}")
        words = sorted({word for question in self._questions.values() for word in question.split(" ")})
        return [self._noisy(rng, row, words, share) if at % 2 else row for at, row in enumerate(rows)]

    def _noisy(self, rng: random.Random, row: dict[str, Any], words: Sequence[str], share: float) -> dict[str, Any]:
        kept = []
        for word in self._questions[row["task"]].split(" "):
            if rng.random() >= share:
                kept.append(word)
            elif rng.random() < 0.5:
                kept.append(rng.choice(words))
        offer = offer_of(row, self.setup.pool)
        return {**row, "prompt": self._first_prompt(" ".join(kept), row, offer)}

    def alternative_revisions(self, write: Write, rows: Sequence[dict[str, Any]]) -> list[str]:
        """For rows of second rounds, what the model writes for the workers other than the first round's.

        Who failed on a question is likely to fail again. A revision that is not valid is empty. Our choice.
        """
        asked = [(row, self.alternatives(row)) for row in rows]
        texts = write(
            [self._first_prompt(self._questions[row["task"]], row, others) for row, others in asked],
            [correct_annotation(self.config.reasoning_prefix, Asked.of(row), others, None) for row, others in asked],
        )
        return [self._renumbered(*each, text) for each, text in zip(asked, texts, strict=True)]

    def _first_prompt(self, question: str, row: Mapping[str, Any], offer: WorkerListing) -> list[dict[str, Any]]:
        """The prompt of a row's first round with another question or other workers."""
        setup, effort = self.setup, row["effort"] or None
        messages = setup.prompt.ask(
            question,
            offer,
            max_steps=setup.max_steps,
            question_for=setup.question_for,
            access=setup.conductor.access,
            effort=effort,
        )
        return [dict(message) for message in messages]

    def alternatives(self, row: Mapping[str, Any]) -> WorkerListing:
        """The workers that a prefix names, without the first round's solver, numbered from 0.

        As few workers as random pools offer are all kept.
        """
        pool = self.setup.pool
        offer = offer_of(row, pool)
        left = named(offer, row["kind"])
        failed = self._solver(row["prompt"][-2]["content"], offer)
        if len(left) > _FEWEST and failed in left:
            left.remove(failed)
        true = sorted(offer.pool_indices[each] for each in left)
        return WorkerListing.of(pool.subset(true), dict(enumerate(true)))

    def _solver(self, first: str, offer: WorkerListing) -> int | None:
        """The first worker that is asked for an answer in a completion, not for a plan."""
        workflow, shape = workflow_in(self.setup, first, offer), shape_in(first)
        at = len(shape) - len(shape.lstrip("P"))
        return None if workflow is None or at >= len(workflow) else int(workflow[at].worker)

    def _renumbered(self, row: Mapping[str, Any], others: WorkerListing, text: str) -> str:
        """A completion for some of a row's workers, as a completion for all of them."""
        workflow, shape = workflow_in(self.setup, text, others), shape_in(text)
        if workflow is None or len(workflow) != len(shape):
            return ""
        offer = offer_of(row, self.setup.pool)
        signs, renumbered = signs_in(row["previous"][1]), offer.from_pool(others.to_pool(workflow))
        return self.synthetic.text(offer, Asked.of(row), signs, shape, renumbered)

    def _annotation(self, row: Mapping[str, Any]) -> str:
        return correct_annotation_of(self.setup, self.config.reasoning_prefix, row)

    def _revision(self, rng: random.Random, row: Mapping[str, Any], *, heuristic: float | None = None) -> str:
        """A synthetic completion for a second round."""
        offer, signs = offer_of(row, self.setup.pool), signs_in(row["previous"][1])
        return self.synthetic.revision(rng, offer, Asked.of(row), signs, heuristic)

    def _drawn(self, count: int, *, seed: int) -> list[dict[str, Any]]:
        """Questions with workers; random subsets, if the stage of random pools is trained."""
        setup = self.setup
        draw = replace(draw_of(setup, "pools" if setup.train.pools.iterations else "base"), seed=seed)
        return setup_rows(setup, setup.tasks, count=count, draw=draw, split="sft")

    def _second_rounds(
        self, rows: Sequence[dict[str, Any]], texts: Sequence[str], *, share: float, batch: int
    ) -> dict[int, dict[str, Any]]:
        """Some rows as second rounds, by place, with their first rounds in the prompt.

        They fill whole batches: their prompts are more than twice as long, and a batch is padded to its longest row.
        """
        chosen = [at for at in range(len(rows)) if falls_into(share, at // batch)]
        run = first_rounds(self.reward, [rows[at] for at in chosen], [texts[at] for at in chosen], 0)
        answered = first_with_answer(asyncio.run(run))
        return {
            at: second_round(rows[at], answered[number], self.setup.prompt, max_steps=self.setup.max_steps)
            for at in chosen
            if (number := rows[at]["row"]) in answered
        }

    def _valid(self, rows: Sequence[dict[str, Any]], texts: Sequence[str]) -> list[dict[str, Any]]:
        """The rows whose completions are strictly valid."""
        return [
            _shown(row, text)
            for row, text in zip(rows, texts, strict=True)
            if analyze(
                text,
                pool=offer_of(row, self.setup.pool),
                max_steps=self.setup.max_steps,
                recursion=row["previous"] is not None,
                depth_left=0,
            ).ok
        ]


def _lengths(config: TinyConfig, max_steps: int) -> dict[int, float]:
    """The weights of the lengths that a workflow may have."""
    lengths = {int(key): weight for key, weight in config.lengths.items() if weight and int(key) <= max_steps}
    if not lengths:
        raise UsageError(
            f"train.tiny.lengths: no length is within conductor.max_steps = {max_steps}; "
            f"add a shorter one (got {', '.join(sorted(config.lengths))})"
        )
    return lengths


def correct_annotation_of(setup: Setup, form: Format, row: Mapping[str, Any]) -> str:
    """The correct annotation of a row's prompt."""
    return correct_annotation(form, Asked.of(row), offer_of(row, setup.pool), row["previous"])


def workflow_in(setup: Setup, completion: str, offer: WorkerListing) -> Workflow | None:
    """The workflow of a first round, in the prompt's worker indices; None if it is not valid."""
    return analyze(completion, pool=offer, max_steps=setup.max_steps, depth_left=0).workflow


def _shown(row: Mapping[str, Any], completion: str) -> dict[str, Any]:
    return {"prompt": row["prompt"], "completion": [{"role": "assistant", "content": completion}]}
