"""One attempt over HTTP: send a request through an SDK, read the reply whole or piece by piece, price it."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from wfdsl.protocols import WorkerFailure
from wfdsl.workers.deadline import in_time
from wfdsl.workers.http_body import read_events, read_object
from wfdsl.workers.http_client import time_limits
from wfdsl.workers.http_failure import with_failures
from wfdsl.workers.sampling import priced

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from wfdsl.protocols import Call, Message, Reply
    from wfdsl.redaction import Scrubber
    from wfdsl.workers.http_body import Body
    from wfdsl.workers.pool import WorkerEntry


class Answer(Protocol):
    """What is known so far of one API's answer."""

    @property
    def complete(self) -> bool:
        """Whether nothing is missing. A stream may end early without any error."""
        ...

    def whole(self, body: Mapping[str, Any]) -> None:
        """Take in the answer all at once."""
        ...

    def piece(self, event: Mapping[str, Any]) -> str:
        """Take in an event of a stream; the text that it adds."""
        ...

    def reply(self, messages: Sequence[Message]) -> Reply:
        """The reply to these messages."""
        ...


class Dialect(NamedTuple):
    """How one API is spoken through its SDK."""

    request: Callable[[WorkerEntry, Call], dict[str, Any]]
    """The arguments of `create` for a call."""
    create: Callable[..., AbstractAsyncContextManager[Body]]
    """Sends; the SDK's `with_streaming_response.create`."""
    answer: Callable[[], Answer]
    """An answer of which nothing is known yet."""
    errors: tuple[type[Exception], type[Exception]]
    """The SDK's error for an HTTP status, and the base of all its errors."""
    close: Callable[[], Awaitable[None]]
    """Closes the SDK's client."""


class HttpWorker:
    """A model behind an API."""

    def __init__(self, entry: WorkerEntry, dialect: Dialect, scrub: Scrubber) -> None:
        self._entry = entry
        self._dialect = dialect
        self._scrub = scrub

    async def __call__(self, call: Call) -> Reply:
        """Answer once.

        Raises:
            WorkerFailure: there is no usable reply.
        """
        request = self._dialect.request(self._entry, call)
        async with in_time(call, self._entry.timeout_s):
            answer = await with_failures(self._attempt(call, request), self._dialect.errors, self._scrub)
        return priced(self._entry, answer.reply(call.messages))

    async def _attempt(self, call: Call, request: dict[str, Any]) -> Answer:
        limits = time_limits(self._entry, streams=call.on_delta is not None)
        async with self._dialect.create(**request, timeout=limits) as response:
            return await self._read(response, call)

    async def _read(self, response: Body, call: Call) -> Answer:
        answer = self._dialect.answer()
        if call.on_delta is None:
            answer.whole(await read_object(response))
            return answer
        async with aclosing(read_events(response)) as events:
            async for event in events:
                if text := answer.piece(event):
                    call.on_delta(text)
        if not answer.complete:
            raise WorkerFailure("the stream ended before the reply was complete", retryable=True)
        return answer

    async def aclose(self) -> None:
        """Close the connections."""
        await self._dialect.close()

    def __repr__(self) -> str:
        return f"HttpWorker({self._entry.name!r})"
