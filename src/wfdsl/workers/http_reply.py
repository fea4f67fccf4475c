"""What a server answers over HTTP: JSON bodies and event streams read with a limit, and failures.

The SDKs send the requests; the bodies are read here, because an SDK takes a stream that ends early, or an HTML page,
for an empty reply. A failure says whether to try again, when, and what a person should do.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from html import unescape
from typing import Any, Final, Protocol, TypeVar

import httpx2

from wfdsl.protocols import Message, Usage, WorkerFailure
from wfdsl.workers.redaction import Scrubber

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""The longest reply in one piece. Our choice: a hundred times what the longest answer takes."""
MAX_STREAM_BYTES: Final = 128 * 1024 * 1024
"""The longest stream: each token comes in an event of a few hundred bytes."""


MAX_ERROR_BYTES: Final = 64 * 1024
"""What is read of an error's body: its beginning says what is wrong. Our choice."""


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
        self._idle_timeout_s = idle_timeout_s
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
            for data in events.feed(piece):
                if data == b"[DONE]":
                    self.done = True
                    return
                yield self._object(data)

    async def _pieces(self, limit_bytes: int) -> AsyncIterator[bytes]:
        count = len(self._start)
        yield self._start
        while (piece := await self._next()) is not None:
            count += len(piece)
            if count > limit_bytes:
                raise WorkerFailure(f"the reply is longer than {limit_bytes // 2**20} MiB", retryable=False)
            yield piece

    async def _next(self) -> bytes | None:
        silence = asyncio.timeout(self._idle_timeout_s)
        try:
            async with silence:
                return await anext(self._rest, None)
        except TimeoutError:
            if not silence.expired():
                raise
            raise WorkerFailure(
                f"the server was silent for too long: {self._idle_timeout_s:g} s inside its reply; "
                "idle_timeout_s in the pool allows more",
                retryable=True,
            ) from None

    def _object(self, raw: bytes) -> dict[str, Any]:
        value = _json(raw)
        if isinstance(value, dict):
            return value
        said = self._scrub(raw[:MAX_ERROR_BYTES].decode("utf-8", "replace"))  # first: half a key is not recognised
        start = _shortened(said, _MAX_START_CHARS)
        raise WorkerFailure(
            f"the server's reply ({self._kind}) is not a JSON object; it begins: {start}", retryable=True
        )


_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_FIRST_FIELD: Final = re.compile(rb"(?:data|event|id|retry)?:")
_LONGEST_FIELD_BYTES: Final = len(b"retry:")


class _Events:
    """Cuts a stream into the `data` of its events; an event that the stream's end cuts off is none."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self._first = True
        self._after_return = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The events that end in this piece."""
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

    def _take(self, line: bytes) -> Iterator[bytes]:
        if not line and self._data:
            yield b"\n".join(self._data)
            self._data = []
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


_Result = TypeVar("_Result")

_MAX_REASON_CHARS: Final = 500
_MAX_FAILURE_CHARS: Final = 1000
_MAX_START_CHARS: Final = 80
_MAX_PAGE_CHARS: Final = 8192
_ERROR_BODY_S: Final = 10.0
"""How long the beginning of an error's body is waited for. Our choice."""
_RETRYABLE_BELOW_500: Final = frozenset({408, 409, 425, 429})
_NEVER_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
# Sent with status 429, or inside an event, although waiting does not help.
_FINAL_CODES: Final = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "context_length_exceeded",
        "invalid_request_error",
        "authentication_error",
        "billing_error",
        "permission_error",
        "not_found_error",
        "request_too_large",
        "invalid_api_key",
        "invalid_prompt",
    }
)
_ERROR_STATUS: Final = re.compile("[45][0-9]{2}")
_CURES: Final = {
    400: "the request does not suit this model; look at the worker's settings and the length of its context",
    401: "check the worker's key (api_key_env or api_key_file)",
    402: "the account has no credit left",
    403: "the key may not use this model",
    404: "check model and base_url",
    413: "the messages are too long for this server",
    422: "the request does not suit this model; look at the worker's settings",
}


async def with_failures(work: Awaitable[_Result], errors: type[Exception], scrub: Scrubber) -> _Result:
    """Await work that goes through an SDK; what the SDK or its HTTP client raises becomes a failure without secrets.

    `errors` is the base of all the SDK's errors.

    Raises:
        WorkerFailure: the call failed.
    """
    try:
        return await work
    except (errors, httpx2.HTTPError, httpx2.InvalidURL) as error:
        refused = error.__cause__  # Anthropic's SDK wraps whatever is raised inside its HTTP client
        failure = _scrubbed(refused, scrub) if isinstance(refused, WorkerFailure) else _transport_failure(error, scrub)
    except WorkerFailure as error:
        failure = _scrubbed(error, scrub)
    # Raised out here: as its context, the SDK's error would carry the request and the reply, and the key with them.
    raise failure


def refuse_errors(scrub: Scrubber) -> Callable[[httpx2.Response], Awaitable[None]]:
    """A hook for responses of an HTTP client, which turns those that are not a success into failures.

    The SDKs would read their bodies whole, however long they are.
    """

    async def hook(response: httpx2.Response) -> None:
        if not response.is_success:
            raise _status_failure(response, await _beginning(response), scrub)

    return hook


