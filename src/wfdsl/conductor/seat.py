"""Where a Conductor that solves a question sits: ordinal -1 of a pool, beside the workers that it is offered.

So a question is solved by a run of one step, whose worker is the Conductor: its rounds are nested runs, and budget,
journal, events, resuming and records are those of every run.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from wfdsl.conductor.offer import Offer
from wfdsl.conductor.rounds import Rounds
from wfdsl.errors import UsageError
from wfdsl.interpreter.worker_profile import profile_of, require_bounded
from wfdsl.language.workflow import Step, Workflow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from wfdsl.conductor.notes import RoundNote
    from wfdsl.conductor.settings import ConductorSettings
    from wfdsl.interpreter.conductor_node import ConductorCall
    from wfdsl.interpreter.context import Question
    from wfdsl.protocols import Call, Reply, Worker, WorkerPool
    from wfdsl.workers.entry import WorkerEntry
    from wfdsl.workers.pool import Pool

SEAT: Final = -1
"""No workflow can name it: ordinals in workflows begin at 0."""
SEATED: Final = Workflow((Step(SEAT, "Answer the question."),))


class SeatedPool:
    """A pool with a Conductor at its seat."""

    def __init__(
        self,
        pool: Pool,
        model: Pool,
        settings: ConductorSettings,
        question: Question,
        order: Mapping[int, int] | None,
        *,
        step_timeout_s: float | None = None,
    ) -> None:
        """`model` is a pool of one: the Conductor's own model. The time limit is that of the workers' steps."""
        self._pool = pool
        self._model = model
        self._seated = Seated(model, settings, question, order, step_timeout_s)

    @property
    def name(self) -> str:
        """The name of the pool."""
        return self._pool.name

    @property
    def ordinals(self) -> tuple[int, ...]:
        """The seat, then the workers."""
        return (SEAT, *self._pool.ordinals)

    @property
    def conductors(self) -> tuple[int, ...]:
        """The seat, then the Conductors among the workers."""
        return (SEAT, *self._pool.conductors)

    @property
    def unplaced(self) -> list[RoundNote]:
        """Notes of rounds that no run holds."""
        return self._seated.unplaced

    def entry(self, ordinal: int) -> WorkerEntry:
        """The entry of a worker, or of the Conductor's model."""
        return self._model.entry(0) if ordinal == SEAT else self._pool.entry(ordinal)

    def worker(self, ordinal: int) -> Worker:
        """A worker, or the Conductor."""
        return self._seated if ordinal == SEAT else self._pool.worker(ordinal)

    def subset(self, ordinals: Iterable[int]) -> WorkerPool:
        """Some of the workers; nobody takes the seat along."""
        return self._pool.subset(ordinal for ordinal in ordinals if ordinal != SEAT)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[SeatedPool]:
        """Keep the clients of workers and model up inside the block."""
        async with self._pool.open(), self._model.open():
            yield self


def require_bounded_model(model: Pool, handle: ConductorCall) -> None:
    """Refuse a Conductor whose completions have no known upper bound, where there is a budget to keep.

    Raises:
        UsageError: its model has no price under a dollar budget.
    """
    tracker = handle.environment.budget
    if tracker is not None:
        require_bounded([profile_of(model, 0)], tracker.budget, {})


def require_all_built(pool: WorkerPool) -> None:
    """Build every worker that is offered, so that a missing key is noticed before a Conductor is paid for choosing it.

    Raises:
        UsageError: a worker cannot be built.
    """
    for ordinal in pool.ordinals:
        try:
            pool.worker(ordinal)
        except UsageError as error:
            raise UsageError(f"{error}; or leave it out (--without, conductor.without)") from error


class Seated:
    """The worker at the seat: a Conductor that answers one question, whatever its step is told."""

    def __init__(
        self,
        model: Pool,
        settings: ConductorSettings,
        question: Question,
        order: Mapping[int, int] | None,
        step_timeout_s: float | None,
    ) -> None:
        self._model = model
        self._settings = settings
        self._question = question
        self._order = order
        self._step_timeout_s = step_timeout_s
        self.unplaced: list[RoundNote] = []

    async def __call__(self, call: Call) -> Reply:
        """Answer.

        Raises:
            WorkerFailure, RunFailed, BudgetExhausted: as `Rounds.finish` does.
            UsageError: a worker that would be offered cannot be built.
        """
        handle: Any = call.run
        handle.limit_steps(self._step_timeout_s)
        require_bounded_model(self._model, handle)
        require_all_built(handle.pool)
        offer = Offer.of(handle.pool, self._order)
        rounds = Rounds(self._settings, self._model.worker(0), handle, offer, self._question)
        self.unplaced = rounds.unplaced
        return await rounds.finish()
