"""Bodies of HTTP replies, read with a limit: JSON in one piece, or server-sent events one by one.

The SDKs send the requests; the bodies are read here, because an SDK takes a stream that ends early, or an HTML page,
for an empty reply.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Protocol

from wfdsl.protocols import WorkerFailure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping

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


async def read_object(body: Body) -> dict[str, Any]:
    """The whole body, which is a JSON object.

    Raises:
        WorkerFailure: it is not, or it is too long.
    """
    raw = bytearray()
    async for piece in body.iter_bytes():
        raw += piece
        _check_length(len(raw), MAX_BODY_BYTES)
    return _as_object(bytes(raw), _content_type(body))


async def read_events(body: Body) -> AsyncGenerator[dict[str, Any], None]:
    """The JSON objects of a stream of server-sent events, up to its end or `[DONE]`.

    Raises:
        WorkerFailure: this is no such stream, an event is no JSON object, or the stream is too long.
    """
    kind = _content_type(body)
    if kind != "text/event-stream":
        raise WorkerFailure(f"the server answered with {kind}, not with a stream of events", retryable=True)
    events = _Events()
    count = 0
    async for piece in body.iter_bytes():
        count += len(piece)
        _check_length(count, MAX_STREAM_BYTES)
        for data in events.feed(piece):
            if data == b"[DONE]":
                return
            yield _as_object(data, kind)


class _Events:
    """Cuts a stream into the `data` of its events; an event that the stream's end cuts off is none."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The events that end in this piece."""
        if b"\n" not in piece:
            self._rest.append(piece)
            return
        *lines, rest = b"".join([*self._rest, piece]).split(b"\n")
        self._rest = [rest]
        for line in lines:
            yield from self._take(line.removesuffix(b"\r"))

    def _take(self, line: bytes) -> Iterator[bytes]:
        if not line and self._data:
            yield b"\n".join(self._data)
            self._data = []
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))


def _check_length(count_bytes: int, limit_bytes: int) -> None:
    if count_bytes > limit_bytes:
        raise WorkerFailure(f"the reply is longer than {limit_bytes // 2**20} MiB", retryable=False)


def _content_type(body: Body) -> str:
    return body.headers.get("content-type", "no content type").partition(";")[0].strip().lower()


def _as_object(raw: bytes, kind: str) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        start = raw[:80].decode("utf-8", "replace")
        raise WorkerFailure(f"the server's reply ({kind}) is no JSON object; it begins {start!r}", retryable=True)
    return value
