"""What every server of ours has: keys, limits on what comes in, metrics, errors of one shape, and an access log.

A server that spends money answers no request that a page of another site makes a browser send. A page can send one to
any address that its reader's browser reaches, this machine's own included, and with a name of its own that leads there
(DNS rebinding) it can read the answer, too. Without keys, the `Host` and the `Origin` of a request tell; with keys, a
page cannot know one, but a browser may have kept the password of a URL.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, quote, urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Lifespan, Message, Receive, Scope, Send

from wfdsl.errors import JournalFailure
from wfdsl.experiment import ServeSettings
from wfdsl.interpreter.journal import Journal
from wfdsl.server.api_errors import NO_RETRY, ApiError, journal_failed
from wfdsl.server.keys import ApiKeys, Caller, is_loopback
from wfdsl.server.metrics import CONTENT_TYPE, Metrics

_T = TypeVar("_T")
CLIENT_LEFT: Final = 499
"""nginx's status for a client that has left; only the access log sees it."""
LONGEST_HEAD: Final = 65_536
"""Bytes of the headers of a request. Our choice."""


class Endpoints:
    """The base of a server's endpoints; it answers `/health`, `/ready` and `/metrics` itself."""

    def __init__(
        self,
        settings: ServeSettings,
        keys: ApiKeys | None,
        journal: Journal | None,
        metrics: Metrics,
        log: Callable[[str], None],
    ) -> None:
        """Without keys, all who reach the server are answered; `log` gets a line for each request, without texts."""
        self.settings = settings
        self.keys = keys
        self.journal = journal
        self.metrics = metrics
        self.log = log
        self.is_ready = False
        """Whether requests are answered; to be set while the application's lifespan lasts."""
        self._active = 0

    def app(self, routes: Sequence[BaseRoute], lifespan: Lifespan[Starlette]) -> ASGIApp:
        """The server as an ASGI application, with these routes besides its own."""
        own = [Route("/health", self.health), Route("/ready", self.ready), Route("/metrics", self.show_metrics)]
        app = Starlette(routes=[*own, *routes], exception_handlers=ERROR_HANDLERS, lifespan=lifespan)
        return AccessLog(app, self.log, self.metrics.request)

    async def health(self, request: Request) -> Response:  # noqa: ARG002
        """Whether the process lives."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:  # noqa: ARG002
        """Whether requests are answered."""
        status = "ready" if self.is_ready else "starting"
        if self.keys is not None and not self.keys.are_known:
            status = "keys_unreadable"
        if self.journal is not None and self.journal.writer.has_ended:
            status = "journal_ended"
        return JSONResponse({"status": status}, 200 if status == "ready" else 503)

    async def show_metrics(self, request: Request) -> Response:
        """What was counted, for Prometheus."""
        limits = self.caller(request).limits
        if limits is not None and not limits.metrics:
            raise ApiError(403, "this key may not read the metrics", code="metrics_not_allowed", headers=NO_RETRY)
        return Response(self.metrics.page(), media_type=CONTENT_TYPE)

    def caller(self, request: Request) -> Caller:
        """Whose request it is.

        Raises:
            ApiError: it has no key that is accepted, or a page of another site may have sent it.
        """
        require_same_site(request.headers, needs_key=self.keys is not None)
        if self.keys is None:
            return Caller()
        found = self.keys.caller(request.headers.get("authorization"))
        request.state.key = found.name
        return found

    @contextmanager
    def place(self) -> Iterator[None]:
        """Count a request as being answered inside the block.

        Raises:
            ApiError: as many are answered as may be at a time.
        """
        if self._active >= self.settings.max_requests:
            what = f"the server answers {self.settings.max_requests} requests at a time; ask again"
            raise ApiError(429, what, code="too_many_requests", headers={"retry-after": "1"})
        self._active += 1
        self.metrics.in_progress.inc()
        try:
            yield
        finally:
            self._active -= 1
            self.metrics.in_progress.dec()


async def read_body(request: Request, limit: int, seconds: float) -> bytes:
    """The body of a request.

    One up to twice as large as it may be is read and forgotten, since many clients read no answer before they have sent
    everything; a client that says how much it has, and waits to be told to send it, is refused before.

    Raises:
        ApiError: it is too large, or does not come in time.
    """
    stated, most = request.headers.get("content-length", "0"), 2 * limit
    refused_over = limit if "expect" in request.headers else most
    found, size = bytearray(), 0
    try:
        async with asyncio.timeout(seconds):
            if not stated.isdecimal() or int(stated) <= refused_over:
                async for piece in request.stream():
                    size += len(piece)
                    if size <= limit:
                        found += piece
                    elif size > most:
                        break
                if size <= limit:
                    return bytes(found)
    except TimeoutError:
        what = f"the body did not come within {seconds:g} s"
        raise ApiError(408, what, code="request_timeout", headers=_CLOSE) from None
    raise ApiError(413, f"the body must have at most {limit} bytes", code="body_too_large", headers=_CLOSE)


_CLOSE: Final = {"connection": "close"}


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, JournalFailure):
        error = journal_failed(error)
    elif isinstance(error, HTTPException):
        code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code)
        what = f"{request.method} {request.url.path}: {error.detail}"
        error = ApiError(error.status_code, what, code=code, headers=error.headers)
    elif not isinstance(error, ApiError):
        error = ApiError(500, "the server has made a mistake; its log says more", code="internal_error")
    return error.response()


ERROR_HANDLERS: Final[Mapping[Any, Any]] = dict.fromkeys((ApiError, HTTPException, JournalFailure, Exception), _failed)
"""What makes errors responses, for Starlette's `exception_handlers`."""


