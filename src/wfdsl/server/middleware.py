"""What every endpoint has: bodies of a limited size, errors of one shape, and a line in the access log."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wfdsl.server.api_errors import ApiError
from wfdsl.server.log_lines import json_line

CLIENT_LEFT: Final = 499
"""nginx's status for a client that has left; only the access log sees it."""


RECEIVE_S: Final = 60.0
"""Seconds in which the head of a request has to be here, and then its body. Our choice."""


async def read_body(request: Request, limit: int, seconds: float = RECEIVE_S) -> bytes:
    """The body of a request.

    One up to twice as large as it may be is read and forgotten, since many clients read no answer before they have sent
    everything; a client that waits to be told to send is refused before.

    Raises:
        ApiError: it is too large, or does not come in time.
    """
    stated = request.headers.get("content-length", "0")
    found, size = bytearray(), int(stated) if stated.isdecimal() else 0
    most, read = limit if "expect" in request.headers else 2 * limit, 0
    try:
        async with asyncio.timeout(seconds):
            if size <= most:
                async for piece in request.stream():
                    read += len(piece)
                    size = max(size, read)
                    if size <= limit:
                        found += piece
                    elif size > most:
                        break
                if size <= limit:
                    return bytes(found)
    except TimeoutError:
        if size <= limit:
            what = f"the body did not come within {seconds:g} s"
            raise ApiError(408, what, code="request_timeout", headers=_CLOSE) from None
    raise ApiError(413, f"the body must have at most {limit} bytes", code="body_too_large", headers=_CLOSE)


_CLOSE: Final = {"connection": "close"}


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is.

    Raises:
        ApiError: it is not one, in UTF-8.
    """
    try:
        found = json.loads(body.decode("utf-8-sig"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"the body must be JSON: {error}", code="invalid_json") from None
    if not isinstance(found, dict):
        raise ApiError(400, "the body must be a JSON object", code="invalid_json")
    return found


def _no_constant(name: str) -> None:
    """Refuse NaN and Infinity, which Python reads although JSON has none."""
    raise ValueError(f"{name} is not JSON")


async def _api_error(request: Request, error: ApiError) -> Response:  # noqa: ARG001
    return error.response()


async def _http_error(request: Request, error: HTTPException) -> Response:
    said, code = _KNOWN.get(error.status_code, (error.detail, None))
    what = f"{request.method} {request.url.path}: {said}"
    return ApiError(error.status_code, what, code=code, headers=error.headers).response()


_KNOWN: Final = {
    404: ("there is no such address", "not_found"),
    405: ("this address has another method", "method_not_allowed"),
}


async def _internal_error(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return ApiError(500, "the server has made a mistake; its log says more", code="internal_error").response()


ERROR_HANDLERS: Final[Mapping[Any, Any]] = {
    ApiError: _api_error,
    HTTPException: _http_error,
    Exception: _internal_error,
}
"""What makes errors responses, for Starlette's `exception_handlers`."""


class AccessLog:
    """A line for each request: method, path, status, seconds, the key's name, the run. No texts, no keys."""

    def __init__(
        self,
        app: ASGIApp,
        log: Callable[[str], None],
        *,
        as_json: bool = False,
        observe: Callable[[str, int, float], None] | None = None,
    ) -> None:
        """`observe` is told of each request, too: its route, its status and its seconds."""
        self.app = app
        self._log = log
        self._as_json = as_json
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.monotonic(), 0
        scope.setdefault("state", {})

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noting)
        except ClientDisconnect:
            status = CLIENT_LEFT
        finally:
            self._note(scope, status, time.monotonic() - began)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        path = quote(scope["path"])  # as it was sent: a line break in it would begin a line of the log
        known = {"key": scope["state"].get("key"), "run": scope["state"].get("run_id")}
        known = {name: value for name, value in known.items() if value}
        if self._as_json:
            about = {"method": scope["method"], "path": path, "status": status, "seconds": round(seconds, 3)}
            self._log(json_line("request", about | known))
        else:
            about_run = "".join(f" {what} {name}" for what, name in known.items())
            self._log(f"{scope['method']} {path} {status} {seconds:.3f} s{about_run}")
        if self._observe is not None:
            self._observe(getattr(scope.get("route"), "path", "other"), status, seconds)