async def _beginning(response: httpx2.Response) -> bytes:
    raw = bytearray()
    with suppress(httpx2.HTTPError, TimeoutError):  # the status says enough where the body breaks off
        async with asyncio.timeout(_ERROR_BODY_S):
            async for piece in response.aiter_bytes():
                raw += piece
                if len(raw) >= MAX_ERROR_BYTES:
                    break
    return bytes(raw[:MAX_ERROR_BYTES])


def _status_failure(response: httpx2.Response, raw: bytes, scrub: Scrubber) -> WorkerFailure:
    status = response.status_code
    body = _json(raw)
    if body is None:
        body = _page_text(scrub(raw.decode("utf-8", "replace"))[:_MAX_PAGE_CHARS])
    reason = scrub(_reason(body) or response.reason_phrase)
    return WorkerFailure(
        _sentence(f"HTTP {status}: {reason}", _cure(status, response.request.url.path)),
        retryable=is_retryable(status) and _code(body) not in _FINAL_CODES,
        status=status,
        retry_after=retry_after_s(response.headers),
    )


def _cure(status: int, path: str) -> str:
    if status < 400:
        return "the server redirects: set base_url to the new place"
    if status == 404 and "/v1" not in path:
        return "check model and base_url, which usually ends in /v1"
    if status == 404 and "/v1/v1/" in path:
        return "check model and base_url, which must not end in /v1 here"
    return _CURES.get(status, "")


_TITLE: Final = re.compile(r"(?is)<(title|h1)\b[^>]*>(.*?)</\1\s*>")
_NOT_TEXT: Final = re.compile(r"(?is)<(script|style|head)\b.*?</\1\s*>|<!--.*?-->|<[^<>]*>")


def _page_text(said: str) -> str:
    """A text as it is, or the title of an HTML page, or else its text."""
    if not said.lstrip().startswith("<"):
        return said
    titles = (_NOT_TEXT.sub(" ", found[2]) for found in _TITLE.finditer(said))
    title = next((text for text in titles if text.strip()), None)
    return unescape(_NOT_TEXT.sub(" ", said) if title is None else title)


def error_in_body(body: Mapping[str, Any]) -> WorkerFailure:
    """The failure for a reply with status 200 whose body says that it is an error."""
    reason = _reason(dict(body)) or "no reason given"
    code = _code(body)
    status = int(code) if _ERROR_STATUS.fullmatch(code) else None
    retryable = code not in _FINAL_CODES and (status is None or is_retryable(status))
    return WorkerFailure(f"the server answered with an error: {reason}", retryable=retryable, status=status)


def is_retryable(status: int) -> bool:
    """Whether the same request may succeed later. 529 is Anthropic's "overloaded"."""
    return status >= 500 or status in _RETRYABLE_BELOW_500


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The wait that the server asks for, in seconds; None if it does not, or not in a way that can be read."""
    try:
        if "retry-after-ms" in headers:
            return _wait(float(headers["retry-after-ms"]) / 1000)
        return _wait(float(headers["retry-after"]))
    except KeyError:
        return None
    except ValueError:
        until = _seconds(headers.get("retry-after", ""))
        now = _seconds(headers.get("date", ""))  # the server's clock: this machine's may be wrong
        return None if until is None else _wait(until - (time.time() if now is None else now))


def _seconds(date: str) -> float | None:
    """An HTTP date, in seconds since 1970."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None


def _wait(seconds: float) -> float | None:
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _transport_failure(error: Exception, scrub: Scrubber) -> WorkerFailure:
    cause = error.__cause__ if isinstance(error.__cause__, httpx2.HTTPError) else error
    sent = not isinstance(cause, _NEVER_SENT)
    server = f"the server{_place(error)}"
    what = f"the connection to {server} broke" if sent else f"{server} cannot be reached"
    if isinstance(cause, httpx2.TimeoutException):
        what = f"{server} was silent for too long" if sent else f"{server} did not take the connection in time"
    usable = not isinstance(cause, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError | httpx2.InvalidURL)
    detail = scrub(str(cause) or type(cause).__name__)
    if "CERTIFICATE_VERIFY_FAILED" in detail:
        return WorkerFailure(
            _sentence(f"{what}: {detail}", "name its certificates in ca_file"), retryable=False, sent=False
        )
    return WorkerFailure(_sentence(f"{what}: {detail}", ""), retryable=usable, sent=sent and usable)


def _place(error: Any) -> str:
    try:
        url: httpx2.URL = error.request.url
    except (AttributeError, RuntimeError):  # it came before there was a request
        return ""
    return f" at {url.scheme}://{url.netloc.decode()}"


def _scrubbed(failure: WorkerFailure, scrub: Scrubber) -> WorkerFailure:
    return WorkerFailure(
        _shortened(scrub(str(failure)), _MAX_FAILURE_CHARS),
        retryable=failure.retryable,
        status=failure.status,
        retry_after=failure.retry_after,
        sent=failure.sent,
    )


def _sentence(what: str, cure: str) -> str:
    short = _shortened(what, _MAX_REASON_CHARS)
    return f"{short}; {cure}" if cure else short


def _shortened(text: str, limit_chars: int) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= limit_chars else one_line[:limit_chars] + "..."


def _error_of(body: Any) -> Any:
    if isinstance(body, list) and len(body) == 1:  # Google's
        body = body[0]
    return body.get("error", body) if isinstance(body, dict) else body


def _reason(body: Any) -> str:
    error = _error_of(body)
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error.get("type") or ""
    return str(error).strip() if error else ""


def _code(body: Any) -> str:
    error = _error_of(body)
    return str(error.get("code") or error.get("type") or "") if isinstance(error, dict) else ""


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
