"""One worker alone, with its usual or a larger token limit; and which workers a baseline asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from wfdsl.conductor.policy import Solution
from wfdsl.errors import UsageError
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.running import run
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Call, Reply, Worker, WorkerPool
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool

SOLVE: Final = "Solve the task and give the final answer."
"""What a worker is asked that solves the task by itself, in every baseline; our choice."""

_GYM: Final = "gym"
_GYM_TASKS: Final = "gym/seven@train"


def alone(worker: int) -> Workflow:
    """The workflow of one call."""
    return Workflow((Step(worker, SOLVE),))


def workers_of(pool: Pool) -> tuple[int, ...]:
    """The workers that baselines ask, by index: all but the Conductors, which would write workflows of their own.

    Raises:
        UsageError: the pool has Conductors only.
    """
    found = tuple(index for index in pool.indices if index not in pool.conductors)
    if not found:
        raise UsageError(f"pool {pool.name!r} has Conductors only: a baseline asks plain workers, so give it one")
    return found


def own_tasks(pool: Pool) -> str | None:
    """The name of the training tasks of a pool of simulated workers; None for all other pools."""
    return _GYM_TASKS if any(entry.provider == _GYM for entry in pool) else None


@dataclass(frozen=True, slots=True)
class LongContext:
    """One call whose reply may be `factor` times as long as the worker's entry says."""

    worker: int = 0
    factor: int = 5

    async def solve(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Ask once; options as for `wfdsl.run`.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
        """
        return Solution(await run(alone(self.worker), question, _WidePool(pool, self.factor), **options))

    def most_calls(self, pool: Pool) -> int:  # noqa: ARG002  (as every policy that knows)
        """Calls of workers for a question."""
        return 1

    def describe(self) -> dict[str, Any]:
        """What it is, as plain values."""
        return {"kind": "long-context", "worker": self.worker, "factor": self.factor}


class _WidePool:
    """A pool whose workers may write longer replies. It uses the pool's own clients and servers."""

    def __init__(self, pool: Pool, factor: int) -> None:
        self._pool = pool
        self._factor = factor

    @property
    def name(self) -> str:
        return self._pool.name

    @property
    def indices(self) -> tuple[int, ...]:
        return self._pool.indices

    @property
    def conductors(self) -> tuple[int, ...]:
        return self._pool.conductors

    def entry(self, index: int) -> WorkerEntry:
        """The entry with the wider limit, which budgets reserve and the journal tells apart."""
        entry = self._pool.entry(index)
        return entry.model_copy(update={"max_tokens": entry.max_tokens * self._factor})

    def worker(self, index: int) -> Worker:
        return _Wide(self._pool.worker(index), self.entry(index).max_tokens)

    def subset(self, indices: Iterable[int]) -> WorkerPool:
        return _WidePool(self._pool.subset(indices), self._factor)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[_WidePool]:
        async with self._pool.open():
            yield self


class _Wide:
    """A worker with another token limit in each call."""

    def __init__(self, worker: Worker, max_tokens: int) -> None:
        self.worker = getattr(worker, "worker", worker)
        """The worker itself, by which the layers around it tell whose limits count."""
        self._policed = worker
        self._max_tokens = max_tokens

    async def __call__(self, call: Call) -> Reply:
        return await self._policed(call._replace(settings={**call.settings, "max_tokens": self._max_tokens}))
