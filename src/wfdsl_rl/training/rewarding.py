"""The one function that TRL calls: a batch of completions in, a reward for each out.

Completions of a batch are judged together, up to a number of calls at a time. What has no outcome gets None, which TRL
leaves out of the group; a whole batch without outcomes means that the workers are down, and stops the training. In an
evaluation it does not, because the last batch of one may be a single completion.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from wfdsl.errors import WfdslError
from wfdsl.interpreter.record import BudgetExhausted, total_usd
from wfdsl_rl.gym.tiny.forced_prefix import whole
from wfdsl_rl.gym.tiny.synthetic import reading_in, true_reading
from wfdsl_rl.scoring import Rollout, right_share
from wfdsl_rl.training.data import answering, offer_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from wfdsl.conductor.listing import WorkerListing
    from wfdsl.interpreter.record import Run
    from wfdsl.workers.pool import Pool
    from wfdsl_rl.gym.tiny.synthetic import Thought
    from wfdsl_rl.scoring import Scored, Scorer
    from wfdsl_rl.tasks.task import Task


@dataclass(frozen=True, slots=True)
class Sample:
    """A completion and what came of it."""

    step: int
    """The optimisation step that it was written for, counted from 0."""
    row: Mapping[str, Any]
    index: int
    """Which of the completions of its row it is."""
    completion: str
    scored: Scored
    reward: float | None
    read: bool | None = None
    """Whether what the thought says of the prompt is so; None if nobody asked."""
    shared: bool = False
    """Whether nothing was run for it, because the same completion of the same row was run already."""

    @property
    def executions(self) -> tuple[Scored, ...]:
        """By every execution."""
        return self.scored.executions

    @property
    def runs(self) -> list[Run]:
        """What was run for it, and cost something: nothing if it is shared."""
        return [] if self.shared else [each.run for each in self.executions if each.run is not None]


class NoOutcome(WfdslError):  # noqa: N818  (what it says, not what it is)
    """No completion of a batch has an outcome: the workers or the graders are down."""


@dataclass(slots=True)
class Rewarder:
    """Judges batches and tells listeners what it saw."""

    tasks: Mapping[str, Task]
    pool: Pool
    scorer: Scorer
    seed: int
    concurrency: int = 64
    """The most workflows in flight. Our choice."""
    listeners: list[Callable[[Sequence[Sample]], None]] = field(default_factory=list)
    stage: str = ""
    """Part of the name of each run: without it, two stages have the same names, and the later one would be given the
    journal's replies of the earlier."""
    thought: Thought | None = None
    """The form of thoughts whose truth is looked at, which no reward depends on; None: it is not looked at."""
    executions: int = 1
    """How often each workflow of a training is run; its reward is the mean."""
    common_random_numbers: bool = False
    """Whether the completions of a row of a training are run in one sample, and equal ones once."""
    spent: list[float | None] = field(default_factory=list)
    """What runs since the last iteration cost by the price list, in US dollars; None where a price is not known."""

    async def batch(self, rows: Sequence[Mapping[str, Any]], texts: Sequence[str], step: int) -> list[Sample]:
        """Score the completions of a batch; row i has the completion i.

        Raises:
            NoOutcome: nothing in a batch of training has an outcome.
            BudgetExhausted: a call does not fit into the budget any more.
        """
        samples = await self._samples(rows, texts, step)
        trained = [sample for sample in samples if sample.row["split"] == "train"]
        if trained and all(sample.reward is None for sample in trained):
            why = next((problem for sample in samples for problem in sample.scored.problems), "nothing was graded")
            raise NoOutcome(f"step {step}: no completion has an outcome: {why}")
        return self._told(samples)

    async def first_rounds(self, rows: Sequence[Mapping[str, Any]], texts: Sequence[str], step: int) -> list[Sample]:
        """Run the first rounds of rows that force a second one; their rewards teach nothing.

        Listeners are told of a training's, and not of a warm-up's or an evaluation's.
        """
        splits = {row["split"] for row in rows}
        split = "first eval" if "eval" in splits else "first"
        samples = await self._samples([{**row, "split": split} for row in rows], texts, step)
        return self._told(samples) if "train" in splits else samples

    def usd(self) -> float | None:
        """What runs have cost since this was asked before, by the price list; None if a price is not known."""
        costs, self.spent = self.spent, []
        return total_usd(costs)

    @property
    def _names(self) -> list[object]:
        return [self.seed, self.stage] if self.stage else [self.seed]

    def _told(self, samples: list[Sample]) -> list[Sample]:
        self.spent += [run.list_usd for sample in samples for run in sample.runs]
        for listener in self.listeners:
            listener(samples)
        return samples

    async def _samples(self, rows: Sequence[Mapping[str, Any]], texts: Sequence[str], step: int) -> list[Sample]:
        seen: Counter[int] = Counter()
        gate = asyncio.Semaphore(self.concurrency)
        running: dict[object, asyncio.Task[Sample]] = {}
        asked: list[tuple[object, int]] = []
        try:
            async with self.pool.open(), asyncio.TaskGroup() as group:
                for row, text in zip(rows, texts, strict=True):
                    index = seen[row["row"]]
                    seen[row["row"]] += 1
                    key = self._key(row, text, index)
                    asked.append((key, index))
                    if key not in running:
                        running[key] = group.create_task(self._sample(gate, row, text, step, index))
        except BaseExceptionGroup as failures:
            spent, _ = failures.split(BudgetExhausted)
            raise (spent or failures).exceptions[0] from failures
        return [_as(running[key].result(), index) for key, index in asked]

    def _key(self, row: Mapping[str, Any], text: str, index: int) -> object:
        """The same for what is run together."""
        if self._in_one_sample(row):
            return row["row"], tuple(row["previous"] or ()), text
        return row["row"], index

    def _in_one_sample(self, row: Mapping[str, Any]) -> bool:
        return self.common_random_numbers and row["split"] == "train"

    async def _sample(
        self, gate: asyncio.Semaphore, row: Mapping[str, Any], text: str, step: int, index: int
    ) -> Sample:
        group = "/".join(map(str, [*self._names, row["split"], step, row["row"]]))
        name = f"{group}/{index}"
        luck = group if self._in_one_sample(row) else name
        task, previous = self.tasks[row["task"]], tuple(row["previous"]) if row.get("previous") else None
        offer = offer_of(dict(row), self.pool)
        async with gate:
            rollout = Rollout(
                completion=text,
                task=task,
                sample_id=luck,
                run_id=name,
                offer=answering(row, offer),
                previous=previous,
                executions=self.executions if row["split"] == "train" else 1,
            )
            scored = await self.scorer.score(rollout, self.pool)
        reward, read = scored.score, self._read(text, task, offer, previous)
        return Sample(step, row, index, text, scored, None if reward is None else row["weight"] * reward, read)

    def _read(self, text: str, task: Task, offer: WorkerListing, previous: tuple[str, ...] | None) -> bool | None:
        if self.thought is None:
            return None
        return reading_in(text) == true_reading(self.thought, task.kind, offer, previous)


