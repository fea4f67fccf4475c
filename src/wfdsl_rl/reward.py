"""The reward function for GRPO and other RL libraries: completions in, scored outcomes out.

    reward = wfdsl_rl.Reward(pool, tasks)
    scored = await reward(completions, task_ids)                          # in an event loop
    scored = reward.sync(completions, task_ids)                           # in a thread
    GRPOTrainer(reward_funcs=reward.trl, train_dataset=Dataset.from_list(reward.rows()), ...)

A completion is parsed strictly, its workflow is run on the pool, and the answer is graded. The completions of a batch
are run together, under one concurrency limit, budget and journal. It depends on no RL library.
"""

from __future__ import annotations

import asyncio
import atexit
import math
import os
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, replace
from functools import partial
from inspect import signature
from itertools import repeat
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from anyio.from_thread import BlockingPortal, start_blocking_portal

from wfdsl.api import analyze
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.listing import WorkerListing, list_workers
from wfdsl.conductor.policy import ablated
from wfdsl.conductor.prompt import DEFAULT_PROMPT, Prompt
from wfdsl.errors import JournalFailure, UsageError
from wfdsl.grading.grade import grade
from wfdsl.grading.sandbox import Sandbox
from wfdsl.interpreter.budget import Budget, BudgetTracker
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.record import BudgetExhausted, RunFailed, total_usd
from wfdsl.interpreter.running import RunOptions, run
from wfdsl.language.check import DEFAULT_MAX_STEPS
from wfdsl.language.workflow import Workflow
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.processes import ALONE, Processes
from wfdsl_rl.scoring import (
    CUT,
    Ablation,
    RewardFunction,
    RewardValues,
    Rollout,
    Row,
    Sample,
    Scored,
    budget_tracker,
    metrics_of,
    require_scores,
    text_of,
)

Item: TypeAlias = tuple[Row, str, bool]
"""A row with a completion, and whether that was cut."""
Listener: TypeAlias = Callable[[Sequence[Sample]], Mapping[str, float] | None]


