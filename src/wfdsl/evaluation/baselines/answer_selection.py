"""A last step that is computed: it selects one of the responses before it.

A vote or a choice among attempts is a workflow like any other, except that no worker is asked in the last step. A
computed worker does it, at a worker index of its own next to the pool's, and costs nothing. So the run's record holds
every call, and its answer is the last step's response.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from wfdsl.conductor.policy import Solution
from wfdsl.evaluation.baselines.baseline import SOLVE
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.running import run
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Call, Reply, Worker
from wfdsl.workers.entry import Prices, WorkerEntry
from wfdsl.workers.pool import Pool

Pick: TypeAlias = Callable[[Sequence[str]], Awaitable[int]]
"""From the responses, in order, to the index of the one to give."""

PICKER: Final = -2
"""The picker's worker index. No workflow that is parsed can name it, and -1 is a Conductor's."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Attempts that see nothing, and the choice of one of them."""

    workers: Sequence[int]
    """Who attempts."""
    pick: Pick
    rule: str
    """How it picks, in words."""
    name: str
    """What picks, with all that its choice depends on."""

    async def run(self, question: Question, pool: Pool, **options: Any) -> Solution:
        """Run the attempts, and pick; options as for `wfdsl.run`.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
        """
        last = Step(PICKER, self.rule, tuple(range(len(self.workers))))
        workflow = Workflow((*(Step(worker, SOLVE) for worker in self.workers), last))
        picker = _Picker(self.pick, attempts=len(self.workers))
        return Solution(await run(workflow, question, _PickingPool(pool, picker, self.name), **options))


class _Picker:
    """The worker that picks: it answers with one of the responses that it is shown, word for word."""

    conductor = True
    """As of a Conductor node, only the calls that it makes are charged and journaled, and it makes none."""

    def __init__(self, pick: Pick, *, attempts: int) -> None:
        """`attempts` is how many responses it is shown; what comes before them belongs to the question."""
        self._pick = pick
        self._attempts = attempts

    async def __call__(self, call: Call) -> Reply:
        said = [message["content"] for message in call.messages if message["role"] == "assistant"]
        responses = said[-self._attempts :]
        return Reply(responses[await self._pick(responses)])


class WrappedPool:
    """A pool that is another one in all but what a subclass changes. It uses its clients and servers."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @property
    def name(self) -> str:
        return self._pool.name

    @property
    def indices(self) -> tuple[int, ...]:
        return self._pool.indices

    def entry(self, index: int) -> WorkerEntry:
        return self._pool.entry(index)

    def worker(self, index: int) -> Worker:
        return self._pool.worker(index)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[WrappedPool]:
        async with self._pool.open():
            yield self


class _PickingPool(WrappedPool):
    """A pool with a computed worker beside its workers."""

    def __init__(self, pool: Pool, picker: Worker, name: str) -> None:
        super().__init__(pool)
        self._picker = picker
        self._entry = WorkerEntry(
            name=name.split("@", maxsplit=1)[0],
            provider="function",
            model=name,
            prices=Prices(input=0.0, output=0.0, source="computed here"),
            retries=0,
        )

    @property
    def indices(self) -> tuple[int, ...]:
        return (PICKER, *super().indices)

    def entry(self, index: int) -> WorkerEntry:
        return self._entry if index == PICKER else super().entry(index)

    def worker(self, index: int) -> Worker:
        return self._picker if index == PICKER else super().worker(index)
