"""The routes of the server, and what holds for all of them: keys, limits, errors of one shape, the access log."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wfdsl.experiment import ServeSettings
from wfdsl.interpreter.journal import Journal
from wfdsl.server.answering import Answering
from wfdsl.server.api_errors import ApiError
from wfdsl.server.api_keys import ApiKeys
from wfdsl.server.event_stream import ClientLeft, EventStream, while_connected
from wfdsl.server.replies import chat_completion, headers_of
from wfdsl.server.served_model import ServedModel

_CLIENT_LEFT = 499
"""nginx's status for a client that has left; only the access log sees it."""
_Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def build_app(
    models: Mapping[str, ServedModel],
    settings: ServeSettings,
    *,
    keys: ApiKeys | None,
    journal: Journal | None,
    log: Callable[[str], None],
) -> ASGIApp:
    """The server as an ASGI application; `log` gets a line for each request, without texts. Without keys, everyone who
    reaches it is answered.
    """
    server = _Server(models, settings, keys, journal)
    routes = [
        Route("/health", server.health),
        Route("/ready", server.ready),
        Route("/v1/models", server.list_models),
        Route("/v1/models/{id:path}", server.show_model),
        Route("/v1/chat/completions", server.chat, methods=["POST"]),
        Route("/v1/route", server.route, methods=["POST"]),
    ]
    handlers: dict[Any, Any] = {ApiError: _api_error, HTTPException: _http_error, Exception: _internal_error}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=server.lifespan)
    return _AccessLog(app, log)


class _Server:
    def __init__(
        self,
        models: Mapping[str, ServedModel],
        settings: ServeSettings,
        keys: ApiKeys | None,
        journal: Journal | None,
    ) -> None:
        self._models = models
        self._settings = settings
        self._keys = keys
        self._answering = Answering(models, journal, settings.reasoning)
        self._created = int(time.time())
        self._active = 0
        self._ready = False

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:  # noqa: ARG002  (Starlette passes it)
        """Keep the workers' clients up while the server runs, and end all runs before they close."""
        async with AsyncExitStack() as opened:
            for model in self._models.values():
                await opened.enter_async_context(_opened(model.pool))
                await opened.enter_async_context(_opened(model.policy))
            self._ready = True
            try:
                yield
            finally:
                self._ready = False
                await self._answering.live.end()

    async def health(self, request: Request) -> Response:  # noqa: ARG002
        """Whether the process lives."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:  # noqa: ARG002
        """Whether requests are answered."""
        return JSONResponse({"status": "ready" if self._ready else "starting"}, 200 if self._ready else 503)

    async def list_models(self, request: Request) -> Response:
        """All models."""
        self._owner(request)
        return JSONResponse({"object": "list", "data": [each.card(self._created) for each in self._models.values()]})

    async def show_model(self, request: Request) -> Response:
        """One model."""
        self._owner(request)
        return JSONResponse(self._answering.model(request.path_params["id"]).card(self._created))

    async def route(self, request: Request) -> Response:
        """The workflow that would answer a chat completion request."""
        self._owner(request)
        body = await _body(request, self._settings.max_body_bytes)
        self._take_place()
        try:
            return JSONResponse(await while_connected(request.receive, self._answering.route(body)))
        except ClientLeft:
            return Response(status_code=_CLIENT_LEFT)
        finally:
            self._leave_place()

    async def chat(self, request: Request) -> Response:
        """A chat completion."""
        owner = self._owner(request)
        body = await _body(request, self._settings.max_body_bytes)
        asked = self._answering.asked(request, body, owner)
        request.state.run_id = asked.run_id
        self._take_place()
        if asked.chat.stream:
            return _Counted(EventStream(asked.chunks(), {"x-wfdsl-run": asked.run_id}), self._leave_place)
        try:
            run = await while_connected(request.receive, asked.run())
        except ApiError as error:
            error.headers["x-wfdsl-run"] = asked.run_id
            raise
        except ClientLeft:
            return Response(status_code=_CLIENT_LEFT)
        finally:
            self._leave_place()
        return JSONResponse(chat_completion(asked.chat, run), headers=headers_of(run))

    def _owner(self, request: Request) -> str:
        """The name of the key that a request has; empty where none is needed.

        Raises:
            ApiError: it has none that is accepted.
        """
        if self._keys is None:
            return ""
        request.state.key = self._keys.owner(request.headers.get("authorization"))
        return str(request.state.key)

    def _take_place(self) -> None:
        if self._active >= self._settings.max_requests:
            raise ApiError(
                429,
                f"the server answers {self._settings.max_requests} requests at a time; ask again",
                code="too_many_requests",
                headers={"retry-after": "1"},
            )
        self._active += 1

    def _leave_place(self) -> None:
        self._active -= 1


class _Counted(Response):
    """A stream that gives its place up at its end."""

    def __init__(self, stream: EventStream, end: Callable[[], None]) -> None:
        self._stream = stream
        self._end = end
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._stream(scope, receive, send)
        finally:
            self._end()


async def _body(request: Request, limit: int) -> bytes:
    """The body of a request.

    Raises:
        ApiError: it is too large.
    """
    found = bytearray()
    stated = request.headers.get("content-length", "0")
    if not (stated.isdecimal() and int(stated) > limit):
        async for piece in request.stream():
            found += piece
            if len(found) > limit:
                break
        else:
            return bytes(found)
    raise ApiError(
        413, f"the body must have at most {limit} bytes", code="body_too_large", headers={"connection": "close"}
    )


def _opened(what: Any) -> AbstractAsyncContextManager[Any]:
    return what.open() if hasattr(what, "open") else AsyncExitStack()


async def _api_error(request: Request, error: ApiError) -> Response:  # noqa: ARG001
    return error.response()


async def _http_error(request: Request, error: HTTPException) -> Response:
    known = {404: "there is no such address", 405: "this address has another method"}
    what = f"{request.method} {request.url.path}: {known.get(error.status_code, error.detail)}"
    return ApiError(error.status_code, what, code="not_found", headers=error.headers).response()


async def _internal_error(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return ApiError(500, "the server has made a mistake; its log says more", code="internal_error").response()


class _AccessLog:
    """A line for each request: method, path, status, seconds, the key's name, the run. No texts, no keys."""

    def __init__(self, app: ASGIApp, log: Callable[[str], None]) -> None:
        self._app = app
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0
        scope.setdefault("state", {})

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except ClientDisconnect:
            status = _CLIENT_LEFT
        finally:
            known = {"key": scope["state"].get("key"), "run": scope["state"].get("run_id")}
            about = "".join(f" {what} {name}" for what, name in known.items() if name)
            self._log(f"{scope['method']} {scope['path']} {status} {time.monotonic() - began:.3f} s{about}")
