"""The run record: what happened, complete enough to do it again, as values and as JSON; and the errors that carry it.

Times are seconds since 1970 by a clock that is read once per run and then advances steadily, so that a change of
the system's clock cannot make a step end before it started.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeAlias, cast

from wfdsl.errors import UsageError, WfdslError
from wfdsl.interpreter.budget import BudgetUsage
from wfdsl.interpreter.context import Question
from wfdsl.language.workflow import Workflow
from wfdsl.protocols import Finish, Message, Reply, RunStatus, StepState, Usage, WorkerFailure
from wfdsl.render.notebook import DrawnRun
from wfdsl.render.status import State, StepStatus
from wfdsl.render.text import counted
from wfdsl.settings import first_problem

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import CoreSchema

_HELD: Final[Mapping[StepState, str]] = {"stopped": "stopped", "suspended": "waits for a tool"}
"""States of a step that pictures have no sign for, and what they say instead."""
FORMAT: Final = "wfdsl-run"
VERSION: Final = 1
"""Raised by one whenever a reader of the version before could misread a record."""
NOTHING: Final = Usage()
_SHORT: Final = 60
"""Characters of an answer in the short form of a record; our choice."""


class InJson(NamedTuple):
    """What pydantic is told of a field whose JSON is not that of its type. It is imported for the first record only."""

    write: Callable[[Any], Any] | None = None
    read: Callable[[Any], Any] | None = None
    """What is read as the type, for the value in JSON."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], CoreSchema]) -> CoreSchema:
        """pydantic's hook."""
        from pydantic_core import core_schema  # noqa: PLC0415  (start-up time)

        schema = handler(source)
        if self.read is not None:
            schema = core_schema.no_info_before_validator_function(self.read, schema)
        if self.write is not None:
            schema = {**schema, "serialization": core_schema.plain_serializer_function_ser_schema(self.write)}
        return schema


PlainWorkflow: TypeAlias = Annotated[Workflow, InJson(lambda workflow: workflow.steps, lambda steps: {"steps": steps})]
"""A workflow that is a list of steps in JSON."""
PlainQuestion: TypeAlias = Annotated[
    Question, InJson(read=lambda said: tuple(said) if isinstance(said, list) else said)
]
"""A question that does not change once it is read."""
PlainUsage: TypeAlias = Annotated[BudgetUsage, InJson(BudgetUsage._asdict)]


