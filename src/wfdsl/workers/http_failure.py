"""Failures of calls over HTTP: of the connection, with an HTTP status, or in a body that says that it is an error.

A failure says whether to try again, when, and what a person should do. It holds no secrets, and of what a server wrote
only the beginning.
"""

from __future__ import annotations

import asyncio
import errno
import json
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from html import unescape
from typing import Any, Final, TypeVar

import httpx2

from wfdsl.protocols import WorkerFailure
from wfdsl.workers.redaction import Scrubber

MAX_ERROR_BYTES: Final = 64 * 1024
"""What is read of an error's body: its beginning says what is wrong. Our choice."""

_Result = TypeVar("_Result")

_MAX_REASON_CHARS: Final = 500
_MAX_FAILURE_CHARS: Final = 1000
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
        "1004",  # MiniMax: the key
        "1008",  # MiniMax: no credit left
        "2013",  # MiniMax: the request
        "2049",  # MiniMax: the key
    }
)
_NO_CREDIT: Final = re.compile("credit balance|insufficient (?:balance|credit|quota)", re.IGNORECASE)
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
    body = parsed_json(raw)
    if body is None:
        body = _page_text(scrub(raw.decode("utf-8", "replace"))[:_MAX_PAGE_CHARS])
    reason = scrub(_reason(body) or response.reason_phrase)
    too_long = _is_too_long(status, _code(body), reason)
    return WorkerFailure(
        _sentence(f"HTTP {status}: {reason}", _cure(status, reason, response.request.url.path)),
        retryable=is_retryable(status) and _code(body) not in _FINAL_CODES and not too_long,
        status=status,
        retry_after=retry_after_s(response.headers),
        too_long=too_long,
    )


def _cure(status: int, reason: str, path: str) -> str:
    if _NO_CREDIT.search(reason):
        return _CURES[402]
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
    too_long = _is_too_long(status or 400, code, reason)
    retryable = code not in _FINAL_CODES and not too_long and (status is None or is_retryable(status))
    said = f"the server answered with an error: {reason}"
    return WorkerFailure(said, retryable=retryable, status=status, too_long=too_long)


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
    if _has_no_files_left(error):
        return WorkerFailure(
            _sentence(f"{server} cannot be reached: this process has too many open files", "raise `ulimit -n`"),
            retryable=True,
            sent=False,
        )
    usable = not isinstance(cause, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError | httpx2.InvalidURL)
    detail = scrub(str(cause) or type(cause).__name__)
    if "CERTIFICATE_VERIFY_FAILED" in detail:
        return WorkerFailure(
            _sentence(f"{what}: {detail}", "name its certificates in ca_file"), retryable=False, sent=False
        )
    return WorkerFailure(_sentence(f"{what}: {detail}", ""), retryable=usable, sent=sent and usable)


def _has_no_files_left(error: BaseException | None) -> bool:
    """Whether an error, or what it came from, is that of a process that may open no further file."""
    if error is None:
        return False
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return True
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return any(map(_has_no_files_left, (error.__cause__, error.__context__, *inner)))


def _place(error: Any) -> str:
    try:
        url: httpx2.URL = error.request.url
    except (AttributeError, RuntimeError):  # it came before there was a request
        return ""
    return f" at {url.scheme}://{url.netloc.decode()}"


_TOO_LONG: Final = re.compile(
    "max_model_len|context (?:length|size|window)|exceeds? the (?:available )?context|prompt is too long", re.IGNORECASE
)


def _is_too_long(status: int, code: str, reason: str) -> bool:
    """Whether the messages are too long: OpenAI has a code for it, others say it in words."""
    said = status in (400, 500) and bool(_TOO_LONG.search(reason))  # 500: llama.cpp
    return status == 413 or code == "context_length_exceeded" or said


def about_grammar(failure: WorkerFailure) -> WorkerFailure:
    """The failure of a request with a grammar: vLLM's xgrammar answers status 500 to another dialect than its own."""
    if failure.status == 400 and _TOO_LONG.search(str(failure)):
        cure = "a Conductor chooses bounds that fit with options = { context = TOKENS } in the entry"
        return failure.saying(f"{failure}; {cure}")
    if (failure.status or 0) < 500 and "grammar" not in str(failure).lower():
        return failure
    return failure.saying(f"{failure}; if it is the grammar, check grammar_field and grammar_dialect")


def _scrubbed(failure: WorkerFailure, scrub: Scrubber) -> WorkerFailure:
    return failure.saying(shortened(scrub(str(failure)), _MAX_FAILURE_CHARS))


def _sentence(what: str, cure: str) -> str:
    short = shortened(what, _MAX_REASON_CHARS)
    return f"{short}; {cure}" if cure else short


def shortened(text: str, limit_chars: int) -> str:
    """A text in one line, cut where it is too long."""
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= limit_chars else one_line[:limit_chars] + "..."


def _error_of(body: Any) -> Any:
    if isinstance(body, list) and len(body) == 1:  # Google's
        body = body[0]
    return body.get("error") or body.get("base_resp") or body if isinstance(body, dict) else body


def _reason(body: Any) -> str:
    error = _error_of(body)
    if isinstance(error, dict):
        error = next(filter(None, map(error.get, _REASONS)), "")
    said = error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)
    return said.strip() if error else ""


_REASONS: Final = ("message", "detail", "status_msg", "msg", "type")
_CODES: Final = ("code", "status_code", "type")


def _code(body: Any) -> str:
    error = _error_of(body)
    return str(next(filter(None, map(error.get, _CODES)), "")) if isinstance(error, dict) else ""


def parsed_json(raw: bytes) -> Any:
    """The value of a JSON text; None if it is none."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
