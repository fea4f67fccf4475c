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
import math
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from itertools import repeat
from pathlib import Path
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from wfdsl.api import analyze
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.listing import WorkerListing, list_workers
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
from wfdsl_rl.loop_thread import LoopThread
from wfdsl_rl.processes import ALONE, Processes, rank_prefix
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
    number_of,
    offer_of,
    require_scores,
    row_of,
    text_of,
)

_Item: TypeAlias = tuple[dict[str, Any], str, bool]
"""A row with its completion, and whether that was cut."""
Listener: TypeAlias = Callable[[Sequence[Sample]], Mapping[str, float] | None]
_NOT_SENT: Final = frozenset({"tasks", "budget", "journal", "options", "on_wait", "processes"})
"""Arguments that another process does not get as they are."""
_TOLD_EVERY_S: Final = 1.0
"""How often `on_wait` is called."""


class Reward:
    """Scores completions: it parses them, runs their workflows on a pool and grades the answers."""

    def __init__(
        self,
        pool: Pool | str,
        tasks: Iterable[Task],
        *,
        prompt: Prompt | str = DEFAULT_PROMPT,
        conductor: ConductorConfig | None = None,
        max_steps: int = DEFAULT_MAX_STEPS,
        values: RewardValues | RewardFunction | None = None,
        ablation: Ablation | None = None,
        executions: int = 1,
        end_of_text: int | Collection[int] | None = None,
        concurrency: int = 64,
        deadline_s: float | None = None,
        budget: Budget | BudgetTracker | None = None,
        journal: Journal | str | Path | None = None,
        options: RunOptions | None = None,
        sandbox: Sandbox | None = None,
        seed: int = 0,
        name: str = "",
        listeners: Iterable[Listener] = (),
        on_wait: Callable[[int, int], None] | None = None,
        processes: Processes = ALONE,
    ) -> None:
        """A reward of tasks on a pool.

        Args:
            pool: The workers, or the name or file of a pool.
            tasks: The questions with their gold answers; ids must differ.
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
            budget: The most that may be spent on all runs, or the tracker of a budget. What the journal's runs have
                been charged counts towards a budget, but not towards a tracker.
            journal: Where each call is kept, so that a repeated sample id makes no call twice.
            options: Arguments of `wfdsl.run`, such as `timeout_s`, or a `limiter` that other runs share.
            sandbox: Where programs are graded; the shared one unless given.
            seed: Part of the sample ids of `trl`.
            name: Part of the sample ids of `trl`, such as the name of a training stage.
            listeners: Called with every batch of `trl`; figures that they return are logged with it.
            on_wait: Called about once a second with the number of workflows that a batch waits for, and with all.
            processes: The processes of the training; the first one scores the completions of all of them.

        Raises:
            UsageError: two tasks have the same id, or the pool or prompt cannot be read.
            JournalFailure: the journal cannot be opened.
        """
        self.pool = Pool.load(pool) if isinstance(pool, str) else pool
        self.tasks: dict[str, Task] = {}
        for task in tasks:
            if self.tasks.setdefault(task.id, task) is not task:
                raise UsageError(f"two tasks have the id {task.id!r}: ids must differ")
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
        self.name = name
        self.listeners = list(listeners)
        self.on_wait = on_wait
        self.processes = processes
        self._own = [Journal(journal)] if isinstance(journal, str | Path) else []
        kept = journal if isinstance(journal, Journal) else self._own[0] if self._own else None
        if kept is not None:
            self.options["journal"] = kept
        if budget is not None:
            self.options["budget"] = budget_tracker(budget, kept) if isinstance(budget, Budget) else budget
        self._thread = LoopThread()
        self._limits: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._visits = Counter[Any]()  # how often each row was scored, for trainers that do not say their step
        self._spent: list[float | None] = []  # list prices of runs since they were last logged; None: not known

    def __reduce__(self) -> tuple[Any, ...]:
        options: dict[str, Any] = {**self.options}
        journal, tracker = options.pop("journal", None), options.pop("budget", None)
        plain = {name: getattr(self, name) for name in signature(Reward).parameters.keys() - _NOT_SENT}
        plain |= {"options": options, "journal": None if journal is None else journal.path}
        budget = None if tracker is None else (tracker.budget, tracker.spent)
        return _received, (list(self.tasks.values()), plain, budget)

    async def __call__(
        self,
        completions: Sequence[Any],
        tasks: Sequence[str | Task],
        *,
        sample_ids: Sequence[str] | None = None,
        previous: Sequence[tuple[str, str] | None] | None = None,
        offers: Sequence[WorkerListing | None] | None = None,
    ) -> list[Scored]:
        """Score completions, each of the task at the same position.

        Args:
            completions: Texts, or chats as TRL has them, whose first message is the completion.
            tasks: Tasks, or ids of those that the reward was made with.
            sample_ids: With a journal, a repeated sample id makes no call twice. Unless given, each is new.
            previous: For revisions, the final (subtask, response) of the previous round.
            offers: The workers that each prompt lists; the whole pool unless given.

        Raises:
            BudgetExhausted: a call does not fit into the budget any more.
            UsageError: a task is not known, or something that running or grading needs is not there.
        """
        ids = [f"reward-{secrets.token_hex(8)}" for _ in completions] if sample_ids is None else sample_ids
        before, listed = previous or repeat(None, len(completions)), offers or repeat(None, len(completions))
        return await self.score(
            [
                Rollout(
                    completion=text_of(completion),
                    task=self._task(task),
                    sample_id=sample_id,
                    offer=offer,
                    previous=pair,
                    executions=self.executions,
                )
                for completion, task, sample_id, pair, offer in zip(
                    completions, tasks, ids, before, listed, strict=True
                )
            ]
        )

    def sync(self, completions: Sequence[Any], tasks: Sequence[str | Task], **named: Any) -> list[Scored]:
        """The same from a thread without an event loop. Calls from several threads share one loop and its limit.

        The loop has a thread of its own, in which the pool stays open until `close`.

        Raises:
            UsageError: an event loop is running in this thread; or as in `__call__`.
            BudgetExhausted: as in `__call__`.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._thread.run(self(completions, tasks, **named), self.pool)
        raise UsageError("reward.sync cannot wait inside a running event loop; write `await reward(...)` there instead")

    async def score(self, rollouts: Sequence[Rollout]) -> list[Scored]:
        """Score rollouts together.

        Raises:
            BudgetExhausted: a call does not fit into the budget any more.
            UsageError: something that running or grading needs is not there.
        """
        try:
            async with self.pool.open(), asyncio.TaskGroup() as group:
                running = [group.create_task(self._in_turn(rollout)) for rollout in rollouts]
                await self._finished(running)
        except BaseExceptionGroup as failures:
            spent, _ = failures.split(BudgetExhausted)
            raise (spent or failures).exceptions[0] from failures
        late = Scored("failed", problems=(f"no result within the deadline of {self.deadline_s} s",))
        return [late if work.cancelled() else work.result() for work in running]

    async def score_one(self, rollout: Rollout) -> Scored:
        """Parse a completion, run its workflow and grade the answers, without a limit of workflows in flight.

        Raises:
            BudgetExhausted: a call does not fit into the budget any more.
            UsageError: the pool cannot run workflows at all, the task's grader cannot be used, or the journal cannot
                be written.
        """
        problems, workflow = self._read(rollout)
        if problems:
            return self._valued(Scored("invalid", problems=problems), rollout.task)
        if workflow is None:
            assert rollout.previous is not None  # only a revision may have three empty lists
            return await self._graded(Scored("unjudged", kept=True), rollout.task, rollout.previous[1])
        names = [rollout.sample_id, *(f"{rollout.sample_id}/{number}" for number in range(1, rollout.executions))]
        first, *again = [await self._executed(workflow, rollout, name) for name in names]
        scores = [each.score for each in (first, *again) if each.score is not None]
        return replace(first, score=sum(scores) / len(scores) if scores else None, again=tuple(again))

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
        if completion_ids is not None and self.end_of_text is None:
            raise UsageError(
                "the reward does not know which tokens end a completion, so it cannot tell one that was cut; make it "
                "with Reward(..., end_of_text=tokenizer.eos_token_id)"
            )
        ends = self.end_of_text or ()
        cut = [not ids or ids[-1] not in ends for ids in completion_ids or ()] or [False] * len(rows)
        items = list(zip(rows, map(text_of, completions), cut, strict=True))
        (rewards, metrics), own = await self.processes.on_all(items, lambda every: self._batch(every, step))
        for name, value in metrics.items() if log_metric is not None else ():
            log_metric(name, value)
        return rewards[own]

    async def samples(
        self,
        rows: Sequence[Mapping[str, Any]],
        texts: Sequence[str],
        step: int | None,
        cut: Sequence[bool] | None = None,
    ) -> list[Sample]:
        """Score the completions of a trainer's rows; the reward of each is its score times the row's weight.

        Args:
            rows: One for each completion.
            texts: The completions.
            step: The optimisation step; None: not known, and each batch with a row counts as one.
            cut: Whether each completion was cut; none was, unless given.

        Raises:
            BudgetExhausted, UsageError: as in `__call__`.
        """
        seen, rollouts, places = Counter[Any](), list[Rollout](), list[int]()
        if step is None:
            self._visits.update({number_of(row) for row in rows})
        for row, text, is_cut in zip(rows, texts, cut or [False] * len(rows), strict=True):
            number, split = number_of(row), row.get("split", "train")
            at = self._visits[number] - 1 if step is None else step
            group = "/".join(map(str, [self.seed, *filter(None, [self.name]), split, at, number]))
            places.append(seen[number])
            rollouts.append(
                Rollout(
                    completion=text,
                    cut=is_cut,
                    task=self._task(row["task"]),
                    sample_id=f"{group}/{rank_prefix()}{seen[number]}",
                    offer=offer_of(row, self.pool) if "true" in row else None,
                    previous=tuple(row["previous"]) if row.get("previous") else None,
                    executions=self.executions if split == "train" else 1,
                )
            )
            seen[number] += 1
        found = []
        for row, rollout, place, scored in zip(rows, rollouts, places, await self.score(rollouts), strict=True):
            worth = None if scored.score is None else float(row.get("weight", 1.0)) * scored.score
            found.append(Sample(step or 0, row, place, rollout.completion, scored, worth, rollout.task.question))
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
                max_steps=self.max_steps,
                access=self.conductor.access,
                question_for=self.options.get("question_for", "all"),
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def _task(self, task: str | Task) -> Task:
        if isinstance(task, Task):
            return task
        if task not in self.tasks:
            raise UsageError(f"unknown task {task!r}: the reward was made with {len(self.tasks)} other tasks")
        return self.tasks[task]

    async def _batch(self, items: list[_Item], step: int | None) -> tuple[list[float | None], dict[str, float]]:
        """The reward of each row with its completion, and what is logged; listeners are told."""
        trains = any(row.get("split", "train") == "train" for row, _, _ in items)
        # In an evaluation, processes repeat rows so that each has as many; they are asked once.
        asked = items if trains else list({number_of(item[0]): item for item in reversed(items)}.values())
        rows, texts, cut = zip(*asked, strict=True)
        samples = await self.samples(rows, texts, step, cut)
        scored = [sample.scored for sample in samples]
        if trains:
            require_scores(scored, step or 0)
        metrics = metrics_of(scored)
        metrics.pop("usd", None)  # logged with training batches only, so that a sum over them is everything
        self._spent.extend(run.list_usd for each in scored for run in each.runs)
        if trains and (usd := total_usd(self._spent)) is not None:
            metrics["usd"] = usd
        if trains:
            self._spent.clear()
        for listener in self.listeners:
            metrics |= listener(samples) or {}
        if trains:
            return [sample.reward for sample in samples], metrics
        found = {number_of(sample.row): sample.reward for sample in samples}
        return [found[number_of(row)] for row, _, _ in items], metrics

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

    async def _in_turn(self, rollout: Rollout) -> Scored:
        limit = self._limits.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self.concurrency))
        async with limit:
            return await self.score_one(rollout)

    def _read(self, rollout: Rollout) -> tuple[tuple[str, ...], Workflow | None]:
        """The codes of what makes a completion invalid, and the workflow that would be run.

        Without either, the completion keeps the previous round's answer.
        """
        if rollout.cut:
            return (CUT,), None
        offer = rollout.offer or WorkerListing.of(self.pool)
        checked = analyze(
            rollout.completion,
            pool=offer,
            max_steps=self.max_steps,
            recursion=rollout.previous is not None,
            access=self.conductor.access,
            depth_left=0,
        )
        if not checked.ok:
            return tuple(found.code for found in checked.diagnostics if found.is_error), None
        if checked.workflow is None:
            return (), None
        return (), self.ablation.applied(offer.to_pool(checked.workflow))

    async def _executed(self, workflow: Workflow, rollout: Rollout, name: str) -> Scored:
        options = RunOptions(**self.options)
        options["sample_id"] = options["run_id"] = name
        options["previous"] = rollout.previous
        if rollout.origin:
            options["origin"] = rollout.origin
        if rollout.budget is not None:
            options["budget"] = rollout.budget
        try:
            record = await run(workflow, rollout.task.question, self.pool, **options)
        except RunFailed as error:
            if isinstance(error.cause, JournalFailure):  # this machine's fault, which every further run would have
                raise error.cause from error
            outcome = Scored("wrong" if error.is_unanswered else "failed", workflow, error.run, problems=(str(error),))
            return self._valued(outcome, rollout.task) if error.is_unanswered else outcome
        assert record.answer is not None  # a run that is done has an answer
        return await self._graded(Scored("unjudged", workflow, record), rollout.task, record.answer)

    async def _graded(self, answered: Scored, task: Task, answer: str) -> Scored:
        verdict = await grade(task, answer, sandbox=self.sandbox)
        problems = (verdict.reason,) if verdict.outcome == "unjudged" else ()
        return self._valued(replace(answered, outcome=verdict.outcome, verdict=verdict, problems=problems), task)

    def _valued(self, scored: Scored, task: Task) -> Scored:
        values = self.values
        return replace(scored, score=values.of(scored) if isinstance(values, RewardValues) else values(scored, task))


def _received(tasks: list[Task], plain: dict[str, Any], budget: tuple[Any, Any] | None) -> Reward:
    """The reward that `Reward.__reduce__` describes."""
    return Reward(tasks=tasks, budget=None if budget is None else BudgetTracker(*budget), **plain)
