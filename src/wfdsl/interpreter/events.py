"""What happens during a run, as it happens: small values that displays, servers and logs read.

Every event carries a path. A run's path is that of the step that it is nested in, `()` for the outermost; a step's
path is its run's path with the step's index behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from wfdsl.interpreter.record import Run, StepRecord
    from wfdsl.language.workflow import Workflow

Path: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A workflow begins to run."""

    path: Path
    run_id: str
    workflow: Workflow
    names: tuple[str, ...] | None
    worker_names: tuple[str, ...]
    """The name of each step's worker."""
    pruned: tuple[int, ...]
    """The dead steps, which are left out."""


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step sees all that it may see, and asks its worker."""

    path: Path
    worker_name: str
    at: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a response, from a worker that can stream."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Retried:
    """An attempt failed and another one follows."""

    path: Path
    attempt: int
    """How many attempts have failed so far."""
    wait_s: float
    """Seconds until the next one."""
    reason: str
    """Why the attempt failed, in words."""


@dataclass(frozen=True, slots=True)
class FellBack:
    """A worker has failed for good and its fallback worker is asked."""

    path: Path
    worker_name: str
    """The worker that is asked now."""
    reason: str
    """Why the other one failed, in words."""


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A step is over: done, or failed (see the record's status)."""

    path: Path
    record: StepRecord


@dataclass(frozen=True, slots=True)
class BudgetCharged:
    """What has been charged to the budget so far, and what it allows; sent after each call under a budget."""

    path: Path
    calls: int
    tokens: int
    usd: float
    wall_s: float
    """Seconds since the budget was opened."""
    limits: tuple[int | None, int | None, float | None, float | None]
    """Calls, tokens, US dollars, seconds; None: no limit."""


@dataclass(frozen=True, slots=True)
class RunFinished:
    """A run is over, with an answer or without."""

    path: Path
    run: Run


Event: TypeAlias = RunStarted | StepStarted | Delta | Retried | FellBack | StepFinished | BudgetCharged | RunFinished
Listener: TypeAlias = "Callable[[Event], None]"
