"""The worker protocol: one async method, `Call` in, `Reply` out; and what the interpreter needs of a pool of workers.

The interpreter knows workers only through this file. A worker makes one attempt and reports how it ended; retries,
limits, budget and journal are the interpreter's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, fields
from operator import add, attrgetter, sub
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, NotRequired, Protocol, TypeAlias, runtime_checkable

from typing_extensions import TypedDict  # pydantic takes Python's own from 3.12 on

from wfdsl.errors import WfdslError


class Message(TypedDict):
    """A chat message, as in the OpenAI chat API."""

    role: Literal["system", "user", "assistant", "tool"]
    """Who says it. `tool`: the result of a tool call, in the messages of a worker that has called one."""
    content: str
    """The text."""
    images: NotRequired[list[str]]
    """URLs of images that belong to the text, after it; data URLs as well."""
    tool_calls: NotRequired[list[dict[str, Any]]]
    """The tools that an assistant calls, with the fields of `ToolCall`."""
    tool_call_id: NotRequired[str]
    """Of a result: the call that it answers."""


PROBE: Final = "Reply with the word ok."
"""The question that tests a worker. A worker that knows certain questions only has to answer this one too."""

Finish: TypeAlias = Literal[
    "stop", "length", "refusal", "filtered", "broken_off", "empty", "only_thinking", "tool_calls", "out_of_tokens"
]
"""How a reply ended. `length` and `refusal` are responses, marked as such. The others are not used: `filtered` was
withheld, `broken_off` ended by an error or in a way that is not known, and four have no text. All of them are retried
but `out_of_tokens`, which reached its limit before any text.
"""

StepState: TypeAlias = Literal["waiting", "running", "done", "failed", "stopped", "suspended", "pruned"]
"""How a step of a run ended. `stopped`: it was running when the run ended for another reason. `suspended`: its worker
called tools, whose results are not known yet. `pruned`: it cannot change the answer, so it was left out.
"""

RunStatus: TypeAlias = Literal["running", "done", "failed", "budget", "stopped", "suspended"]
"""How a run ended. `budget`: the budget is spent. `stopped`: cancelled or interrupted. `suspended`: it waits for the
results of tool calls.
"""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more calls, as the provider counts them."""

    input_tokens: int = 0
    """Tokens of what was sent."""
    output_tokens: int = 0
    """Includes thinking tokens."""
    thinking_tokens: int = 0
    """The part of `output_tokens` that is thinking."""
    cached_tokens: int = 0
    """The part of `input_tokens` that the provider read from its cache."""
    cache_write_tokens: int = 0
    """The part of `input_tokens` that the provider wrote into its cache."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, _counts_of(self), _counts_of(other)))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*map(sub, _counts_of(self), _counts_of(other)))

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


_counts_of: Final = attrgetter(*(each.name for each in fields(Usage)))


class Call(NamedTuple):
    """One question to one worker. A named tuple is the cheapest immutable value to make: each step makes two."""

    messages: tuple[Message, ...]
    """What the worker is sent."""
    path: tuple[int, ...] = ()
    """Which step asks: its index, preceded by the indices of the Conductor nodes and rounds that it is nested in."""
    sample_id: str = ""
    """Distinguishes calls that are otherwise the same; part of the journal's key. Usually the run's id."""
    settings: Mapping[str, Any] = MappingProxyType({})
    """Settings that override the worker's own: `temperature`, `max_tokens`, `seed`, `stop` and so on; and what only a
    call has, in the shapes of OpenAI's chat API: `tools`, `tool_choice`, `parallel_tool_calls`, `response_format`.
    """
    deadline: float | None = None
    """When the reply is due, on the event loop's clock, in seconds; None: no limit."""
    on_delta: Callable[[str], None] | None = None
    """Called with each piece of text as it arrives, if the worker can stream."""
    run: Any = None
    """The interpreter's state of this call; a Conductor node runs workflows through it. Plain workers ignore it."""


class ToolCall(NamedTuple):
    """A worker's wish that a tool is run, which the caller does."""

    id: str
    """Unique in its conversation."""
    name: str
    """The tool."""
    arguments: str
    """What the tool is given: JSON, or any text for a custom tool."""
    custom: bool = False
    """Whether it is one of OpenAI's custom tools, which take a text."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a worker answered, and what it cost."""

    text: str
    """The response."""
    finish: Finish = "stop"
    """How the reply ended; `stop` is the normal end."""
    usage: Usage = Usage()
    """Its tokens."""
    model: str = ""
    """The model that the provider says has answered."""
    paid_usd: float | None = 0.0
    """What this answer cost, in US dollars: 0 if it came from the journal; None if the price is not known."""
    list_usd: float | None = 0.0
    """What it costs by the price list, wherever it came from; None if the price is not known."""
    retries: int = 0
    """Attempts that failed before this one."""
    thinking: str = ""
    """The thinking that was taken out of the text, for the record; no later step sees it."""
    ending: str = ""
    """The provider's own word for how the reply ended, such as `end_turn`; empty where it has none."""
    tool_calls: tuple[ToolCall, ...] = ()
    """The tools that the worker calls; only in replies to calls that offer tools, with the finish `tool_calls`."""


@dataclass(eq=False, repr=False)
class WorkerFailure(WfdslError):  # noqa: N818  (the call failed, not our program)
    """A call that got no usable reply."""

    message: InitVar[str]
    """What went wrong."""
    _: KW_ONLY
    retryable: bool
    """Whether the same call may succeed later."""
    status: int | None = None
    """The HTTP status, if there was one."""
    retry_after: float | None = None
    """The wait that the server asked for, in seconds."""
    sent: bool = True
    """False only if the request certainly never reached the worker, so that nothing can have been charged."""
    rejected: Reply | None = None
    """A reply that cannot be used, although the provider bills it; its usage and price count."""
    too_long: bool = False
    """Whether the messages do not fit into the model's context."""

    def __post_init__(self, message: str) -> None:
        super().__init__(message)

    def saying(self, message: str) -> WorkerFailure:
        """The same failure in other words."""
        changed = type(self).__new__(type(self), message)
        changed.__dict__.update(self.__dict__)
        return changed


@runtime_checkable
class Worker(Protocol):
    """Anything that answers a call: a model behind an API, a local model, a function, a nested workflow."""

    async def __call__(self, call: Call) -> Reply:
        """Answer once.

        Raises:
            WorkerFailure: there is no usable reply.
        """


class WorkerPool(Protocol):
    """What the interpreter needs of a pool."""

    @property
    def name(self) -> str:
        """The pool's name in records."""

    @property
    def indices(self) -> Sequence[int]:
        """The indices of its workers."""

    def entry(self, index: int) -> Any:
        """The description of a worker: its name, limits, prices and so on."""

    def worker(self, index: int) -> Worker:
        """The worker itself, which makes one attempt per call."""
