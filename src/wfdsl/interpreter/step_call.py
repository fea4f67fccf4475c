"""Step call: the state of one step's call, and the environment that all calls of a run share."""

from __future__ import annotations

import asyncio
import time
from contextvars import copy_context
from dataclasses import dataclass

from wfdsl.interpreter.budget import BudgetTracker
from wfdsl.interpreter.config import RunConfig
from wfdsl.interpreter.events import Delta, Event, Listener, Path
from wfdsl.interpreter.journal import Key, RunJournal
from wfdsl.interpreter.limits import ConcurrencyLimiter, DeadlineTimer
from wfdsl.interpreter.record import LostCall, Run
from wfdsl.interpreter.tools import Tools
from wfdsl.interpreter.worker_profile import WorkerProfile
from wfdsl.protocols import Message, Reply

ASKING = "waiting for the worker's reply"


class Clock:
    """Wall-clock times that never run backwards: read once, then advanced by the event loop's clock."""

    __slots__ = ("_offset", "steady")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # The loops of asyncio only hand this function on, at twice its cost, and a step reads the time six times.
        self.steady = time.monotonic if type(loop).time is asyncio.BaseEventLoop.time else loop.time
        """The event loop's own seconds, in which deadlines are given."""
        self._offset = time.time() - loop.time()

    def now(self) -> float:
        """Seconds since 1970."""
        return self._offset + self.steady()


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What all calls of a run share, those of its nested runs included."""

    run_id: str
    sample_id: str
    """Distinguishes this run's calls from the same calls of other runs."""
    config: RunConfig
    clock: Clock
    timer: DeadlineTimer
    limiters: tuple[ConcurrencyLimiter, ...] = ()
    """What calls pass before they reach a worker: this run's own limiter, and the one that several runs share."""
    budget: BudgetTracker | None = None
    wall_end: float | None = None
    """When the budget's wall time is over, on the event loop's clock."""
    journal: RunJournal | None = None
    lost: tuple[LostCall, ...] = ()
    """Calls of earlier processes whose result is unknown."""
    listener: Listener | None = None


class StepCall:
    """The state of one step's call; `Call.run` holds it. The pipeline writes here what the step's record will say."""

    __slots__ = (
        "answered_by",
        "context",
        "doing",
        "earlier",
        "environment",
        "key",
        "latest",
        "messages",
        "nested",
        "path",
        "queue_s",
        "replayed",
        "retries",
        "retry_s",
        "seconds",
        "started",
        "tools",
        "worker",
    )

    def __init__(self, environment: Environment, path: Path, worker: int, messages: tuple[Message, ...]) -> None:
        self.environment = environment
        self.path = path
        self.worker = worker
        self.messages = messages
        self.started = environment.clock.now()
        self.context = copy_context()
        """The step's own context variables: what its worker sets, neither other steps nor the caller see."""
        self.queue_s = 0.0
        self.retries = 0
        self.retry_s = 0.0
        self.replayed = False
        self.answered_by: int | None = None
        self.doing = ASKING
        """What the call is waiting for, in words."""
        self.key: tuple[WorkerProfile, Key] | None = None
        """The journal's key of the call, as last computed, with the worker that it is for."""
        self.latest: float | None = None
        """When the run that the step is in has to be over, on the event loop's clock."""
        self.seconds: float | None = None
        """How many the step has for a worker; None: no limit but `latest`."""
        self.nested: tuple[Run, ...] = ()
        self.earlier: tuple[Reply, ...] = ()
        """Replies before the last one, which were paid for: those that could not be used, or that called tools."""
        self.tools: Tools | None = None
        """The tools that the step's worker may call; None: it has none."""

    @property
    def step(self) -> int:
        """The index of the step in its workflow."""
        return self.path[-1]

    def __call__(self, text: str) -> None:
        """Tell the listener of a piece of the response. `Call.on_delta` is the step call itself: each call has one."""
        self.emit(Delta(self.path, text))

    def emit(self, event: Event) -> None:
        """Tell the listener, if there is one."""
        if self.environment.listener is not None:
            self.environment.listener(event)

    def wall_time_is_over(self) -> bool:
        """Whether the budget's seconds are used up."""
        end = self.environment.wall_end
        return end is not None and self.environment.clock.steady() >= end
