"""Evaluating: policies over tasks, several times each, every cell a run of its own.

Cells come task by task, all policies on a task before the next one, so that what is there after an interruption can be
compared. A cell whose run fails is a result like any other; a spent budget ends the evaluation, and the cells that it
stopped are left for the next time.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from wfdsl.conductor.policy import Solution
from wfdsl.interpreter.budget import Budget, BudgetTracker
from wfdsl.interpreter.record import BudgetExhausted, RunFailed
from wfdsl.interpreter.running import RunOptions
from wfdsl_rl.evaluation.cell import Cell, CellKey
from wfdsl_rl.evaluation.grading import Grading
from wfdsl_rl.evaluation.latency import latency_of
from wfdsl_rl.evaluation.naming import domain_of, named_tasks, new_evaluation_id, run_id_of, seed_of, task_hash
from wfdsl_rl.strategies import is_computed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from wfdsl.conductor.policy import Policy
    from wfdsl.interpreter.budget import BudgetTracker
    from wfdsl.interpreter.journal import Journal
    from wfdsl.interpreter.record import Run
    from wfdsl.workers.pool import Pool
    from wfdsl_rl.evaluation.grading import Judge
    from wfdsl_rl.tasks.task import Task


_ADVICE: Final = re.compile(r"; (?:`wfdsl resume [^`]*` [^;]*|run it with a larger budget|once that is mended, [^;]*)$")
"""How to go on with a run alone: an evaluation goes on as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What is to be evaluated: policies x tasks x repeats."""

    policies: Mapping[str, Policy]
    """By the names under which results list them."""
    tasks: Sequence[Task]
    pool: Pool
    repeats: int = 1
    seed: int | None = 0
    """What the seeds of all runs follow from; None: workers draw as they like."""
    id: str = field(default_factory=new_evaluation_id)
    """Tells the runs of this evaluation from all others in the journal."""
    options: RunOptions = field(default_factory=RunOptions)
    """What every run is told besides, such as `timeout_s` or `max_depth`."""

    def cells(self) -> list[CellKey]:
        """The cells, in the order in which they are taken on.

        Raises:
            UsageError: two tasks have the same name.
        """
        rounds = product(named_tasks(self.tasks), range(self.repeats), self.policies)
        return [CellKey(policy, task, repeat) for task, repeat, policy in rounds]


async def evaluate(
    evaluation: Evaluation,
    *,
    keep: Callable[[Cell], None],
    done: Collection[CellKey] = (),
    journal: Journal | None = None,
    budget: Budget | BudgetTracker | None = None,
    concurrency: int = 32,
    judge: Judge | None = None,
) -> str:
    """Evaluate, and give why it stopped early: empty if every cell has its result.

    Args:
        evaluation: What is to be evaluated.
        keep: Takes each cell as soon as it is there.
        done: The cells that have a result already.
        journal: Where each call is kept, so that a cell can be gone on with.
        budget: The most that may be spent on all cells together, or its account.
        concurrency: How many cells are worked on at a time.
        judge: Judges answers in place of `wfdsl_rl.grade`.

    Raises:
        UsageError: a policy cannot work on the pool, or a task cannot be judged at all.
    """
    work = _Work(evaluation, keep, _options(evaluation.options, journal, budget))
    known = set(done)
    left = iter([key for key in evaluation.cells() if key not in known])
    try:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(evaluation.pool.open())
            for policy in evaluation.policies.values():
                if hasattr(policy, "open"):
                    await stack.enter_async_context(policy.open())
            async with asyncio.TaskGroup() as group:
                grading = Grading(group, judge)
                for _ in range(concurrency):
                    group.create_task(work.take(left, grading))
    except BaseExceptionGroup as several:
        raise _first(several) from several
    return work.stopped


class _Work:
    """The cells of one evaluation on their way."""

    def __init__(self, evaluation: Evaluation, keep: Callable[[Cell], None], options: RunOptions) -> None:
        self._evaluation = evaluation
        self._keep = keep
        self._options = options
        self._tasks = named_tasks(evaluation.tasks)
        self._hashes = {name: task_hash(task) for name, task in self._tasks.items()}
        self._open: dict[str, int] = {}
        """How many cells of each task are being worked on."""
        self.stopped = ""

    async def take(self, left: Iterator[CellKey], grading: Grading) -> None:
        """Work on one cell after the other, until there are none or the budget is spent."""
        for key in left:
            if self.stopped:
                return
            self._open[key.task] = self._open.get(key.task, 0) + 1
            cell = await self._cell(key, grading)
            if cell is not None:
                self._keep(cell)
            self._close(key.task, grading)

    def _close(self, name: str, grading: Grading) -> None:
        self._open[name] -= 1
        if not self._open[name]:
            del self._open[name]
            grading.forget(name)

    async def _cell(self, key: CellKey, grading: Grading) -> Cell | None:
        evaluation, task = self._evaluation, self._tasks[key.task]
        options: RunOptions = {
            **self._options,
            "run_id": run_id_of(evaluation.id, key, self._hashes[key.task]),
            "seed": seed_of(evaluation.seed, key),
            "origin": {"evaluation": evaluation.id, "policy": key.policy, "task": key.task, "repeat": str(key.repeat)},
        }
        try:
            solution = await evaluation.policies[key.policy].solve(task.question, evaluation.pool, **options)
        except BudgetExhausted as error:
            self.stopped = _cause(error)
            return None
        except RunFailed as error:
            return self._result(key, Solution(error.run), outcome="failed", reason=_cause(error))
        if solution.answer is None:
            return self._result(key, solution, outcome="failed", reason="the policy gave no answer")
        verdict = await grading.verdict(key.task, task, solution.answer)
        return self._result(key, solution, outcome=verdict.outcome, extracted=verdict.extracted, reason=verdict.reason)

    def _result(self, key: CellKey, solution: Solution, **judged: Any) -> Cell:
        task, usage, workers = self._tasks[key.task], solution.usage, _answers(solution.rounds)
        replayed = _replayed(solution.rounds)
        return Cell(
            **key._asdict(),
            **judged,
            task_hash=self._hashes[key.task],
            source=task.source,
            domain=domain_of(task),
            answer=solution.answer,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            list_usd=solution.list_usd,
            paid_usd=solution.paid_usd,
            latency_s=latency_of(solution, self._evaluation.pool, replayed=replayed),
            calls=sum(workers.values()),
            completions=sum(len(note.completions) for note in solution.log),
            replayed=replayed,
            workers=workers,
            rounds=tuple(run.workflow for run in solution.rounds),
            run_id=solution.run.id,
        )


def _cause(error: BudgetExhausted | RunFailed) -> str:
    return _ADVICE.sub("", str(error))


def _options(options: RunOptions, journal: Journal | None, budget: Budget | BudgetTracker | None) -> RunOptions:
    account = BudgetTracker(budget) if isinstance(budget, Budget) else budget
    return {**options, "journal": journal, "budget": account}


def _answers(runs: Sequence[Run]) -> dict[str, int]:
    """Workers' answers in runs and in the runs inside them, by worker."""
    counts: dict[str, int] = {}
    for run in runs:
        for step in run.steps:
            if step.nested:
                for name, count in _answers(step.nested).items():
                    counts[name] = counts.get(name, 0) + count
            elif step.status == "done" and not is_computed(step.worker):
                counts[step.worker_name] = counts.get(step.worker_name, 0) + 1
    return counts


def _replayed(runs: Sequence[Run]) -> int:
    return sum(_replayed(step.nested) if step.nested else step.replayed for run in runs for step in run.steps)


def _first(several: BaseExceptionGroup[BaseException]) -> BaseException:
    first = several.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
