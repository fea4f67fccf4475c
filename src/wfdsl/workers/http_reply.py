"""What a server answers over HTTP: JSON bodies and event streams, read with a limit; and the values in them.

The SDKs send the requests; the bodies are read here, because an SDK takes a stream that ends early, or an HTML page,
for an empty reply.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from wfdsl.protocols import Message, Usage, WorkerFailure
from wfdsl.workers.http_failure import MAX_ERROR_BYTES, parsed_json, shortened
from wfdsl.workers.redaction import Scrubber

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""The longest reply in one piece. Our choice: a hundred times what the longest answer takes."""
MAX_STREAM_BYTES: Final = 128 * 1024 * 1024
"""The longest stream: each token comes in an event of a few hundred bytes."""


class Body(Protocol):
    """What both SDKs' streamed responses offer."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP headers."""
        ...

    def iter_bytes(self) -> AsyncIterator[bytes]:
        """The body, as it arrives."""
        ...


class ReplyBody:
    """The body of a successful response: a JSON object, or a stream of server-sent events.

    Which of the two it is shows in how it begins: servers ignore that a stream was asked for, or label one wrongly.
    """

    def __init__(self, body: Body, scrub: Scrubber, idle_timeout_s: float | None = None) -> None:
        """`idle_timeout_s` is the longest silence after the body has begun; None: as the client's."""
        self.done = False
        """Whether the server has ended its stream with `[DONE]`."""
        self._kind = body.headers.get("content-type", "no content type").partition(";")[0].strip().lower()
        self._rest = aiter(body.iter_bytes())
        self.longest_silence_s = math.inf if idle_timeout_s is None else idle_timeout_s
        self._start = b""
        self._scrub = scrub

    async def is_stream(self) -> bool:
        """Whether it is a stream of events. Reads as much as is needed to tell."""
        labelled = self._kind == "text/event-stream"
        async for piece in self._rest:
            self._start += piece
            head = self._start.removeprefix(_BYTE_ORDER_MARK).lstrip()
            if len(head) >= (1 if labelled else _LONGEST_FIELD_BYTES) or len(self._start) > MAX_ERROR_BYTES:
                break
        head = self._start.removeprefix(_BYTE_ORDER_MARK).lstrip()
        return not head.startswith((b"{", b"[")) if labelled else _FIRST_FIELD.match(head) is not None

    async def whole(self) -> dict[str, Any]:
        """The whole body, which is a JSON object.

        Raises:
            WorkerFailure: it is not, or it is too long.
        """
        raw = bytearray()
        async for piece in self._pieces(MAX_BODY_BYTES):
            raw += piece
        return self._object(bytes(raw))

    async def events(self) -> AsyncGenerator[dict[str, Any], None]:
        """The JSON objects of a stream of events, up to its end or `[DONE]`.

        Raises:
            WorkerFailure: an event is not a JSON object, or the stream is too long.
        """
        events = _Events()
        async for piece in self._pieces(MAX_STREAM_BYTES):
            for name, data in events.feed(piece):
                if data == b"[DONE]":
                    self.done = True
                    return
                yield self._error(data) if name == b"error" else self._object(data)

    async def _pieces(self, limit_bytes: int) -> AsyncIterator[bytes]:
        count = len(self._start)
        yield self._start
        while (piece := await self._next()) is not None:
            count += len(piece)
            if count > limit_bytes:
                raise WorkerFailure(f"the reply is longer than {limit_bytes // 2**20} MiB", retryable=False)
            yield piece

    async def _next(self) -> bytes | None:
        silence = asyncio.timeout(None if math.isinf(self.longest_silence_s) else self.longest_silence_s)
        try:
            async with silence:
                return await anext(self._rest, None)
        except TimeoutError:
            if not silence.expired():
                raise
            raise WorkerFailure(
                f"the server was silent for too long: {self.longest_silence_s:g} s inside its reply; "
                "idle_timeout_s in the pool allows more",
                retryable=True,
            ) from None

    def _error(self, raw: bytes) -> dict[str, Any]:
        said = parsed_json(raw)
        if isinstance(said, dict) and said.get("error"):
            return said
        return {"error": said or raw[:MAX_ERROR_BYTES].decode("utf-8", "replace")}

    def _object(self, raw: bytes) -> dict[str, Any]:
        value = parsed_json(raw)
        if isinstance(value, dict):
            return value
        said = self._scrub(raw[:MAX_ERROR_BYTES].decode("utf-8", "replace"))  # first: half a key is not recognised
        start = shortened(said, _MAX_START_CHARS)
        raise WorkerFailure(
            f"the server's reply ({self._kind}) is not a JSON object; it begins: {start}", retryable=True
        )


_MAX_START_CHARS: Final = 80
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_FIRST_FIELD: Final = re.compile(rb"(?:data|event|id|retry)?:")
_LONGEST_FIELD_BYTES: Final = len(b"retry:")


class _Events:
    """Cuts a stream into its events; an event that the stream's end cuts off is none."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self._name = b""
        self._first = True
        self._after_return = False

    def feed(self, piece: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The events that end in this piece: name and data."""
        if self._first:
            piece, self._first = piece.removeprefix(_BYTE_ORDER_MARK), False
        *lines, rest = self._with_plain_line_ends(piece).split(b"\n")
        for line in lines:
            yield from self._take(b"".join([*self._rest, line]))
            self._rest = []
        self._rest.append(rest)

    def _with_plain_line_ends(self, piece: bytes) -> bytes:
        """The piece with line feeds only: a line ends with one, with a carriage return, or with both."""
        if self._after_return and piece:
            piece = piece.removeprefix(b"\n")
            self._after_return = False
        if b"\r" not in piece:
            return piece
        self._after_return = piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _take(self, line: bytes) -> Iterator[tuple[bytes, bytes]]:
        if not line:
            if self._data:
                yield self._name, b"\n".join(self._data)
            self._data, self._name = [], b""
        elif line.startswith(b"event:"):
            self._name = line[6:].strip()
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


_MAX_COUNT: Final = 2**53
"""Larger numbers are not exact in JSON, and more tokens than anything has."""


def count(counts: Mapping[str, Any], name: str) -> int | None:
    """A number of tokens; None if there is none that can be right."""
    value = counts.get(name)
    return value if type(value) is int and 0 <= value <= _MAX_COUNT else None


def usage_bound(messages: Sequence[Message], reply: str) -> Usage:
    """The most tokens that a call can have used, for a server that does not count them."""
    asked = sum(len(message["content"].encode("utf-8", "replace")) for message in messages)
    return Usage(asked, len(reply.encode("utf-8", "replace")))
