"""The reward of a training batch, through `wfdsl_rl.make_reward`: TRL's rows and completions in, samples out.

A completion without a score gets None, which TRL leaves out of its group. A training batch in which no valid completion
has a score means that the workers are down (`require_scores`), and stops the training; an evaluation continues, because
its last batch may be one completion.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from wfdsl.interpreter.record import total_usd
from wfdsl_rl.reward import Reward, make_reward
from wfdsl_rl.rows import offer_of
from wfdsl_rl.scoring import Scored, load_function, metrics_of, require_scores, right_share
from wfdsl_rl.training.data import answering, completion_text
from wfdsl_rl.training.processes import ALONE, Processes
from wfdsl_rl.training.samples import Sample, iteration_of, latency_of
from wfdsl_rl.training.setup import Setup

_Item: TypeAlias = tuple[dict[str, Any], str, bool]
"""A row with its completion, and whether that was cut."""


@dataclass(slots=True)
class Rewarder:
    """Scores batches and passes the samples on."""

    reward: Reward
    listeners: list[Callable[[Sequence[Sample]], None]] = field(default_factory=list)
    """Called with every batch, first rounds included."""
    on_samples: Callable[[Sequence[Sample]], Mapping[str, float]] = lambda _: {}
    """Called with every batch that TRL asks to score; the result is logged."""
    spent: list[float | None] = field(default_factory=list)
    """Costs of runs since they were last logged, in US dollars by the price list; None where a price is not known."""
    only_right_pay: bool = False
    """Whether wrong answers pay no price of their steps."""
    processes: Processes = ALONE
    """Completions of all of them are scored in the first one."""
    _evaluated: dict[tuple[int, int], float | None] = field(default_factory=dict)
    """Rewards of an evaluation by step and row."""

    async def batch(
        self, rows: Sequence[Mapping[str, Any]], texts: Sequence[str], step: int, cut: Sequence[bool] | None = None
    ) -> list[Sample]:
        """Score the completions of a batch, one per row; `cut`: whether each was cut at the token limit.

        Raises:
            NoScore: no valid completion of a training batch has a score.
            BudgetExhausted: a call does not fit into the budget any more.
        """
        samples = await self._scored(rows, texts, step, cut)
        if any(row["split"] == "train" for row in rows):
            require_scores([sample.scored for sample in samples], step)
        return self._passed_on(samples)

    async def first_rounds(self, rows: Sequence[Mapping[str, Any]], texts: Sequence[str], step: int) -> list[Sample]:
        """Run the first rounds of rows that force a second one. Listeners get those of training rows only."""
        splits = {row["split"] for row in rows}
        split = "first eval" if "eval" in splits else "first"
        samples = await self._scored([{**row, "split": split} for row in rows], texts, step)
        return self._passed_on(samples) if "train" in splits else samples

    def is_valid(self, row: Mapping[str, Any], text: str) -> bool:
        """Whether a row's completion is a valid workflow; nothing is run."""
        (rollout,) = self.reward.rollouts([row], [text], 0)
        problems, _ = self.reward.scorer.read(rollout, self.reward.pool)
        return not problems

    async def workflow_reward(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        *,
        completion_ids: Sequence[Sequence[int]],
        trainer_state: Any,
        log_metric: Any = None,
        **columns: Any,
    ) -> list[float | None]:
        """The reward function that TRL 1.16 awaits in each process. It needs the columns of `data.make_rows`."""
        names = [name for name, values in columns.items() if isinstance(values, list) and len(values) == len(prompts)]
        rows = [{name: columns[name][at] for name in names} for at in range(len(prompts))]
        texts = [completion_text(row, completion) for row, completion in zip(rows, completions, strict=True)]

        step = trainer_state.global_step
        cut = self.reward.cut(completion_ids) or []
        items = list(zip(rows, texts, cut, strict=True))
        (rewards, metrics), own = await self.processes.on_all(items, lambda every: self._rewards(every, step))
        for name, value in metrics.items() if log_metric is not None else ():
            log_metric(name, value)
        return rewards[own]

    async def _rewards(self, items: list[_Item], step: int) -> tuple[list[float | None], dict[str, float]]:
        """The reward of each row with its completion, and the metrics.

        An evaluation asks each row once, though several processes repeat some to have equally many.
        """
        if items[0][0]["split"] != "eval":
            samples = await self._batch(items, step)
            return [sample.reward for sample in samples], self._metrics(samples)
        known = {key: reward for key, reward in self._evaluated.items() if key[0] == step}
        asked = {(step, each[0]["row"]): each for each in reversed(items) if (step, each[0]["row"]) not in known}
        samples = await self._batch(list(asked.values()), step) if asked else []
        self._evaluated = {**known, **{key: each.reward for key, each in zip(asked, samples, strict=True)}}
        rewards = [self._evaluated[step, row["row"]] for row, _, _ in items]
        return rewards, self._metrics(samples) if samples else {}

    async def _batch(self, items: list[_Item], step: int) -> list[Sample]:
        rows, texts, cut = zip(*items, strict=True)
        return await self.batch(rows, texts, step, cut)

    def _metrics(self, samples: Sequence[Sample]) -> dict[str, float]:
        metrics = {**metrics_of([sample.scored for sample in samples]), **self.on_samples(samples)}
        metrics |= iteration_of([sample.to_dict() for sample in samples]).metrics() | latency_of(samples)
        metrics.pop("usd", None)  # ours includes first rounds, and no evaluation
        kept = [sample.scored.kept for sample in samples if sample.row.get("previous")]
        if kept:
            metrics["kept"] = sum(kept) / len(kept)
        if samples[0].row["split"] == "train":
            costs, self.spent = self.spent, []
            if (usd := total_usd(costs)) is not None:
                metrics["usd"] = usd
        return metrics

    def _passed_on(self, samples: list[Sample]) -> list[Sample]:
        self.spent += [run.list_usd for sample in samples for run in sample.runs]
        for listener in self.listeners:
            listener(samples)
        return samples

    async def _scored(
        self, rows: Sequence[Mapping[str, Any]], texts: Sequence[str], step: int, cut: Sequence[bool] | None = None
    ) -> list[Sample]:
        rollouts = [
            replace(rollout, offer=answering(row, offer_of(row, self.reward.pool)))
            for row, rollout in zip(rows, self.reward.rollouts(rows, texts, step, cut), strict=True)
        ]
        samples, seen, known = [], Counter[int](), set[int]()
        for row, rollout, scored in zip(rows, rollouts, await self.reward.score(rollouts), strict=True):
            reward = None if scored.score is None else row["weight"] * (scored.score - self._price(row, scored))
            index, shared = seen[row["row"]], id(scored) in known
            samples.append(
                Sample(step, row, index, rollout.completion, scored, reward, shared, question=rollout.task.question)
            )
            seen[row["row"]] += 1
            known.add(id(scored))
        return samples

    def _price(self, row: Mapping[str, Any], scored: Scored) -> float:
        """What the steps of a workflow cost under the row's price."""
        price = float(row["price"]) * scored.steps
        return (
            price * (right_share(each.outcome for each in scored.executions) or 0.0) if self.only_right_pay else price
        )


