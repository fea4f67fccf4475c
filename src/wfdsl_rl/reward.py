"""The reward function for GRPO and other RL libraries: completions in, scored outcomes out.

    reward = wfdsl_rl.make_reward(pool, tasks)
    scored = await reward(completions, task_ids)                          # in an event loop
    scored = reward.sync(completions, task_ids)                           # in a thread
    GRPOTrainer(reward_funcs=reward.trl, train_dataset=Dataset.from_list(reward.rows()), ...)

It runs the completions of a batch together, under one concurrency limit, budget and journal. It depends on no RL
library.
"""

from __future__ import annotations

import asyncio
import math
import os
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import repeat
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.listing import list_workers
from wfdsl.conductor.prompt import Prompt
from wfdsl.errors import UsageError
from wfdsl.interpreter.budget import Budget, BudgetTracker, BudgetUsage
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.record import BudgetExhausted, total_usd
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.loop_thread import LoopThread
from wfdsl_rl.processes import ALONE, Processes
from wfdsl_rl.rows import Row, offer_of, row_of, text_of
from wfdsl_rl.scoring import Rollout, Sample, Scored, Scorer, metrics_of, require_scores, right_share

_Item: TypeAlias = tuple[dict[str, Any], str, bool]
"""A row with its completion, and whether that was cut."""
_TOLD_EVERY_S: Final = 1.0
"""How often `on_wait` is called."""


