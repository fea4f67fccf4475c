"""Events of a run, as they happen: small values that displays, servers and logs read.

Every event carries a path. A run's path is the path of the step that it is nested in, `()` for the outermost; a step's
path is its run's path followed by the step's index. Events are named tuples, which are the cheapest immutable values
to make: every step makes several.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from wfdsl.interpreter.record import Run, StepRecord
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import Message, Reply

Path: TypeAlias = tuple[int, ...]


class RunStarted(NamedTuple):
    """A workflow begins to run."""

    path: Path
    """The path of the run."""
    run_id: str
    """The id of the run."""
    workflow: Workflow
    """What is run."""
    names: tuple[str, ...] | None
    """Display names of the steps; None if they have none."""
    worker_names: tuple[str, ...]
    """The name of each step's worker."""
    pruned: tuple[int, ...]
    """The dead steps, which are left out."""


class StepStarted(NamedTuple):
    """The steps that a step sees have finished, and it asks its worker."""

    path: Path
    """The path of the step."""
    worker_name: str
    """The worker that is asked."""
    at: float
    """Seconds since 1970."""
    provider: str = ""
    """The provider of the worker; empty where it has none."""
    model: str = ""
    """The model that is asked for; empty where the worker has none."""
    conductor: bool = False
    """Whether the worker is a Conductor, which runs workflows inside the step."""


class Delta(NamedTuple):
    """A piece of a response, from a worker that can stream."""

    path: Path
    """The path of the step."""
    text: str
    """The piece, as it arrived."""


class Retried(NamedTuple):
    """An attempt failed and another one follows."""

    path: Path
    """The path of the step."""
    attempt: int
    """How many attempts have failed so far."""
    wait_s: float
    """Seconds until the next one."""
    reason: str
    """Why the attempt failed, in words."""


class FellBack(NamedTuple):
    """A worker has failed for good and its fallback worker is asked."""

    path: Path
    """The path of the step."""
    worker_name: str
    """The fallback worker, which is asked now."""
    reason: str
    """Why the worker before it failed, in words."""


class StepFinished(NamedTuple):
    """A step is over: done, or failed (see the record's status)."""

    path: Path
    """The path of the step."""
    record: StepRecord
    """What happened, with reply, tokens and price."""
    error_type: str = ""
    """Of a step that failed: the provider's HTTP status, or the name of the error's class."""


class CompletionStarted(NamedTuple):
    """A Conductor asks its own model for a workflow; the path is that of its step, the round and -1."""

    path: Path
    """The path of the Conductor's step, the round, and -1."""
    worker_name: str
    """The Conductor's model."""
    at: float
    """Seconds since 1970."""
    provider: str = ""
    """The provider of the model; empty where it has none."""
    model: str = ""
    """The model that is asked for; empty where there is none."""


class CompletionFinished(NamedTuple):
    """A Conductor's own model has answered, or has failed."""

    path: Path
    """As of `CompletionStarted`."""
    at: float
    """Seconds since 1970."""
    messages: tuple[Message, ...]
    """What the model was sent."""
    reply: Reply | None
    """None: it failed."""
    error: str = ""
    """Why it failed; empty if it has not."""
    error_type: str = ""
    """As of a step that failed."""


class BudgetCharged(NamedTuple):
    """The budget used so far, and its limits; sent after each call under a budget."""

    path: Path
    """The path of the step whose call was charged."""
    calls: int
    """Calls so far, attempts that failed included."""
    tokens: int
    """Tokens so far, input and output."""
    usd: float
    """US dollars so far."""
    limits: tuple[int | None, int | None, float | None]
    """Calls, tokens, US dollars; None: no limit."""


class RunFinished(NamedTuple):
    """A run is over, with or without an answer."""

    path: Path
    """The path of the run."""
    run: Run
    """The record of the run."""


Event: TypeAlias = (
    RunStarted
    | StepStarted
    | Delta
    | Retried
    | FellBack
    | StepFinished
    | CompletionStarted
    | CompletionFinished
    | BudgetCharged
    | RunFinished
)
"""What `stream` gives and listeners are called with: one of these named tuples. Tell them apart with `isinstance`."""
Listener: TypeAlias = Callable[[Event], None]
"""A plain function that is called with each event of a run as it happens (`on_event`)."""


def unheard(event: Event) -> None:
    """The listener of a run that has none."""


def safe(listener: Listener) -> Listener:
    """A listener that is switched off once it raises: the run has paid for its replies and continues without it."""
    hears = True

    def hear(event: Event) -> None:
        nonlocal hears
        if not hears:
            return
        try:
            listener(event)
        except Exception:
            hears = False
            logging.getLogger("wfdsl").exception(
                "the listener %r raised on %s; it gets no further events, and the run continues",
                listener,
                type(event).__name__,
            )

    return hear


def error_type_of(error: BaseException) -> str:
    """What kind of error it is, for spans and statistics: the provider's HTTP status, or the name of its class."""
    status = getattr(error, "status", None)
    return type(error).__name__ if status is None else str(status)
