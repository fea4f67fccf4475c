"""What a server answers over HTTP: JSON bodies and event streams, read with a limit; and the values in them."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Final

import httpx2

from wfdsl.protocols import WorkerFailure
from wfdsl.workers.endings import is_error
from wfdsl.workers.http_failure import MAX_ERROR_BYTES, error_in_body, parsed_json, shortened
from wfdsl.workers.redaction import Scrubber

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""The longest reply in one piece. Our choice: a hundred times what the longest answer takes."""
MAX_STREAM_BYTES: Final = 128 * 1024 * 1024
"""The longest stream: each token comes in an event of a few hundred bytes."""
_MAX_START_CHARS: Final = 80
_MAX_COUNT: Final = 2**53
"""Larger numbers are not exact in JSON, and more tokens than anything has."""
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_FIRST_FIELD: Final = re.compile(rb"(?:data|event|id|retry)?:")
_LONGEST_FIELD_BYTES: Final = len(b"retry:")


class ReplyBody:
    """The body of a successful response: a JSON object, or a stream of server-sent events.

    Which of the two it is shows in how it begins: servers ignore that a stream was asked for, or label one wrongly.
    """

    def __init__(self, response: httpx2.Response, scrub: Scrubber, longest_silence_s: float) -> None:
        """`longest_silence_s` counts after the body has begun."""
        self.done = False
        """Whether the server has ended its stream with `[DONE]`."""
        self._kind = response.headers.get("content-type", "no content type").partition(";")[0].strip().lower()
        self._rest = aiter(response.aiter_bytes())
        self.longest_silence_s = longest_silence_s
        self._start = b""
        self._scrub = scrub

    async def is_stream(self) -> bool:
        """Whether it is a stream of events. Reads as much as is needed to tell."""
        labelled, head = self._kind == "text/event-stream", b""
        async for piece in self._rest:
            self._start += piece
            head = self._start.removeprefix(_BYTE_ORDER_MARK).lstrip()
            if len(head) >= (1 if labelled else _LONGEST_FIELD_BYTES) or len(self._start) > MAX_ERROR_BYTES:
                break
        return not head.startswith((b"{", b"[")) if labelled else _FIRST_FIELD.match(head) is not None

    async def whole(self) -> dict[str, Any]:
        """The whole body, which is a JSON object.

        Raises:
            WorkerFailure: it is not, says that it is an error, or is too long.
        """
        raw = bytearray()
        async for piece in self._pieces(MAX_BODY_BYTES):
            raw += piece
        return self._object(bytes(raw))

    async def events(self) -> AsyncGenerator[dict[str, Any], None]:
        """The JSON objects of a stream of events, up to its end or `[DONE]`.

        Raises:
            WorkerFailure: an event is not a JSON object, or is an error, or the stream is too long.
        """
        rest, name, data = list[str](), "", list[str]()
        async for text in self._plain_lines():
            *lines, last = text.split("\n")
            if lines:
                lines[0], rest = "".join([*rest, lines[0]]), []
            rest.append(last)
            for line in lines:
                if line.startswith("event:"):
                    name = line[6:].strip()
                elif line.startswith("data:"):
                    data.append(line[5:].removeprefix(" "))
                elif not line:
                    said, named = "\n".join(data).encode("latin-1"), name
                    name, data = "", []
                    if said == b"[DONE]":
                        self.done = True
                        return
                    if said:
                        yield self._object(said, named)

    async def _plain_lines(self) -> AsyncIterator[str]:
        """The bytes of a stream, each as one character, with line feeds only: a line ends with one, with a carriage
        return, or with both.
        """
        decoder = io.IncrementalNewlineDecoder(None, translate=True)
        async for piece in self._pieces(MAX_STREAM_BYTES):
            yield decoder.decode(piece.decode("latin-1"))
        yield decoder.decode("", final=True)

    async def _pieces(self, limit_bytes: int) -> AsyncIterator[bytes]:
        count = len(self._start)
        yield self._start.removeprefix(_BYTE_ORDER_MARK)
        silent = f"the server was silent for too long: {self.longest_silence_s:g} s inside its reply"
        while True:
            try:
                async with asyncio.timeout(self.longest_silence_s) as silence:
                    piece = await anext(self._rest, None)
            except TimeoutError:
                if not silence.expired():
                    raise
                raise WorkerFailure(f"{silent}; idle_timeout_s in the pool allows more", retryable=True) from None
            if piece is None:
                return
            count += len(piece)
            if count > limit_bytes:
                raise WorkerFailure(f"the reply is longer than {limit_bytes // 2**20} MiB", retryable=False)
            yield piece

    def _object(self, raw: bytes, name: str = "") -> dict[str, Any]:
        value = parsed_json(raw)
        if name == "error" and not mapping(value).get("error"):
            value = {"error": value or raw[:MAX_ERROR_BYTES].decode("utf-8", "replace")}
        if isinstance(value, dict):
            if is_error(value):
                raise error_in_body(value)
            return value
        said = self._scrub(raw[:MAX_ERROR_BYTES].decode("utf-8", "replace"))  # first: half a key is not recognised
        start = shortened(said, _MAX_START_CHARS)
        raise WorkerFailure(
            f"the server's reply ({self._kind}) is not a JSON object; it begins: {start}", retryable=True
        )


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def count(counts: Any, name: str, default: int = 0) -> int:
    """A number of tokens; the default if there is none that can be right."""
    value = mapping(counts).get(name)
    return value if type(value) is int and 0 <= value <= _MAX_COUNT else default
