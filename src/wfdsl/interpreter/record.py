"""The run record: what happened, complete enough to do it again. It is the trace that everything else reads.

Times are seconds since 1970 by a clock that is read once per run and then advances steadily, so that a change of
the system's clock cannot make a step end before it started.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from wfdsl.protocols import Usage
from wfdsl.render.status import StepStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wfdsl.interpreter.context import Question
    from wfdsl.language.workflow import Workflow
    from wfdsl.protocols import Finish, Message
    from wfdsl.render.status import State

StepState: TypeAlias = Literal["waiting", "running", "done", "failed", "stopped", "pruned"]
"""`stopped`: it was running when the run ended for another reason. `pruned`: dead, so it was left out."""

RunStatus: TypeAlias = Literal["running", "done", "failed", "budget", "stopped"]
"""`budget`: the budget is spent. `stopped`: cancelled or interrupted."""


NOTHING = Usage()


class Charge(NamedTuple):
    """An amount of a budget."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def plus(self, other: Charge) -> Charge:
        """Both together."""
        return Charge(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)

    def corrected(self, wrong: Charge, true: Charge) -> Charge:
        """This, with a true amount in place of a wrong one that is part of it."""
        return Charge(
            self.calls - wrong.calls + true.calls,
            self.tokens - wrong.tokens + true.tokens,
            self.usd - wrong.usd + true.usd,
        )


NO_CHARGE = Charge()


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What happened to one step."""

    step: int
    worker: int
    """The worker's ordinal in the pool."""
    worker_name: str = ""
    messages: tuple[Message, ...] = ()
    """What the worker was sent; empty for a step that never started."""
    response: str | None = None
    status: StepState = "waiting"
    finish: Finish | None = None
    """How the reply ended; None without one."""
    started: float | None = None
    """When the step became ready, in seconds since 1970."""
    finished: float | None = None
    """When it ended, in seconds since 1970."""
    queue_s: float = 0.0
    """The part of the time between that it waited in line for its turn, in seconds."""
    retries: int = 0
    """Attempts that failed before the one that counted."""
    retry_s: float = 0.0
    """The time that failed attempts and the waits after them took, in seconds."""
    usage: Usage = NOTHING
    paid_usd: float | None = 0.0
    """What this run paid for it, in US dollars: 0 for another run's reply; None if a price is not known."""
    list_usd: float | None = 0.0
    """What it costs by the price list, wherever the reply came from; None if a price is not known."""
    model: str = ""
    """The model that the provider says has answered."""
    replayed: bool = False
    """Whether the reply came from the journal."""
    answered_by: int | None = None
    """The fallback worker that answered in the worker's place; None if the worker did itself."""
    error: str = ""
    """Why it failed."""
    nested: tuple[Run, ...] = ()
    """The runs inside a Conductor node, in order."""

    @property
    def seconds(self) -> float | None:
        """How long the step took; None if it is not over."""
        return None if self.started is None or self.finished is None else self.finished - self.started

    def picture(self) -> StepStatus:
        """How the step stands, as pictures show it."""
        state: State = "waiting" if self.status == "stopped" else self.status
        notes = [self.error] if self.error else []
        if self.status == "stopped":
            notes.append("stopped")
        if self.retries:
            notes.append(f"{self.retries} failed attempt{'s' if self.retries > 1 else ''}")
        if self.replayed:
            notes.append("from the journal")
        if self.finish not in (None, "stop"):
            notes.append(f"reply ended by: {self.finish}")
        return StepStatus(state, self.seconds, self.list_usd if self.status == "done" else None, ", ".join(notes))


@dataclass(frozen=True, slots=True)
class LostCall:
    """A call that was in flight when an earlier process died: nobody knows how it ended, so it stays charged."""

    path: tuple[int, ...]
    worker_name: str
    started: float
    tokens: int
    """The upper bound that stays charged."""
    usd: float
    """The upper bound that stays charged, in US dollars; 0 if the price is not known."""


@dataclass(frozen=True, slots=True)
class Run:
    """What happened when a workflow was run."""

    id: str
    workflow: Workflow
    question: Question
    steps: tuple[StepRecord, ...]
    status: RunStatus
    started: float
    finished: float | None
    names: tuple[str, ...] | None = None
    """Display names of the steps."""
    pool: str = ""
    """The pool's name."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the run was started with: seed, concurrency, budget and the like."""
    error: str = ""
    """Why there is no answer."""
    lost: tuple[LostCall, ...] = ()
    """Calls of earlier processes whose outcome is unknown."""
    charged: Charge | None = None
    """All that was charged, failed attempts and lost calls at the most they may have cost; None: nobody counted."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of wfdsl and Python."""

    @property
    def answer(self) -> str | None:
        """The last step's response; None as long as there is none."""
        return self.steps[-1].response if self.steps else None

    @property
    def usage(self) -> Usage:
        """Tokens of all steps."""
        return sum((step.usage for step in self.steps), NOTHING)

    @property
    def paid_usd(self) -> float | None:
        """What the steps cost, in US dollars; None if one price is not known."""
        return total_usd(step.paid_usd for step in self.steps)

    @property
    def list_usd(self) -> float | None:
        """What the steps cost by the price list; None if one price is not known."""
        return total_usd(step.list_usd for step in self.steps)

    @property
    def seconds(self) -> float | None:
        """How long it took; None while it runs."""
        return None if self.finished is None else self.finished - self.started

    def name_of(self, step: int) -> str:
        """What a step is called in messages and pictures: its name, or `step N`."""
        return self.names[step] if self.names else f"step {step}"

    def statuses(self) -> tuple[StepStatus, ...]:
        """How each step stands, as pictures show it."""
        return tuple(step.picture() for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values, in the versioned form that `to_json` writes."""
        from wfdsl.interpreter.record_json import run_to_dict  # noqa: PLC0415  (pydantic is loaded when it is used)

        return run_to_dict(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """The record as JSON text, with its format and version."""
        from wfdsl.interpreter.record_json import run_to_json  # noqa: PLC0415  (as above)

        return run_to_json(self, indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> Run:
        """Read a record that `to_json` wrote.

        Raises:
            UsageError: the text is no run record, or one of a later version.
        """
        from wfdsl.interpreter.record_json import run_from_json  # noqa: PLC0415  (as above)

        return run_from_json(text)


def total_usd(costs: Iterable[float | None]) -> float | None:
    """The sum of costs in US dollars; None if one of them is not known."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total
