"""What a server answers over HTTP: JSON bodies and event streams read with a limit, and failures.

The SDKs send the requests; the bodies are read here, because an SDK takes a stream that ends early, or an HTML page,
for an empty reply. A failure says whether to try again, when, and what a person should do.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Final, Protocol, TypeVar

import httpx2

from wfdsl.protocols import Message, Usage, WorkerFailure
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
        WorkerFailure: this is not such a stream, an event is not a JSON object, or the stream is too long.
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
        raise WorkerFailure(f"the server's reply ({kind}) is not a JSON object; it begins {start!r}", retryable=True)
    return value


_Result = TypeVar("_Result")

_MAX_REASON_CHARS: Final = 500
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
_CURES: Final = {
    400: "the request does not suit this model; look at the worker's settings and the length of its context",
    401: "check the worker's key (api_key_env or api_key_file)",
    402: "the account has no credit left",
    403: "the key may not use this model",
    404: "check model and base_url",
    413: "the messages are too long for this server",
    422: "the request does not suit this model; look at the worker's settings",
}


async def with_failures(
    work: Awaitable[_Result], errors: tuple[type[Exception], type[Exception]], scrub: Scrubber
) -> _Result:
    """Await work that goes through an SDK; what the SDK or its HTTP client raises becomes a failure without secrets.

    `errors` are the SDK's error for an HTTP status, and the base of all its errors.

    Raises:
        WorkerFailure: the call failed.
    """
    try:
        return await work
    except errors[0] as error:
        failure = status_failure(error, scrub)
    except (errors[1], httpx2.HTTPError, httpx2.InvalidURL) as error:
        failure = _transport_failure(error, scrub)
    except WorkerFailure as error:
        failure = _scrubbed(error, scrub)
    # Raised out here: as its context, the SDK's error would carry the request and the reply, and the key with them.
    raise failure


def status_failure(error: Any, scrub: Scrubber) -> WorkerFailure:
    """The failure for a reply with an HTTP status other than success."""
    status: int = error.status_code
    reason = scrub(_reason(error.body) or f"{error.response.reason_phrase}")
    cure = _CURES.get(status, "the server redirects: set base_url to the new place" if status < 400 else "")
    return WorkerFailure(
        _sentence(f"HTTP {status}: {reason}", cure),
        retryable=is_retryable(status) and _code(error.body) not in _FINAL_CODES,
        status=status,
        retry_after=retry_after_s(error.response.headers),
    )


def error_in_body(body: Mapping[str, Any]) -> WorkerFailure:
    """The failure for a reply with status 200 whose body says that it is an error."""
    reason = _reason(dict(body)) or "no reason given"
    code = _code(body)
    status = int(code) if code.isdecimal() and 400 <= int(code) <= 599 else None
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
        return _wait_until(headers.get("retry-after", ""))


def _wait_until(date: str) -> float | None:
    try:
        return _wait(parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _wait(seconds: float) -> float | None:
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _transport_failure(error: Exception, scrub: Scrubber) -> WorkerFailure:
    cause = error.__cause__ if isinstance(error.__cause__, httpx2.HTTPError) else error
    sent = not isinstance(cause, _NEVER_SENT)
    what = "the connection broke" if sent else "the server cannot be reached"
    if isinstance(cause, httpx2.TimeoutException):
        what = "the server was silent for too long" if sent else "the server did not take the connection in time"
    usable = not isinstance(cause, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError | httpx2.InvalidURL)
    detail = scrub(str(cause) or type(cause).__name__)
    if "CERTIFICATE_VERIFY_FAILED" in detail:
        return WorkerFailure(
            _sentence(f"{what}: {detail}", "name its certificates in ca_file"), retryable=False, sent=False
        )
    return WorkerFailure(_sentence(f"{what}: {detail}", ""), retryable=usable, sent=sent and usable)


def _scrubbed(failure: WorkerFailure, scrub: Scrubber) -> WorkerFailure:
    return WorkerFailure(
        scrub(str(failure)),
        retryable=failure.retryable,
        status=failure.status,
        retry_after=failure.retry_after,
        sent=failure.sent,
    )


def _sentence(what: str, cure: str) -> str:
    one_line = " ".join(what.split())
    short = one_line if len(one_line) <= _MAX_REASON_CHARS else one_line[:_MAX_REASON_CHARS] + "..."
    return f"{short}; {cure}" if cure else short


def _error_of(body: Any) -> Any:
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


def count(counts: Mapping[str, Any], name: str) -> int:
    """A number of tokens, 0 if there is none."""
    value = counts.get(name)
    return max(value, 0) if isinstance(value, int) else 0


def usage_bound(messages: Sequence[Message], reply: str) -> Usage:
    """The most tokens that a call can have used, for a server that does not count them."""
    asked = sum(len(message["content"].encode("utf-8", "replace")) for message in messages)
    return Usage(asked, len(reply.encode("utf-8", "replace")))