class Reward(AbstractContextManager["Reward"]):
    """Scores completions: it parses them, runs their workflows on a pool and grades the answers."""

    def __init__(
        self,
        pool: Pool | str,
        tasks: Iterable[Task],
        *,
        prompt: Prompt | str = DEFAULT_PROMPT,
        conductor: ConductorConfig | None = None,
        max_steps: int = DEFAULT_MAX_STEPS,
        values: RewardFunction | None = None,
        ablation: Ablation | None = None,
        executions: int = 1,
        end_of_text: int | Collection[int] | None = None,
        concurrency: int = 64,
        deadline_s: float | None = None,
        budget: Budget | None = None,
        journal: str | Path | None = None,
        options: RunOptions | None = None,
        sandbox: Sandbox | None = None,
        seed: int | str = 0,
        listeners: Iterable[Listener] = (),
        on_wait: Callable[[int, int], None] | None = None,
        processes: Processes = ALONE,
    ) -> None:
        """A reward of tasks on a pool.

        Args:
            pool: The workers, or the name or file of a pool.
            tasks: The questions with their gold answers; ids of different ones must differ.
            prompt: The prompt of `rows`: a template set, its name or its file.
            conductor: Its `without`, `pick`, `shuffle` and `seed` say which workers `rows` lists, under which indices;
                all of them, under their own, unless given. Its `access` says what an access entry may be.
            max_steps: The most steps of a valid workflow.
            values: The reward of each outcome, or a function of a scored completion and its task; the paper's unless
                given.
            ablation: What the Conductor may not decide.
            executions: How often each valid workflow is run; its score is the mean.
            end_of_text: The tokens that end a completion, for `trl`: the `eos_token_id` of the tokenizer, or of the
                model's generation config. A completion that ends with another token was cut, and is invalid.
            concurrency: The most workflows in flight in an event loop. Our choice: 64.
            deadline_s: Seconds that a batch may take. Workflows that still run then are stopped and have failed.
            budget: The most that may be spent on all runs, those that the journal has included.
            journal: The file where each call is kept, so that a repeated sample id makes no call twice.
            options: Arguments of `wfdsl.run`, such as `timeout_s`, or a journal, a tracker of a budget or a `limiter`
                that other runs share.
            sandbox: Where programs are graded; the shared one unless given.
            seed: What the sample ids of `trl` begin with, such as the seed of a training and its stage.
            listeners: Called with every batch of `trl`; figures that they return are logged with it.
            on_wait: Called about once a second with the number of workflows that a batch waits for, and with all.
            processes: The processes of the training; the first one scores the completions of all of them.

        Raises:
            UsageError: two different tasks have the same id, or the pool or prompt cannot be read.
            JournalFailure: the journal cannot be opened.
        """
        self.pool = Pool.load(pool) if isinstance(pool, str) else pool
        self.tasks: dict[str, Task] = {}
        for task in tasks:
            if self.tasks.setdefault(task.id, task) != task:
                raise UsageError(f"two tasks have the id {task.id!r}: ids of different tasks must differ")
        self.prompt = Prompt.load(prompt) if isinstance(prompt, str) else prompt
        self.conductor = conductor or ConductorConfig()
        self.max_steps = max_steps
        self.values = values or RewardValues()
        self.ablation = ablation or Ablation()
        self.executions = executions
        ends = [end_of_text] if isinstance(end_of_text, int) else end_of_text
        self.end_of_text = None if ends is None else frozenset(ends)
        self.concurrency = concurrency
        self.deadline_s = deadline_s
        self.options: RunOptions = {**(options or {})}
        self.sandbox = sandbox
        self.seed = seed
        self.listeners = list(listeners)
        self.on_wait = on_wait
        self.processes = processes
        self._opened = ExitStack()
        if journal is not None:
            self.options["journal"] = self._opened.enter_context(Journal(journal))
        if budget is not None:
            self.options["budget"] = budget_tracker(budget, self.options.get("journal"))
        self._loop: BlockingPortal | None = None
        self._lock = threading.Lock()
        self._limits: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._visits = Counter[Any]()  # how often each row was scored, for trainers that do not say their step
        self._spent: list[float | None] = []  # list prices of runs since they were last logged; None: not known

    def __reduce__(self) -> tuple[Any, ...]:
        others = {"tasks", "budget", "journal", "options", "on_wait", "processes"}
        sent = {name: getattr(self, name) for name in signature(Reward).parameters.keys() - others}
        options: dict[str, Any] = {**self.options}
        if (journal := options.pop("journal", None)) is not None:
            sent["journal"] = journal.path
        if (tracker := options.get("budget")) is not None:
            options["budget"] = BudgetTracker(tracker.budget, tracker.spent)
        return partial(Reward, tasks=[*self.tasks.values()], options=options, **sent), ()

    async def __call__(
        self,
        completions: Sequence[Any],
        tasks: Sequence[str | Task | Row],
        *,
        sample_ids: Sequence[str] | None = None,
        previous: Sequence[tuple[str, str] | None] | None = None,
    ) -> list[Scored]:
        """Score completions, each of the task at the same position.

        Args:
            completions: Texts, or chats as TRL has them, whose first message is the completion.
            tasks: Tasks, ids of those that the reward was made with, or rows of `rows`; the workers that a row lists
                are those that its completion names, and otherwise the whole pool.
            sample_ids: With a journal, a repeated sample id makes no call twice. Unless given, each is new.
            previous: For revisions, the final (subtask, response) of the previous round.

        Raises:
            BudgetExhausted: a call does not fit into the budget any more.
            UsageError: a task is not known, or something that running or grading needs is not there.
        """
        ids = [f"reward-{secrets.token_hex(8)}" for _ in completions] if sample_ids is None else sample_ids
        before = ({"previous": pair} if pair else {} for pair in previous or repeat(None, len(completions)))
        asked = zip(tasks, completions, ids, before, strict=True)
        rollouts = [self.rollout(task, text_of(each), sample_id=name, **more) for task, each, name, more in asked]
        return await self.score(rollouts)

    def rollout(self, task: str | Task | Row, completion: str, **named: Any) -> Rollout:
        """A completion of a task, or of a row, to be scored; `named` are further fields of it.

        Raises:
            UsageError: the task is not known.
        """
        row: Row = task if isinstance(task, dict) else {"task": task}
        known = row["task"] if isinstance(row["task"], Task) else self.tasks.get(row["task"])
        if known is None:
            raise UsageError(f"unknown task {row['task']!r}: the reward was made with {len(self.tasks)} other tasks")
        own: dict[str, Any] = {"completion": completion, "task": known, "executions": self.executions}
        if {"shown", "true"} <= row.keys():
            numbers = dict(zip(row["shown"], row["true"], strict=True))
            own["offer"] = WorkerListing.of(self.pool.subset(sorted(row["true"])), numbers)
        if row.get("previous"):
            own["previous"] = tuple(row["previous"])
        return Rollout(**{**own, **named})

    def sync(self, completions: Sequence[Any], tasks: Sequence[str | Task | Row], **named: Any) -> list[Scored]:
        """The same from a thread without an event loop. Calls from several threads share one loop and its limit.

        The loop has a thread of its own, in which the pool stays open until `close`.

        Raises:
            UsageError: an event loop is running in this thread; or as in `__call__`.
            BudgetExhausted: as in `__call__`.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            future = self._started().start_task_soon(partial(self, completions, tasks, **named))
            try:
                return future.result()
            except BaseException:  # an interrupt while waiting ends the work
                future.cancel()
                raise
        raise UsageError("reward.sync cannot wait inside a running event loop; write `await reward(...)` there instead")

    async def score(self, rollouts: Sequence[Rollout]) -> list[Scored]:
        """Score rollouts together.

        Raises:
            BudgetExhausted, UsageError: as in `__call__`.
        """
        loop = asyncio.get_running_loop()
        clock, limit = loop.time, self._limits.setdefault(loop, asyncio.Semaphore(self.concurrency))

        async def in_turn(rollout: Rollout) -> Scored:
            async with limit:
                return await self.score_one(rollout)

        end = clock() + (math.inf if self.deadline_s is None else self.deadline_s)
        try:
            async with self.pool.open(), asyncio.TaskGroup() as group:
                running = [group.create_task(in_turn(rollout)) for rollout in rollouts]
                pending = set(running)
                while pending and clock() < end:
                    _, pending = await asyncio.wait(pending, timeout=min(1.0, end - clock()))
                    if pending and self.on_wait is not None:
                        self.on_wait(len(pending), len(running))
                for late in pending:
                    late.cancel()
        except BaseExceptionGroup as failures:
            spent, _ = failures.split(BudgetExhausted)
            raise (spent or failures).exceptions[0] from failures
        failed = Scored("failed", problems=(f"no result within the deadline of {self.deadline_s} s",))
        return [failed if work.cancelled() else work.result() for work in running]

    async def score_one(self, rollout: Rollout) -> Scored:
        """Parse a completion, run its workflow and grade the answers, without a limit of workflows in flight.

        Raises:
            BudgetExhausted, UsageError: as in `__call__`; also where the journal cannot be written.
        """
        executions = [
            each if each.outcome == "failed" else replace(each, score=self._worth(each, rollout.task))
            for each in await self._executions(rollout)
        ]
        scores = [each.score for each in executions if each.score is not None]
        mean = sum(scores) / len(scores) if scores else None
        return replace(executions[0], score=mean, again=tuple(executions[1:]))

    async def trl(
        self,
        completions: Sequence[Any],
        *,
        task: Sequence[str],
        prompts: Sequence[Any] | None = None,
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
        own: Row = {"task": task, "row": task, "split": ["train"] * len(task)}  # one's own data may have only `task`
        columns["prompt"] = prompts  # as TRL calls the prompts of rows
        own |= {name: each for name, each in columns.items() if isinstance(each, list) and len(each) == len(task)}
        rows = [dict(zip(own, values, strict=True)) for values in zip(*own.values(), strict=True)]
        if completion_ids is not None and self.end_of_text is None:
            raise UsageError(
                "the reward does not know which tokens end a completion, so it cannot tell one that was cut; make it "
                "with Reward(..., end_of_text=tokenizer.eos_token_id)"
            )
        ends = self.end_of_text or ()
        cut = [not ids or ids[-1] not in ends for ids in completion_ids or ()] or [False] * len(rows)
        items = list(zip(rows, map(text_of, completions), cut, strict=True))
        (rewards, metrics), part = await self.processes.on_all(items, lambda every: self._batch(every, step))
        for name, value in metrics.items() if log_metric is not None else ():
            log_metric(name, value)
        return rewards[part]

    async def samples(self, items: Iterable[Item], step: int | None) -> list[Sample]:
        """Score the completions of a trainer's rows at a step.

        Without a step, each batch with a row counts as one, and a sample has the `step` of its row.

        Raises:
            BudgetExhausted, UsageError: as in `__call__`.
        """
        rank = os.environ.get("RANK", "0")  # other processes may have completions of the same row
        mine = "" if rank == "0" else f"{rank}-"
        asked = list(items)
        if step is None:
            self._visits.update({row["row"] for row, _, _ in asked})
        seen, rollouts = Counter[Any](), list[Rollout]()
        for row, text, cut in asked:
            number, split = row["row"], row["split"]
            at = self._visits[number] - 1 if step is None else step
            name = f"{self.seed}/{split}/{at}/{number}/{mine}{seen[number]}"
            own: dict[str, Any] = {} if split == "train" else {"executions": 1}
            own["options"] = {"ask_again": True}  # a model on a GPU need not write the same again
            rollouts.append(self.rollout(row, text, cut=cut, sample_id=name, **own))
            seen[number] += 1
        found = zip(asked, rollouts, await self.score(rollouts), strict=True)
        return [
            Sample(row.get("step", 0) if step is None else step, row, rollout, scored)
            for (row, _, _), rollout, scored in found
        ]

    def rows(self, tasks: Iterable[Task] | None = None, *, split: str = "train") -> list[Row]:
        """The rows that a trainer reads, one for each task: of those that the reward was made with, unless given.

        Rows of a `split` other than "train" are run once each, and may have no score.

        Raises:
            UsageError: no worker can be offered.
        """
        return [
            self.row(task, number, list_workers(self.conductor, self.pool, str(number)), split=split)
            for number, task in enumerate(self.tasks.values() if tasks is None else tasks)
        ]

    def row(self, task: Task, number: int, offer: WorkerListing, *, split: str = "train") -> Row:
        """The row of a task: the prompt's messages, and what the reward needs to know of them."""
        rules = {"question_for": self.options.get("question_for", "all"), "access": self.conductor.access}
        messages = self.prompt.ask(task.question, offer, max_steps=self.max_steps, **rules)
        return {
            "prompt": [dict(each) for each in messages],
            "row": number,
            "task": task.id,
            "split": split,
            "shown": list(offer.indices),
            "true": [offer.pool_indices[index] for index in offer.indices],
        }

    def close(self) -> None:
        """Close what it has opened: the journal, and the thread of `sync` with its connections."""
        with self._lock:
            self._loop = None
            self._opened.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self) -> BlockingPortal:
        """The event loop of `sync`, which starts with the first call. The pool is open in it."""
        with self._lock:
            if self._loop is None:
                self._loop = self._opened.enter_context(start_blocking_portal())
                self._opened.enter_context(self._loop.wrap_async_context_manager(self.pool.open()))
                self._opened.callback(atexit.unregister, atexit.register(self.close))
            return self._loop

    async def _batch(self, items: list[Item], step: int | None) -> tuple[list[float | None], dict[str, float]]:
        """The reward of each row with its completion, and what is logged; listeners are told."""
        samples = await self.samples(items, step)
        scored = [sample.scored for sample in samples]
        metrics = metrics_of(scored)
        self._spent += [run.list_usd for each in scored for run in each.runs]
        # What evaluations cost is logged with the next training batch, so that a sum over them is all.
        if any(row["split"] == "train" for row, _, _ in items):
            require_scores(scored, step or 0)
            if (usd := total_usd(self._spent)) is not None:
                metrics["usd"] = usd
            self._spent.clear()
        for listener in self.listeners:
            metrics |= listener(samples) or {}
        return [sample.reward for sample in samples], metrics

    async def _executions(self, rollout: Rollout) -> list[Scored]:
        """All executions of a completion, without their scores."""
        previous, offer = rollout.previous, rollout.offer or WorkerListing.of(self.pool)
        checked = analyze(
            rollout.completion,
            pool=offer,
            max_steps=self.max_steps,
            recursion=previous is not None,
            access=self.conductor.access,
            depth_left=0,
        )
        if rollout.cut or not checked.ok:
            codes = tuple(found.code for found in checked.diagnostics if found.is_error)
            return [Scored("invalid", problems=(CUT,) if rollout.cut else codes)]
        if checked.workflow is None:
            assert previous is not None  # only a revision may have three empty lists
            return [await self._graded(Scored("unjudged", kept=True), rollout.task, previous[1])]
        workflow = ablated(offer.to_pool(checked.workflow), **asdict(self.ablation))
        names = [rollout.sample_id, *(f"{rollout.sample_id}/{number}" for number in range(1, rollout.executions))]
        return [await self._executed(workflow, rollout, name) for name in names]

    def _worth(self, scored: Scored, task: Task) -> float | None:
        worth = self.values(scored, task)
        try:
            number = None if worth is None else float(worth)
        except (TypeError, ValueError):
            number = math.nan
        if number is not None and not math.isfinite(number):
            raise UsageError(f"the reward of a completion must be a finite number or None (got {worth!r})")
        return number

    async def _executed(self, workflow: Workflow, rollout: Rollout, name: str) -> Scored:
        own = {"sample_id": name, "run_id": name, "previous": rollout.previous}
        options: dict[str, Any] = {**self.options, **rollout.options, **own}
        try:
            record = await run(workflow, rollout.task.question, self.pool, **options)
        except RunFailed as error:
            if isinstance(error.cause, JournalFailure):  # this machine's fault, which every further run would have
                raise error.cause from error
            return Scored("wrong" if error.is_unanswered else "failed", workflow, error.run, problems=(str(error),))
        assert record.answer is not None  # a run that is done has an answer
        return await self._graded(Scored("unjudged", workflow, record), rollout.task, record.answer)

    async def _graded(self, answered: Scored, task: Task, answer: str) -> Scored:
        verdict = await grade(task, answer, sandbox=self.sandbox)
        problems = (verdict.reason,) if verdict.outcome == "unjudged" else ()
        return replace(answered, outcome=verdict.outcome, verdict=verdict, problems=problems)