class AccessLog:
    """A line for each request: method, path, status, seconds, the key's name, the run. No texts, no keys."""

    def __init__(self, app: ASGIApp, log: Callable[[str], None], observe: Callable[[str, int, float], None]) -> None:
        """`observe` is told of each request, too: its route, its status, its seconds."""
        self.app = app
        self._log = log
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

        refusal = _wrong_head(scope["headers"])
        try:
            await (self.app if refusal is None else refusal.response())(scope, receive, noting)
        except ClientDisconnect:
            status = CLIENT_LEFT
        finally:
            seconds = time.monotonic() - began
            path = quote(scope["path"])  # as it was sent: a line break in it would begin a line of the log
            known = {"key": scope["state"].get("key"), "run": scope["state"].get("run_id")}
            about = "".join(f" {what} {name}" for what, name in known.items() if name)
            self._log(f"{scope['method']} {path} {status} {seconds:.3f} s{about}")
            self._observe(getattr(scope.get("route"), "path", "other"), status, seconds)


def _wrong_head(headers: Sequence[tuple[bytes, bytes]]) -> ApiError | None:
    """The error for a head that is too long, or that two servers in a row may read as different requests."""
    if sum(len(name) + len(value) + 4 for name, value in headers) > LONGEST_HEAD:
        return ApiError(
            431, f"the headers must have at most {LONGEST_HEAD} bytes", code="head_too_large", headers=_CLOSE
        )
    if {b"content-length", b"transfer-encoding"} <= {name for name, _ in headers}:
        what = "a request has a Content-Length or a Transfer-Encoding, not both"
        return ApiError(400, what, code="two_lengths", headers=_CLOSE)
    return None


def require_same_site(headers: Mapping[str, str], *, needs_key: bool) -> None:
    """Refuse a request that a page of another site may have sent.

    Raises:
        ApiError: it names another host than this machine, or comes from a page of another one.
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    if needs_key and headers.get("authorization", "").lower().startswith("bearer "):
        return
    if host and not needs_key and not is_loopback(_split(f"//{host}").hostname or ""):
        raise _refusal(f"a server without keys answers on localhost only (Host: {host!r:.80}); give it --keys")
    if origin is not None and _split(origin).netloc.lower() != host.lower():
        raise _refusal(f"pages of other sites are not answered (Origin: {origin!r:.80})")


def _split(address: str) -> SplitResult:
    """The parts of an address; all are empty if it is not one."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def _refusal(what: str) -> ApiError:
    return ApiError(403, what, code="foreign_site", headers=NO_RETRY)


KEEP_ALIVE_S: Final = 15.0
"""Seconds between signs of life while nothing happens: proxies cut silent connections, most after 60 s."""
_COMMENT: Final = b": keep-alive\n\n"
DONE: Final = b"data: [DONE]\n\n"
"""The last event of a stream that has its answer."""


class ClientLeft(Exception):  # noqa: N818  (nothing has failed)
    """The client has closed the connection."""


def as_event(value: dict[str, Any]) -> bytes:
    """A value as one event."""
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


class EventStream(Response):
    """A response that sends a comment at once and then pieces as they come."""

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        headers: Mapping[str, str],
        keep_alive: Callable[[], bytes],
        end: Callable[[], None],
    ) -> None:
        """`keep_alive` gives what is sent while there is nothing else to send: an event, since the idle timers of some
        clients do not count comments. `end` is called at the end.
        """
        own = {"content-type": "text/event-stream", "cache-control": "no-cache", "x-accel-buffering": "no"}
        self.background = None
        self.status_code = 200
        self.init_headers({**own, **headers})
        self._pieces = pieces
        self._keep_alive = keep_alive
        self._end = end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  (ASGI passes it)
        """Send it."""
        with suppress(ClientLeft, OSError):  # no one is left to be told
            try:
                await while_connected(receive, self._send(send))
            finally:
                self._end()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": _COMMENT, "more_body": True})
        async with aclosing(_kept_alive(self._pieces, self._keep_alive)) as pieces:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def while_connected(receive: Receive, work: Coroutine[Any, Any, _T]) -> _T:
    """The result of some work, which is cancelled when the client hangs up.

    Raises:
        ClientLeft: it did.
    """
    task, gone = asyncio.create_task(work), asyncio.create_task(_hang_up(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientLeft
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _kept_alive(
    pieces: AsyncGenerator[bytes, None], keep_alive: Callable[[], bytes]
) -> AsyncGenerator[bytes, None]:
    following: asyncio.Future[bytes | None] | None = None
    try:
        while True:
            following = following or asyncio.ensure_future(anext(pieces, None))
            done, _ = await asyncio.wait({following}, timeout=KEEP_ALIVE_S)
            if not done:
                yield keep_alive()
                continue
            piece, following = following.result(), None
            if piece is None:
                return
            yield piece
    finally:
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        await pieces.aclose()
