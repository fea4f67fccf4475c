"""Validation tasks, and the results of workflows on them: what routers are fitted on.

A workflow is run on a task once: within a process the result is kept, and across processes the journal has the calls,
since a run's id follows from pool, workflow, task and seed. Each result says what it cost, wherever it came from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast
from weakref import WeakKeyDictionary, WeakValueDictionary
from zlib import crc32

from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.single_worker import own_tasks
from wfdsl.evaluation.fingerprints import hash_of, pool_description, task_hash
from wfdsl.grading.grade import grade
from wfdsl.interpreter.record import RunFailed, total_usd, workflow_to_list
from wfdsl.interpreter.running import RunOptions, run
from wfdsl.language.workflow import Workflow
from wfdsl.tasks.loading import load_tasks
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool

TASKS: Final = 960
"""Validation tasks that are used unless a limit is given: as many as a Conductor is trained on. Source: arXiv
2512.04388, section 4."""
_AT_ONCE: Final = 32
_PASSED_ON: Final = (
    "budget", "journal", "timeout_s", "step_timeout_s", "longest_wait_s", "limiter", "question_for", "max_depth",
)  # fmt: skip
"""What a measurement takes over from the run for whose sake it is made."""


@dataclass(frozen=True, slots=True)
class FitCost:
    """What fitting has cost, as if nothing had come from the journal."""

    calls: int = 0
    tokens: int = 0
    usd: float | None = 0.0
    """US dollars by the price list; None if a price is not known."""

    def __add__(self, other: FitCost) -> FitCost:
        return FitCost(self.calls + other.calls, self.tokens + other.tokens, total_usd([self.usd, other.usd]))


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a workflow on a validation task."""

    run_id: str
    reply: str | None
    """The answer; None if the run failed."""
    cost: FitCost
    graded: bool = False
    right: bool | None = None
    """None if the run failed, if its answer could not be judged, or if it was not graded."""


class Validation:
    """Tasks to fit on."""

    def __init__(self, tasks: Sequence[Task], *, seed: int = 0) -> None:
        """Random numbers follow from the seed.

        Raises:
            UsageError: there are no tasks.
        """
        if not tasks:
            raise UsageError("there are no validation tasks: a router is fitted on tasks with gold answers")
        self.tasks = tuple(tasks)
        self.seed = seed
        self.hashes = tuple(task_hash(task) for task in self.tasks)
        self._results: dict[str, Result] = {}
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @property
    def key(self) -> str:
        """What it is, as a hash: tasks and seed."""
        return hash_of([*self.hashes, self.seed])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Validation) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    async def results(
        self,
        workflows: Iterable[Workflow],
        pool: Pool,
        options: RunOptions,
        tasks: Sequence[int] | None = None,
        *,
        graded: bool = True,
    ) -> list[list[Result]]:
        """Results by workflow, then by task; `tasks` are the indices of those that are wanted, all unless given.

        Raises:
            BudgetExhausted, UsageError: as `results_of_pairs` does.
        """
        wanted = range(len(self.tasks)) if tasks is None else tasks
        pairs = ([(workflow, at) for at in wanted] for workflow in workflows)
        return [await self.results_of_pairs(each, pool, options, graded=graded) for each in pairs]

    async def results_of_pairs(
        self, pairs: Sequence[tuple[Workflow, int]], pool: Pool, options: RunOptions, *, graded: bool = True
    ) -> list[Result]:
        """Results of workflows on tasks. What is known is not run again; one caller at a time asks.

        Runs of a task have the same seed under every workflow, so that differences between workflows are less noisy.

        Raises:
            BudgetExhausted: the budget does not cover the next call.
            UsageError: a workflow cannot run on the pool, or a task cannot be graded at all.
        """
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock, pool.open():
            return await _Measuring(self, pool, options, graded=graded).on(pairs)


class _Measuring:
    """One caller's measurements on one pool."""

    def __init__(self, validation: Validation, pool: Pool, options: RunOptions, *, graded: bool) -> None:
        self._validation = validation
        self._pool = pool
        self._pool_hash = pool_description(pool)["hash"]
        self._options = {name: value for name, value in options.items() if name in _PASSED_ON}
        self._seeded = options.get("seed") is not None
        self._graded = graded
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def on(self, pairs: Sequence[tuple[Workflow, int]]) -> list[Result]:
        steps = {workflow: workflow_to_list(workflow) for workflow, _ in pairs}
        try:
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(self._on_one(workflow, steps[workflow], at)) for workflow, at in pairs]
        except BaseExceptionGroup as several:
            raise _first(several) from several
        return [task.result() for task in asked]

    def _run_id(self, steps: object, task: str) -> str:
        shown = self._options.get("question_for", "all")
        return f"fit-{hash_of([self._pool_hash, steps, task, self._validation.seed, self._seeded, shown])[:20]}"

    async def _on_one(self, workflow: Workflow, steps: object, at: int) -> Result:
        task, content, known = self._validation.tasks[at], self._validation.hashes[at], self._validation._results
        run_id = self._run_id(steps, content)
        async with self._turns:
            result = known.get(run_id)
            if result is None:
                result = known[run_id] = await self._measured(workflow, task, content, run_id)
            if self._graded and not result.graded:
                result = known[run_id] = replace(result, graded=True, right=await _verdict(task, result.reply))
        return result

    async def _measured(self, workflow: Workflow, task: Task, content: str, run_id: str) -> Result:
        seed = crc32(f"fit {self._validation.seed} {content}".encode()) & 0x7FFFFFFF if self._seeded else None
        options = cast("RunOptions", {**self._options, "run_id": run_id, "sample_id": run_id, "seed": seed})
        options["origin"] = {"fit": task.id}
        unanswered = False
        try:
            record = await run(workflow, task.question, self._pool, **options)
        except RunFailed as error:
            record, unanswered = error.run, error.is_unanswered
        calls = sum(step.status == "done" for step in record.steps)
        cost = FitCost(calls, record.usage.total_tokens, record.list_usd)
        if unanswered:
            return Result(run_id, None, cost, graded=True, right=False)
        return Result(run_id, record.answer if record.status == "done" else None, cost)


async def _verdict(task: Task, reply: str | None) -> bool | None:
    if reply is None:
        return None
    outcome = (await grade(task, reply)).outcome
    return None if outcome == "unjudged" else outcome == "right"


_KNOWN: WeakValueDictionary[str, Validation] = WeakValueDictionary()


def validation_for(name: str, pool: Pool, source: str | None, *, limit: int = TASKS, seed: int = 0) -> Validation:
    """The validation tasks of a baseline: from a file or data set, or a gym's own training questions.

    The same tasks are the same object, so that policies share what they measure.

    Raises:
        UsageError: none are named and the pool is none of the gym's, or they cannot be read.
    """
    named = source or own_tasks(pool)
    if named is None:
        raise UsageError(
            f"--policy {name}: it is fitted on validation tasks, and pool {pool.name!r} has none of its own: "
            f"write {name}:validation=FILE, where FILE holds tasks that are not evaluated"
        )
    found = Validation(load_tasks(named, limit=limit, seed=seed), seed=seed)
    return _KNOWN.setdefault(found.key, found)


def _first(several: BaseExceptionGroup[BaseException]) -> BaseException:
    first = several.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