def make_rewarder(
    setup: Setup, name: str, *, executions: int = 1, common_random_numbers: bool = False, grades: bool = True
) -> Rewarder:
    """The rewarder of a stage, whose `name` is part of all sample ids. Without grades it only runs workflows."""
    train = setup.train
    reward = make_reward(
        setup.pool,
        {task.id: task for task in setup.all_tasks}.values(),
        prompt=setup.prompt,
        max_steps=setup.max_steps,
        conductor=setup.conductor,
        values=load_function(train.reward_function) if train.reward_function else train.reward,
        ablation=train.ablation,
        executions=executions,
        common_random_numbers=common_random_numbers,
        concurrency=train.concurrency,
        deadline_s=train.deadline_s,
        options=setup.options,
        seed=train.seed,
        name=name,
        grades=grades,
    )
    reward = replace(reward, on_wait=setup.on_wait)
    return Rewarder(reward, only_right_pay=train.prices.only_right, processes=setup.processes)


@contextmanager
def programs_between_batches(setup: Setup, rewarder: Rewarder, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Start processes of the sandbox for the next batch once one is scored, while a core is idle.

    `loop` is the one in which batches are scored, in another thread.
    """
    if not setup.has_programs:
        yield
        return
    from wfdsl.grading.code import shared_sandbox  # noqa: PLC0415  (only programs need it)

    sandbox = shared_sandbox()

    def warm_up(_: Sequence[Sample]) -> None:
        sandbox.warm_up()

    rewarder.listeners.append(warm_up)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(sandbox.cool_down(), loop).result()