@dataclass(slots=True, repr=False)
class StepRecord:
    """What happened to one step. Not frozen only because freezing would double the time that making one takes; nothing
    changes it once it is made.
    """

    step: int
    """The step's index."""
    worker: int
    """The worker's index in the pool."""
    worker_name: str = ""
    """The worker's name."""
    messages: tuple[Message, ...] = ()
    """What the worker was sent; empty for a step that never started."""
    response: str | None = None
    """What the worker answered; None without a reply."""
    status: StepState = "waiting"
    """How the step ended."""
    finish: Finish | None = None
    """How the reply ended; None without one."""
    started: float | None = None
    """When the step became ready, in seconds since 1970."""
    finished: float | None = None
    """When it ended, in seconds since 1970."""
    queue_s: float = 0.0
    """How much of that time it was queued, in seconds."""
    retries: int = 0
    """Attempts that failed before the one that counted."""
    retry_s: float = 0.0
    """The time that failed attempts and the waits after them took, in seconds."""
    usage: Usage = NOTHING
    """Tokens of all its replies, those that could not be used but are billed included; so are the two prices."""
    paid_usd: float | None = 0.0
    """What this run paid for it, in US dollars: 0 for another run's reply; None if a price is not known."""
    list_usd: float | None = 0.0
    """What it costs by the price list, wherever the reply came from; None if a price is not known."""
    model: str = ""
    """The model that the provider says has answered."""
    replayed: bool = False
    """Whether the reply came from the journal."""
    answered_by: int | None = None
    """The fallback worker that answered instead; None if the worker itself did."""
    error: str = ""
    """Why it failed."""
    nested: Annotated[tuple[Run, ...], InJson(lambda runs: [run.to_dict() for run in runs])] = ()
    """The runs inside a Conductor node, in order."""
    thinking: str = ""
    """The thinking that was taken out of the response (`strip_thinking`)."""
    ending: str = ""
    """The provider's own word for how the reply ended; empty where it has none."""

    def __repr__(self) -> str:
        why = f", error={shortened(self.error)}" if self.error else ""
        worker = self.worker_name or self.worker
        return f"StepRecord({self.step} by {worker}, {self.status}, response={shortened(self.response)}{why})"

    @property
    def seconds(self) -> float | None:
        """How long the step took; None if it is not over."""
        return None if self.started is None or self.finished is None else self.finished - self.started

    def take(self, reply: Reply) -> None:
        """Fill in what the worker answered."""
        self.response, self.finish, self.ending = reply.text, reply.finish, reply.ending
        self.model, self.thinking = reply.model, reply.thinking

    def end(self, status: StepState, at: float, error: str = "") -> None:
        """Say how the step ended, and when, in seconds since 1970."""
        self.status, self.finished, self.error = status, at, error
        if status != "done":
            self.replayed, self.answered_by = False, None

    def count(self, part: Reply | StepRecord | Run) -> None:
        """Add what a reply, another step or a run inside has cost."""
        paid, listed = part.paid_usd, part.list_usd
        self.usage = part.usage if self.usage is NOTHING else self.usage + part.usage
        self.paid_usd = None if paid is None or self.paid_usd is None else self.paid_usd + paid
        self.list_usd = None if listed is None or self.list_usd is None else self.list_usd + listed

    def picture(self) -> StepStatus:
        """The state of the step, as pictures show it."""
        held = _HELD.get(self.status)
        state, notes = cast("State", "waiting" if held else self.status), [held] if held else []
        if self.retries:
            notes.append(counted(self.retries, "failed attempt"))
        if self.replayed:
            notes.append("from the journal")
        if self.finish not in (None, "stop"):
            notes.append(f"reply ended by: {self.finish}")
        usd = self.list_usd if self.status == "done" else None
        return StepStatus(state, self.seconds, usd, ", ".join(notes), self.error)


@dataclass(frozen=True, slots=True)
class LostCall:
    """A call that was in flight when an earlier process died: its result is unknown, so it stays charged."""

    path: tuple[int, ...]
    worker_name: str
    started: float
    tokens: int
    """The upper bound that stays charged."""
    usd: float
    """The upper bound that stays charged, in US dollars; 0 if the price is not known."""


