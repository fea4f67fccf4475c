"""What the calls of one run share, and what one step's call carries through the layers around a worker."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from zlib import crc32

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from wfdsl.interpreter.budget import Ledger
    from wfdsl.interpreter.context import QuestionFor
    from wfdsl.interpreter.deadline import Watch
    from wfdsl.interpreter.events import Event, Listener, Path
    from wfdsl.interpreter.gate import Gate
    from wfdsl.interpreter.journaling import RunJournal
    from wfdsl.interpreter.lines import Line
    from wfdsl.interpreter.record import LostCall, Run
    from wfdsl.protocols import Call, Message, Reply, Worker

Ask: TypeAlias = "Callable[[Call], Awaitable[Reply]]"
"""What a worker is, and what every layer around one is."""


class WorkerPool(Protocol):
    """What the interpreter needs of a pool."""

    @property
    def name(self) -> str:
        """What the pool is called in records."""
        ...

    @property
    def ordinals(self) -> Sequence[int]:
        """The ordinals of its workers."""
        ...

    def entry(self, ordinal: int) -> Any:
        """What is known about a worker: its name, limits, prices and the like."""
        ...

    def worker(self, ordinal: int) -> Worker:
        """The worker itself, which makes one attempt per call."""
        ...


ASKING = "waiting for the worker's reply"
LONGEST_WAIT_S = 600.0
"""A server may ask for a wait of weeks; a run fails with that message rather than wait it out. Our choice."""


class Clock:
    """Wall-clock times that never run backwards: read once, then advanced by the event loop's clock."""

    __slots__ = ("_loop", "_offset")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._offset = time.time() - loop.time()

    def now(self) -> float:
        """Seconds since 1970."""
        return self._offset + self._loop.time()

    def steady(self) -> float:
        """The event loop's own seconds, which deadlines are written in."""
        return self._loop.time()


@dataclass(frozen=True, slots=True)
class Environment:
    """What every call of a run shares, its nested runs included."""

    pool: WorkerPool
    line: Callable[[int], Line]
    """The worker of an ordinal with its layers around it."""
    clock: Clock
    watch: Watch
    """Ends calls at their deadlines."""
    run_id: str
    sample: str
    """Tells this run's calls apart from the same calls of other runs."""
    listener: Listener | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Sampling settings for every call."""
    seed: int | None = None
    question_for: QuestionFor = "all"
    run_dead_steps: bool = False
    deadline: float | None = None
    """When the run has to be over, on the event loop's clock."""
    step_timeout_s: float | None = None
    gates: tuple[Gate, ...] = ()
    """What calls pass before they reach a worker: this run's own gate, and that of several runs together."""
    longest_wait_s: float = LONGEST_WAIT_S
    """The longest wait between two attempts, in seconds."""
    ledger: Ledger | None = None
    """What the run may spend."""
    wall_end: float | None = None
    """When the budget's wall time is over, on the event loop's clock."""
    journal: RunJournal | None = None
    """Where calls are kept."""
    lost: tuple[LostCall, ...] = ()
    """Calls of earlier processes whose outcome nobody knows."""
    depth: int = 0
    """How many levels of Conductor nodes may still be nested."""


def settings_of(environment: Environment, path: tuple[int, ...]) -> Mapping[str, Any]:
    """The sampling settings of a call. Each path gets its own seed, so that identical copies of a step differ."""
    if environment.seed is None:
        return environment.settings
    return {**environment.settings, "seed": crc32(repr((environment.seed, path)).encode()) & 0x7FFFFFFF}


class StepCall:
    """One step on its way through the layers: `Call.run` holds it. Layers note here what the record will say."""

    __slots__ = (
        "answered_by",
        "doing",
        "environment",
        "messages",
        "nested",
        "path",
        "queue_s",
        "replayed",
        "retries",
        "retry_s",
        "started",
        "step",
        "worker",
    )

    def __init__(self, environment: Environment, path: Path, worker: int, messages: tuple[Message, ...]) -> None:
        self.environment = environment
        self.path = path
        self.step = path[-1]
        self.worker = worker
        self.messages = messages
        self.started = environment.clock.now()
        self.queue_s = 0.0
        self.retries = 0
        self.retry_s = 0.0
        self.replayed = False
        self.answered_by: int | None = None
        self.doing = ASKING
        """What the call is waiting for, in words."""
        self.nested: tuple[Run, ...] = ()

    def emit(self, event: Event) -> None:
        """Tell the listener, if there is one."""
        if self.environment.listener is not None:
            self.environment.listener(event)