def _no_figures(_: Sequence[Sample]) -> Mapping[str, float]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reward:
    """Scores completions; made by `make_reward`."""

    pool: Pool
    """The workers."""
    tasks: Mapping[str, Task]
    """By id."""
    prompt: Prompt
    """The prompt of `rows`."""
    scorer: Scorer
    """How one completion is scored."""
    conductor: ConductorConfig = field(default_factory=ConductorConfig)
    """Which workers the rows of a trainer list, under which indices."""
    executions: int = 1
    """How often each valid workflow is run; its score is the mean."""
    common_random_numbers: bool = False
    """For `trl`: whether the completions of a row draw the same random numbers, and equal ones are run once."""
    end_of_text: frozenset[int] | None = None
    """For `trl`: the tokens that end a completion; one that ends with another token was cut, and is invalid."""
    concurrency: int = 64
    """The most workflows in flight in an event loop."""
    deadline_s: float | None = None
    """Seconds that a batch may take; workflows that still run then have failed. None: as long as they take."""
    on_wait: Callable[[int, int], None] | None = None
    """Called once in a while with the number of workflows that a batch still waits for, and with all of them."""
    only_right_pay: bool = False
    """Whether wrong answers pay no price of their steps, where rows have a `price`."""
    listeners: list[Callable[[Sequence[Sample]], None]] = field(default_factory=list)
    """Called with every batch of `trl`."""
    figures: Callable[[Sequence[Sample]], Mapping[str, float]] = _no_figures
    """Further figures of a batch, which are logged."""
    processes: Processes = ALONE
    """The completions of all of them are scored in the first one."""
    seed: int = 0
    """Part of the sample ids of `trl`, like `name`."""
    name: str = ""
    """Such as the name of a training stage."""
    _own: list[Journal] = field(default_factory=list, repr=False)
    _thread: LoopThread = field(default_factory=LoopThread, repr=False)
    _limits: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = field(
        default_factory=WeakKeyDictionary, repr=False
    )
    _visits: Counter[Any] = field(default_factory=Counter, repr=False)
    """How often each row was scored, for trainers that do not say their step."""
    _spent: list[float | None] = field(default_factory=list, repr=False)
    """Costs of runs since they were last logged, in US dollars by the price list; None where a price is not known."""
    _evaluated: dict[tuple[int | None, int], float | None] = field(default_factory=dict, repr=False)
    """Rewards of an evaluation by step and row."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process has a loop, limits and a connection to the journal of its own."""
        options = dict(self.scorer.options or {})
        journal, tracker = options.pop("journal", None), options.pop("budget", None)
        plain = {each.name: getattr(self, each.name) for each in fields(self) if not each.name.startswith("_")}
        plain |= {"scorer": replace(self.scorer, options=options), "on_wait": None, "listeners": [], "processes": ALONE}
        budget = None if tracker is None else (tracker.budget, tracker.spent)
        return _restored, (plain, None if journal is None else journal.path, budget)

    async def __call__(
        self,
        completions: Sequence[Any],
        tasks: Sequence[str | Task],
        *,
        sample_ids: Sequence[str] | None = None,
        previous: Sequence[tuple[str, str] | None] | None = None,
    ) -> list[Scored]:
        """Score completions, each of the task at the same position.

        Args:
            completions: Texts, or chats as TRL has them, whose first message is the completion.
            tasks: Tasks, or ids of those that the reward was made with.
            sample_ids: With a journal, a repeated sample id makes no call twice. Unless given, each is new.
            previous: For revisions, the final (subtask, response) of the previous round.

        Raises:
            BudgetExhausted: a call does not fit into the budget any more.
            UsageError: a task is not known, or something that running or grading needs is not there.
        """
        ids = [f"reward-{secrets.token_hex(8)}" for _ in completions] if sample_ids is None else sample_ids
        before = repeat(None, len(completions)) if previous is None else previous
        return await self.score(
            [
                Rollout(
                    completion=text_of(completion),
                    task=self._task(task),
                    sample_id=sample_id,
                    previous=pair,
                    executions=self.executions,
                )
                for completion, task, sample_id, pair in zip(completions, tasks, ids, before, strict=True)
            ]
        )

    def sync(
        self,
        completions: Sequence[Any],
        tasks: Sequence[str | Task],
        *,
        sample_ids: Sequence[str] | None = None,
        previous: Sequence[tuple[str, str] | None] | None = None,
    ) -> list[Scored]:
        """The same from a thread without an event loop. Calls from several threads share one loop and its limit.

        The loop has a thread of its own, in which the pool stays open until `close`.

        Raises:
            UsageError: an event loop is running in this thread; or as in `__call__`.
            BudgetExhausted: as in `__call__`.
        """
        _require_no_loop()
        return self._thread.run(self(completions, tasks, sample_ids=sample_ids, previous=previous), self.pool)

    def score_sync(self, rollouts: Sequence[Rollout]) -> list[Scored]:
        """`score` from a thread without an event loop, as `sync` does it.

        Raises:
            UsageError, BudgetExhausted: as in `sync`.
        """
        _require_no_loop()
        return self._thread.run(self.score(rollouts), self.pool)

    async def score(self, rollouts: Sequence[Rollout]) -> list[Scored]:
        """Score rollouts together. Equal completions in one sample are run once and give the same object.

        Raises:
            BudgetExhausted: a call does not fit into the budget any more.
            UsageError: something that running or grading needs is not there.
        """
        keys = [(each.sample_id, each.task.id, each.previous, each.completion) for each in rollouts]
        running: dict[object, asyncio.Task[Scored]] = {}
        try:
            async with self.pool.open(), asyncio.TaskGroup() as group:
                for key, rollout in zip(keys, rollouts, strict=True):
                    if key not in running:
                        running[key] = group.create_task(self._score(rollout))
                await self._finished(running.values())
        except BaseExceptionGroup as failures:
            spent, _ = failures.split(BudgetExhausted)
            raise (spent or failures).exceptions[0] from failures
        late = Scored("failed", problems=(f"no result within the deadline of {self.deadline_s} s",))
        found = {key: late if work.cancelled() else work.result() for key, work in running.items()}
        return [found[key] for key in keys]

    async def trl(
        self,
        completions: Sequence[Any],
        *,
        task: Sequence[str],
        completion_ids: Sequence[Sequence[int]] | None = None,
        trainer_state: Any = None,
        log_metric: Any = None,
        **columns: Any,
    ) -> list[float | None]:
        """The reward function for TRL's trainers. It needs the columns of `rows`, and logs what the batch was like.

        None leaves a completion out. Sample ids are made of the seed, the split, the optimisation step, the row and
        the place in the row, so a step that is repeated after an interruption is answered from the journal. TRL gives
        the tokens of completions: one that does not end is invalid.

        Raises:
            NoScore: no valid completion of a training batch has a score.
            UsageError: there are tokens, and the reward does not know which ones end a text; or as in `__call__`.
            BudgetExhausted: as in `__call__`.
        """
        step = None if trainer_state is None else trainer_state.global_step
        names = [name for name, values in columns.items() if isinstance(values, list) and len(values) == len(task)]
        rows = [{"task": name, **{each: columns[each][at] for each in names}} for at, name in enumerate(task)]
        texts = map(text_of, completions)
        items = list(zip(rows, texts, self.cut(completion_ids) or [False] * len(rows), strict=True))
        (rewards, metrics), own = await self.processes.on_all(items, lambda every: self._rewards(every, step))
        for name, value in metrics.items() if log_metric is not None else ():
            log_metric(name, value)
        return rewards[own]

    async def batch(
        self,
        rows: Sequence[Mapping[str, Any]],
        texts: Sequence[str],
        step: int | None,
        cut: Sequence[bool] | None = None,
    ) -> list[Sample]:
        """Score the completions of a batch, one per row, and pass the samples on to the listeners.

        Raises:
            NoScore: no valid completion of a training batch has a score.
            BudgetExhausted, UsageError: as in `__call__`.
        """
        samples = await self.samples(rows, texts, step, cut)
        if any(row.get("split", "train") == "train" for row in rows):
            require_scores([sample.scored for sample in samples], step or 0)
        self.tell(samples)
        return samples

    def tell(self, samples: Sequence[Sample]) -> None:
        """Pass samples on to the listeners; what they cost is logged with the next training batch."""
        self._spent.extend(run.list_usd for sample in samples for run in sample.runs)
        for listener in self.listeners:
            listener(samples)

    async def samples(
        self,
        rows: Sequence[Mapping[str, Any]],
        texts: Sequence[str],
        step: int | None,
        cut: Sequence[bool] | None = None,
    ) -> list[Sample]:
        """Score the completions of rows; the reward of each is its score less the price of its steps, times a weight.

        Raises:
            BudgetExhausted, UsageError: as in `__call__`.
        """
        rollouts = self.rollouts(rows, texts, step, cut)
        found, seen, known = [], Counter[Any](), set[int]()
        for row, rollout, scored in zip(rows, rollouts, await self.score(rollouts), strict=True):
            reward = None
            if scored.score is not None:
                reward = float(row.get("weight", 1.0)) * (scored.score - self._price(row, scored))
            number, shared = row.get("row", row["task"]), id(scored) in known
            found.append(
                Sample(step or 0, row, seen[number], rollout.completion, scored, reward, shared, rollout.task.question)
            )
            seen[number] += 1
            known.add(id(scored))
        return found

    def cut(self, completion_ids: Sequence[Sequence[int]] | None) -> list[bool] | None:
        """Whether each completion was cut at the token limit; None without tokens.

        Raises:
            UsageError: the reward does not know which tokens end a text.
        """
        if completion_ids is None:
            return None
        if self.end_of_text is None:
            raise UsageError(
                "the reward does not know which tokens end a completion, so it cannot tell one that was cut; make it "
                "with make_reward(..., end_of_text=tokenizer.eos_token_id)"
            )
        return [not ids or ids[-1] not in self.end_of_text for ids in completion_ids]

    def rollouts(
        self,
        rows: Sequence[Mapping[str, Any]],
        completions: Sequence[Any],
        step: int | None,
        cut: Sequence[bool] | None = None,
    ) -> list[Rollout]:
        """What is scored for completions of a trainer's rows.

        Args:
            rows: One for each completion.
            completions: Texts, or chats.
            step: The optimisation step; None: not known, and each batch with a row counts as one.
            cut: Whether each completion was cut; none was, unless given.

        Raises:
            UsageError: a task is not known.
        """
        found, seen = [], Counter[Any]()
        if step is None:
            self._visits.update({row.get("row", row["task"]) for row in rows})
        for row, completion, is_cut in zip(rows, completions, cut or [False] * len(rows), strict=True):
            number, split = row.get("row", row["task"]), row.get("split", "train")
            at = self._visits[number] - 1 if step is None else step
            group = "/".join(map(str, [self.seed, *filter(None, [self.name]), split, at, number]))
            run_id = f"{group}/{_process()}{seen[number]}"
            seen[number] += 1
            found.append(
                Rollout(
                    completion=text_of(completion),
                    cut=is_cut,
                    task=self._task(row["task"]),
                    sample_id=group if self.common_random_numbers and split == "train" else run_id,
                    run_id=run_id,
                    offer=offer_of(row, self.pool) if "true" in row else None,
                    previous=tuple(row["previous"]) if row.get("previous") else None,
                    executions=self.executions if split == "train" else 1,
                )
            )
        return found

    def rows(self, tasks: Iterable[Task] | None = None, *, split: str = "train") -> list[Row]:
        """The rows that a trainer reads, one for each task: of those that the reward was made with, unless given.

        Rows of a `split` other than "train" are run once each, and may have no score.

        Raises:
            UsageError: no worker can be offered.
        """
        chosen = self.tasks.values() if tasks is None else tasks
        return [
            row_of(
                task,
                list_workers(self.conductor, self.pool, str(number)),
                self.prompt,
                number=number,
                max_steps=self.scorer.max_steps,
                access=self.scorer.access,
                question_for=self.scorer.question_for,
                split=split,
            )
            for number, task in enumerate(chosen)
        ]

    def close(self) -> None:
        """Close what it has opened: the journal, and the thread of `sync` with its connections."""
        self._thread.close()
        while self._own:
            self._own.pop().close()

    def __enter__(self) -> Reward:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _task(self, task: str | Task) -> Task:
        if isinstance(task, Task):
            return task
        if task not in self.tasks:
            raise UsageError(f"unknown task {task!r}: the reward was made with {len(self.tasks)} other tasks")
        return self.tasks[task]

    async def _rewards(self, items: list[_Item], step: int | None) -> tuple[list[float | None], dict[str, float]]:
        """The reward of each row with its completion, and the metrics.

        An evaluation asks each row once, though several processes repeat some to have equally many.
        """
        if items[0][0].get("split") != "eval":
            samples = await self._batch(items, step)
            return [sample.reward for sample in samples], self._metrics(samples)
        known = {key: reward for key, reward in self._evaluated.items() if key[0] == step}
        asked = {(step, each[0]["row"]): each for each in reversed(items) if (step, each[0]["row"]) not in known}
        samples = await self._batch(list(asked.values()), step) if asked else []
        self._evaluated.clear()
        self._evaluated.update(known)
        self._evaluated.update({key: each.reward for key, each in zip(asked, samples, strict=True)})
        rewards = [self._evaluated[step, row["row"]] for row, _, _ in items]
        return rewards, self._metrics(samples) if samples else {}

    async def _batch(self, items: list[_Item], step: int | None) -> list[Sample]:
        rows, texts, cut = zip(*items, strict=True)
        return await self.batch(rows, texts, step, cut)

    def _metrics(self, samples: Sequence[Sample]) -> dict[str, float]:
        metrics = {**metrics_of([sample.scored for sample in samples]), **self.figures(samples)}
        metrics.pop("usd", None)  # ours includes first rounds, and no evaluation
        kept = [sample.scored.kept for sample in samples if sample.row.get("previous")]
        if kept:
            metrics["kept"] = sum(kept) / len(kept)
        if samples[0].row.get("split", "train") == "train":
            usd = total_usd(self._spent)
            self._spent.clear()
            if usd is not None:
                metrics["usd"] = usd
        return metrics

    def _price(self, row: Mapping[str, Any], scored: Scored) -> float:
        """What the steps of a workflow cost under the row's price."""
        price = float(row.get("price", 0.0)) * scored.steps
        return (
            price * (right_share(each.outcome for each in scored.executions) or 0.0) if self.only_right_pay else price
        )

    async def _finished(self, running: Collection[asyncio.Task[Scored]]) -> None:
        """Wait for the workflows of a batch, and cancel those that are late."""
        clock, pending = asyncio.get_running_loop().time, set(running)
        end = clock() + (math.inf if self.deadline_s is None else self.deadline_s)
        while pending and clock() < end:
            _, pending = await asyncio.wait(pending, timeout=min(_TOLD_EVERY_S, end - clock()))
            if pending and self.on_wait is not None:
                self.on_wait(len(pending), len(running))
        for late in pending:
            late.cancel()

    async def _score(self, rollout: Rollout) -> Scored:
        limit = self._limits.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self.concurrency))
        async with limit:
            return await self.scorer.score(rollout, self.pool)


def _restored(plain: dict[str, Any], path: Path | None, spent: tuple[Budget, BudgetUsage] | None) -> Reward:
    """The reward that `Reward.__reduce__` describes."""
    options, own = dict(plain["scorer"].options), []
    if path is not None:
        options["journal"] = Journal(path)
        own.append(options["journal"])
    if spent is not None:
        options["budget"] = BudgetTracker(*spent)
    return Reward(**{**plain, "scorer": replace(plain["scorer"], options=options)}, _own=own)


def _require_no_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError("reward.sync cannot wait inside a running event loop; write `await reward(...)` there instead")


def _process() -> str:
    """Tells the processes of a distributed training apart, which may have completions of the same row."""
    rank = os.environ.get("RANK", "0")
    return "" if rank == "0" else f"{rank}-"
