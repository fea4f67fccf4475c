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
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx2

from wfdsl.protocols import WorkerFailure
from wfdsl.workers.redaction import Scrubber

MAX_ERROR_BYTES: Final = 64 * 1024
"""What is read of an error's body: its beginning says what is wrong. Our choice."""

_MAX_REASON_CHARS: Final = 500
MAX_FAILURE_CHARS: Final = 1000
_MAX_PAGE_CHARS: Final = 8192
_ERROR_BODY_S: Final = 10.0
"""How long the beginning of an error's body is waited for. Our choice."""
_RETRYABLE_BELOW_500: Final = frozenset({408, 409, 425, 429})
_NEVER_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
_NEVER_USABLE: Final = (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.InvalidURL)
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
_TOO_LONG: Final = re.compile(
    "max_model_len|context (?:length|size|window)|exceeds? the (?:available )?context|prompt is too long", re.IGNORECASE
)
_NO_SUCH_ROLE: Final = re.compile("system (?:role|message)|roles must alternate", re.IGNORECASE)
"""What chat templates say that take no system message, such as Gemma's and Mistral's."""
_ERROR_STATUS: Final = re.compile("[45][0-9]{2}")
_CURES: Final = {
    400: "the request does not suit this model; look at the worker's settings and the length of its context",
    401: "check the worker's key (api_key_env)",
    402: "the account has no credit left",
    403: "the key may not use this model",
    404: "check model and base_url, which usually ends in /v1, and at Anthropic does not",
    413: "the messages are too long for this server",
    422: "the request does not suit this model; look at the worker's settings",
}


async def status_failure(response: httpx2.Response, scrub: Scrubber) -> WorkerFailure:
    """The failure of a response that is not a success, of whose body only the beginning is read."""
    raw, status = bytearray(), response.status_code
    with suppress(httpx2.HTTPError, TimeoutError):  # the status says enough where the body breaks off
        async with asyncio.timeout(_ERROR_BODY_S):
            async for piece in response.aiter_bytes():
                raw += piece
                if len(raw) >= MAX_ERROR_BYTES:
                    break
    del raw[MAX_ERROR_BYTES:]
    body = parsed_json(bytes(raw))
    if body is None:
        body = raw.decode("utf-8", "replace")[:_MAX_PAGE_CHARS]
    said, code = _reason_and_code(body)
    reason = scrub(said or response.reason_phrase)
    cure = "the server redirects: set base_url to the new place" if status < 400 else _CURES.get(status, "")
    if _NO_CREDIT.search(reason):
        cure = _CURES[402]
    elif status == 400 and _NO_SUCH_ROLE.search(reason):
        cure = "serve the model with a chat template that takes it; `wfdsl pools check --deep` says what else it lacks"
    failure = _failure(_sentence(f"HTTP {status}: {reason}", cure), reason, code, status)
    failure.retry_after = retry_after_s(response.headers)
    return failure


def error_in_body(body: Mapping[str, Any]) -> WorkerFailure:
    """The failure for a reply with status 200 whose body says that it is an error."""
    reason, code = _reason_and_code(body)
    status = int(code) if _ERROR_STATUS.fullmatch(code) else None
    return _failure(f"the server answered with an error: {reason or 'no reason given'}", reason, code, status)


def _failure(said: str, reason: str, code: str, status: int | None) -> WorkerFailure:
    """A failure that says whether the messages are too long, and whether the same request may succeed later.

    OpenAI has a code for messages that are too long, others say it in words, llama.cpp with status 500. Status 529 is
    Anthropic's "overloaded".
    """
    in_words = status in (None, 400, 500) and _TOO_LONG.search(reason) is not None
    too_long = status == 413 or code == "context_length_exceeded" or in_words
    may_pass = status is None or status >= 500 or status in _RETRYABLE_BELOW_500
    retryable = may_pass and code not in _FINAL_CODES and not too_long
    return WorkerFailure(said, retryable=retryable, status=status, too_long=too_long)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The wait that the server asks for, in seconds; None if it does not, or not in a way that can be read."""
    said = headers.get("retry-after", "")
    try:
        wait_s = float(said)
    except ValueError:
        try:
            wait_s = (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(wait_s, 0.0) if math.isfinite(wait_s) else None


def failure_of(error: BaseException) -> WorkerFailure:
    """The failure that an error of the HTTP client means; whatever has nothing to do with HTTP is raised again."""
    if isinstance(error, WorkerFailure):
        return error
    if not isinstance(error, httpx2.HTTPError | httpx2.InvalidURL):
        raise error
    sent, usable = not isinstance(error, _NEVER_SENT), not isinstance(error, _NEVER_USABLE)
    server = "the server"
    if isinstance(error, httpx2.HTTPError):
        with suppress(RuntimeError):  # it came before there was a request
            server += f" at {error.request.url.scheme}://{error.request.url.netloc.decode()}"
    if _has_no_files_left(error):
        what = f"{server} cannot be reached: this process has too many open files; raise `ulimit -n`"
        return WorkerFailure(what, retryable=True, sent=False)
    what = f"the connection to {server} broke" if sent else f"{server} cannot be reached"
    if isinstance(error, httpx2.TimeoutException):
        what = f"{server} was silent for too long" if sent else f"{server} did not take the connection in time"
    detail, cure = str(error) or type(error).__name__, ""
    if "CERTIFICATE_VERIFY_FAILED" in detail:
        usable, cure = False, "name its certificates in the environment variable SSL_CERT_FILE"
    return WorkerFailure(_sentence(f"{what}: {detail}", cure), retryable=usable, sent=sent and usable)


def _has_no_files_left(error: BaseException | None) -> bool:
    """Whether an error, or what it came from, is that of a process that may open no further file."""
    if error is None or (isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)):
        return error is not None
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return any(map(_has_no_files_left, (error.__cause__, error.__context__, *inner)))


def about_grammar(failure: WorkerFailure) -> WorkerFailure:
    """The failure of a request with a grammar: vLLM's xgrammar answers status 500 to another dialect than its own."""
    if failure.status == 400 and _TOO_LONG.search(str(failure)):
        cure = "a Conductor chooses bounds that fit with options = { context = TOKENS } in the entry"
        return failure.saying(f"{failure}; {cure}")
    if (failure.status or 0) < 500 and "grammar" not in str(failure).lower():
        return failure
    return failure.saying(f"{failure}; if it is the grammar, check grammar_field and grammar_dialect")


def _sentence(what: str, cure: str) -> str:
    short = shortened(what, _MAX_REASON_CHARS)
    return f"{short}; {cure}" if cure else short


def shortened(text: str, limit_chars: int) -> str:
    """A text in one line, cut where it is too long."""
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= limit_chars else one_line[:limit_chars] + "..."


def _reason_and_code(body: Any) -> tuple[str, str]:
    """What the body of an error says in words, and by which code; empty where it does not."""
    if isinstance(body, list) and len(body) == 1:  # Google's
        body = body[0]
    error = body.get("error") or body.get("base_resp") or body if isinstance(body, dict) else body
    code = ""
    if isinstance(error, dict):
        code = str(next(filter(None, map(error.get, ("code", "status_code", "type"))), ""))
        error = next(filter(None, map(error.get, ("message", "detail", "status_msg", "msg", "type"))), "")
    said = error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)
    return said.strip() if error else "", code


def parsed_json(raw: bytes) -> Any:
    """The value of a JSON text; None if it is none."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