def _as(sample: Sample, index: int) -> Sample:
    """A sample as that of an equal completion, which may be itself."""
    return sample if sample.index == index else replace(sample, index=index, shared=True)


def reward_function(rewarder: Rewarder) -> Callable[..., Awaitable[list[float | None]]]:
    """The function in the form that TRL 1.16 takes: a coroutine function of lists."""

    async def workflow_reward(
        prompts: list[Any], completions: list[Any], *, trainer_state: Any, log_metric: Any = None, **columns: Any
    ) -> list[float | None]:
        names = [name for name, values in columns.items() if isinstance(values, list) and len(values) == len(prompts)]
        rows = [{name: columns[name][at] for name in names} for at in range(len(prompts))]
        texts = [whole(row, completion) for row, completion in zip(rows, completions, strict=True)]
        samples = await rewarder.batch(rows, texts, trainer_state.global_step)
        if log_metric is not None:
            for name, value in _shares(samples).items():
                log_metric(name, value)
            if samples[0].row["split"] == "train" and (usd := rewarder.usd()) is not None:
                log_metric("usd", usd)
        return [sample.reward for sample in samples]

    return workflow_reward


def _shares(samples: Sequence[Sample]) -> dict[str, float]:
    count = len(samples)
    outcomes = Counter(sample.scored.outcome for sample in samples)
    steps = [len(sample.scored.workflow) for sample in samples if sample.scored.workflow is not None]
    shares = [right_share(each.outcome for each in sample.executions) for sample in samples]
    right = [share for share in shares if share is not None]
    read = [sample.read for sample in samples if sample.read is not None]
    kept = [sample.scored.kept for sample in samples if sample.row.get("previous")]
    return {
        "valid": (count - outcomes["invalid"]) / count,
        "accuracy": sum(right) / max(len(right), 1),
        "unjudged": outcomes["unjudged"] / count,
        "failed": outcomes["failed"] / count,
        "steps": sum(steps) / max(len(steps), 1),
        **({"read": sum(read) / len(read)} if read else {}),
        **({"kept": sum(kept) / len(kept)} if kept else {}),
    }
