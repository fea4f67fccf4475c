"""The worker protocol: one async method, `Call` in, `Reply` out.

The interpreter knows workers only through this file. A worker makes one attempt and reports honestly how it ended;
retries, limits, budget and journal are layers around it that share the same signature.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypedDict, runtime_checkable

from wfdsl.errors import WfdslError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Message(TypedDict):
    """A chat message, as in the OpenAI chat API."""

    role: Literal["system", "user", "assistant"]
    content: str


PROBE: Final = "Reply with the word ok."
"""What a worker is asked that is only tried out. One that knows certain questions only knows this one too."""

Finish: TypeAlias = Literal["stop", "length", "refusal", "filtered", "empty"]
"""How a reply ended. `length` and `refusal` are responses, marked as such; `filtered` and `empty` are retried."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more calls, as the provider counts them."""

    input_tokens: int = 0
    output_tokens: int = 0
    """Includes thinking tokens."""
    thinking_tokens: int = 0
    cached_tokens: int = 0
    """The part of `input_tokens` that the provider read from its cache."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.thinking_tokens + other.thinking_tokens,
            self.cached_tokens + other.cached_tokens,
        )

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Call:
    """One question to one worker."""

    messages: tuple[Message, ...]
    path: tuple[int, ...] = ()
    """Which step asks: its index, preceded by the indices of the Conductor nodes and rounds that it is nested in."""
    sample: str = ""
    """Tells apart calls that are otherwise the same; part of the journal's key. The caller's choice (a run id)."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Sampling settings that override the worker's own: `temperature`, `max_tokens`, `seed`, `stop`."""
    deadline: float | None = None
    """When the reply must be there, on the event loop's clock, in seconds; None: no limit."""
    on_delta: Callable[[str], None] | None = None
    """Called with each piece of text as it arrives, if the worker can stream."""
    run: Any = None
    """The run that asks: what a nested workflow needs (pool, budget, journal, limits). Plain workers ignore it."""

    def streaming_to(self, sink: Callable[[str], None]) -> Call:
        """The same call with another `on_delta`. Every streamed call passes here, and `replace` is slow."""
        return Call(self.messages, self.path, self.sample, self.settings, self.deadline, sink, self.run)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a worker answered, and what it cost."""

    text: str
    finish: Finish = "stop"
    usage: Usage = Usage()
    model: str = ""
    """The model that the provider says has answered."""
    paid_usd: float | None = 0.0
    """What this answer cost, in US dollars: 0 if it came from the journal; None if the price is not known."""
    list_usd: float | None = 0.0
    """What it costs by the price list, wherever it came from; None if the price is not known."""
    retries: int = 0
    """Attempts that failed before this one."""


class WorkerFailure(WfdslError):  # noqa: N818  (it is no error of ours: the call failed)
    """A call that got no usable reply. `retryable` says whether the same call may succeed later.

    `retry_after` is the wait that the server asked for, in seconds; `status` its HTTP status, where there was one;
    `sent` is False only if the request surely never reached the worker, so that nothing can have been charged.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool,
        status: int | None = None,
        retry_after: float | None = None,
        sent: bool = True,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.status = status
        self.retry_after = retry_after
        self.sent = sent


@runtime_checkable
class Worker(Protocol):
    """Anything that answers a call: a model behind an API, a local model, a function, a nested workflow."""

    async def __call__(self, call: Call) -> Reply:
        """Answer once.

        Raises:
            WorkerFailure: there is no usable reply.
        """
        ...