@dataclass(frozen=True, slots=True, repr=False)
class Run(DrawnRun):
    """What happened when a workflow was run."""

    id: str
    """The run's id, which `resume` takes."""
    workflow: PlainWorkflow
    """What was run."""
    question: PlainQuestion
    """What was asked."""
    steps: tuple[StepRecord, ...]
    """A record for each step, in order."""
    status: RunStatus
    """How the run ended."""
    started: float
    """When it began, in seconds since 1970."""
    finished: float | None
    """When it ended, in seconds since 1970; None while it runs."""
    names: tuple[str, ...] | None = None
    """Display names of the steps."""
    pool: str = ""
    """The pool's name."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the run was started with: its options, budget, sample id and origin."""
    error: str = ""
    """Why there is no answer."""
    lost: tuple[LostCall, ...] = ()
    """Calls of earlier processes whose result is unknown."""
    charged: PlainUsage | None = None
    """All that was charged, failed attempts and lost calls at the most they may have cost; None if nothing was counted,
    for lack of a budget and a journal.
    """
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of wfdsl and Python."""

    def __repr__(self) -> str:
        steps = counted(len(self.steps), "step")
        return f"Run({self.id!r}, {self.status}, {steps}, answer={shortened(self.answer)})"

    @property
    def answer(self) -> str | None:
        """The last step's response; None until there is one."""
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
        """The state of each step, as pictures show it."""
        return tuple(step.picture() for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values that JSON can hold, in the versioned form that `to_json` writes."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "answer": self.answer,
            "usage": asdict(self.usage),
            "paid_usd": self.paid_usd,
            "list_usd": self.list_usd,
            **adapter_of(Run).dump_python(self, mode="json", warnings=False),
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """The record as JSON text; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
        return as_unicode(json.dumps(self.to_dict(), ensure_ascii=False, indent=indent))

    @classmethod
    def from_json(cls, text: str | bytes) -> Run:
        """Read a record that `to_json` wrote.

        Raises:
            UsageError: the text is not a run record, or has a later version.
        """
        from pydantic import ValidationError  # noqa: PLC0415  (start-up time)

        try:
            plain = json.loads(text)
        except ValueError as error:
            raise UsageError(
                "not a run record (it is not JSON); `wfdsl run --json` and `wfdsl runs show --json` write run records"
            ) from error
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise UsageError(f"not a run record: its format is not {FORMAT}")
        if plain.get("version") != VERSION:
            raise UsageError(f"this run record has version {plain.get('version')}, and this wfdsl reads {VERSION}")
        try:
            found: Run = adapter_of(Run).validate_python(plain)
        except ValidationError as error:
            key, reason = first_problem(error)
            raise UsageError(f"not a run record: {key} {reason}") from error
        return found


_NO_ANSWER = frozenset({"empty", "filtered", "only_thinking", "tool_calls", "out_of_tokens"})
"""How replies end that are no answer."""


class RunEnded(WfdslError):  # noqa: N818  (the base of what users know)
    """A run that ended without an answer, because of the outside world. The message names step, worker and cause.

    `run` is the partial record: what was answered before, and what it cost. `resumable` says whether the journal has
    the run, so that `resume` can continue it. `cause` is what went wrong.
    """

    def __init__(self, message: str, run: Run, *, resumable: bool = False, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.run = run
        self.resumable = resumable
        self.cause = cause

    @property
    def run_id(self) -> str:
        """The run's id, which `resume` takes."""
        return self.run.id


class RunFailed(RunEnded):
    """A run with a step that failed for good."""

    @property
    def is_unanswered(self) -> bool:
        """Whether a worker replied, but with nothing that can be used; not a failure of the outside world."""
        reply = self.cause.rejected if isinstance(self.cause, WorkerFailure) else None
        return reply is not None and reply.finish in _NO_ANSWER


class RunSuspended(RunEnded):
    """A run that waits for the results of tool calls; its journal has the calls. Nothing has failed."""


class BudgetExhausted(RunEnded):
    """A run that stopped before a call that its budget does not cover. It can be resumed with a larger one."""


def as_unicode(text: str) -> str:
    """The text with surrogate pairs joined and each lone surrogate, which UTF-8 cannot hold, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def shortened(text: str | None) -> str:
    """A text as Python writes it, cut to what fits on a line."""
    return repr(text if text is None or len(text) <= _SHORT else f"{text[:_SHORT]}…")


def total_usd(costs: Iterable[float | None]) -> float | None:
    """The sum of costs in US dollars; None if one of them is not known."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


def known_costs(run: Run) -> tuple[float, tuple[str, ...]]:
    """What is known of a run's cost in US dollars, and the names of the workers whose price is not."""
    total, unknown = 0.0, dict[str, None]()
    for step in run.steps:
        if step.paid_usd is not None:
            total += step.paid_usd
            continue
        parts = [known_costs(nested) for nested in step.nested]
        total += sum(usd for usd, _ in parts)
        names = [name for _, inside in parts for name in inside]
        unknown |= dict.fromkeys(names or [step.worker_name])
    return total, tuple(unknown)


def worker_title(index: int | str, name: str) -> str:
    """How messages call a worker; the root Conductor, whose index is below 0, is not one of the pool's."""
    who = "Conductor" if isinstance(index, int) and index < 0 else f"worker {index}"
    return f"{who} ({name})" if name else who


def workflow_to_list(workflow: Workflow) -> list[dict[str, Any]]:
    """A workflow's steps as plain values."""
    found: list[dict[str, Any]] = adapter_of(PlainWorkflow).dump_python(workflow, mode="json")
    return found


@cache
def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """What reads and writes values of a type as JSON can hold them."""
    from pydantic import TypeAdapter  # noqa: PLC0415  (start-up time)

    return TypeAdapter(kind)
