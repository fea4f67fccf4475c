"""Errors as OpenAI's clients read them: a status, and a JSON body with message, type, param and code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import JSONResponse

from wfdsl.errors import JournalFailure, WfdslError
from wfdsl.interpreter.record import BudgetExhausted, Run, RunEnded
from wfdsl.protocols import WorkerFailure


class ApiError(WfdslError):
    """A request that gets an error instead of an answer."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        run: Run | None = None,
    ) -> None:
        """`run` is the partial record, where there is one."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.headers = dict(headers or {})
        self.run = run

    def body(self) -> dict[str, Any]:
        """The JSON body."""
        kind = _KINDS.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> JSONResponse:
        """The response."""
        return JSONResponse(self.body(), self.status, headers=self.headers)


_KINDS = {401: "authentication_error", 429: "rate_limit_error"}
NO_RETRY = {"x-should-retry": "false"}
"""OpenAI's clients ask again after some errors; not after one with this header."""


def not_supported(param: str, message: str) -> ApiError:
    """The error for a parameter that would change the answer, and that the server cannot honour."""
    return ApiError(400, message, code="unsupported_parameter", param=param)


def wrong_value(param: str, message: str) -> ApiError:
    """The error for a parameter whose value is not one."""
    return ApiError(400, message, code="invalid_value", param=param)


def journal_failed(error: JournalFailure) -> ApiError:
    """The error for what the journal cannot keep or find now."""
    return ApiError(503, str(error), code="journal_failed", headers={"retry-after": "5"})


def shutting_down() -> ApiError:
    """The error for a request that the server cannot answer before it ends."""
    return ApiError(503, "the server shuts down; ask again", code="shutting_down", headers={"retry-after": "5"})


def shown(value: Any) -> str:
    """A value as messages quote it."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST_QUOTED else f"{text[: _LONGEST_QUOTED - 3]}..."


_LONGEST_QUOTED: Final = 60


def of_run(error: RunEnded) -> ApiError:
    """The error for a run that has no answer; what it says is what went wrong first."""
    if isinstance(error, BudgetExhausted):
        return ApiError(429, str(error), code="insufficient_quota", headers=NO_RETRY, run=error.run)
    cause: BaseException | None = error
    while isinstance(cause, RunEnded):
        cause = cause.cause
    if isinstance(cause, WorkerFailure) and cause.too_long:  # agents shorten their conversation on this code
        return ApiError(400, str(error), code="context_length_exceeded", headers=NO_RETRY, run=error.run)
    headers = {} if isinstance(cause, WorkerFailure) and cause.retryable else NO_RETRY
    if isinstance(cause, WorkerFailure) and cause.status == 429:
        wait = 1.0 if cause.retry_after is None else cause.retry_after
        again = {"retry-after": f"{max(wait, 1):.0f}", **headers}
        return ApiError(429, str(error), code="rate_limit_exceeded", headers=again, run=error.run)
    return ApiError(502, str(error), code="run_failed", headers=headers, run=error.run)
