"""A last step that is computed: it selects one of the responses before it.

A vote or a choice among attempts is a workflow like any other, except that no worker is asked in the last step. A
computed worker does it, at a worker index of its own next to the pool's, and costs nothing. So the run's record holds
every call, and its answer is the last step's response.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from wfdsl.conductor.policy import Solution
from wfdsl.interpreter.context import Question
from wfdsl.interpreter.running import RunOptions, run
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Call, Reply, Worker, WorkerPool
from wfdsl.workers.entry import Prices, WorkerEntry
from wfdsl.workers.pool import Pool

Pick: TypeAlias = Callable[[Sequence[str]], Awaitable[int]]
"""From the responses, in order, to the index of the one to give."""

PICKER: Final = -2
"""The picker's worker index. No workflow that is parsed can name it, and -1 is a Conductor's."""


def picked_from(attempts: Sequence[Step], rule: str) -> Workflow:
    """Steps that see nothing, and the picker after them; `rule` says in words how it picks."""
    return Workflow((*attempts, Step(PICKER, rule, tuple(range(len(attempts))))))


async def run_and_pick(
    workflow: Workflow, pick: Pick, question: Question, pool: Pool, options: RunOptions, *, picker: str
) -> Solution:
    """Run a workflow whose last step is the picker's. `picker` names what picks, with all that its choice depends on.

    Raises:
        RunFailed, BudgetExhausted, UsageError: as `wfdsl.run` does.
    """
    seated = PickingPool(pool, Picker(pick, attempts=len(workflow) - 1), picker)
    return Solution(await run(workflow, question, seated, **options))


class Picker:
    """The worker that picks: it answers with one of the responses that it is shown, word for word."""

    conductor = True
    """As of a Conductor node, only the calls that it makes are charged and journaled, and it makes none."""

    def __init__(self, pick: Pick, *, attempts: int) -> None:
        """`attempts` is how many responses it is shown; what comes before them belongs to the question."""
        self._pick = pick
        self._attempts = attempts

    async def __call__(self, call: Call) -> Reply:
        """Pick one."""
        said = [message["content"] for message in call.messages if message["role"] == "assistant"]
        responses = said[-self._attempts :]
        return Reply(responses[await self._pick(responses)])


class PickingPool:
    """A pool with a computed worker beside its workers, at an index of its own."""

    def __init__(self, pool: Pool, picker: Worker, name: str, index: int = PICKER) -> None:
        """`name` says what picks, with all that its choice depends on."""
        self._pool = pool
        self._picker = picker
        self._index = index
        self._entry = WorkerEntry(
            name=name.split("@", maxsplit=1)[0],
            provider="function",
            model=name,
            prices=Prices(input=0.0, output=0.0, source="computed here"),
            retries=0,
        )

    @property
    def name(self) -> str:
        return self._pool.name

    @property
    def indices(self) -> tuple[int, ...]:
        return (self._index, *self._pool.indices)

    @property
    def conductors(self) -> tuple[int, ...]:
        return self._pool.conductors

    def entry(self, index: int) -> WorkerEntry:
        return self._entry if index == self._index else self._pool.entry(index)

    def worker(self, index: int) -> Worker:
        return self._picker if index == self._index else self._pool.worker(index)

    def subset(self, indices: Iterable[int]) -> WorkerPool:
        return self._pool.subset(index for index in indices if index != self._index)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[PickingPool]:
        async with self._pool.open():
            yield self
