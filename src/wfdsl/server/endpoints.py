"""What every server of ours has: keys, limits on bodies and on requests at a time, metrics, and an access log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Lifespan

from wfdsl.experiment import ServeSettings
from wfdsl.server.api_errors import ApiError
from wfdsl.server.api_keys import ApiKeys, Caller
from wfdsl.server.metrics import CONTENT_TYPE, Metrics
from wfdsl.server.middleware import ERROR_HANDLERS, AccessLog, read_body
from wfdsl.server.same_site import require_same_site

_MOST_BYTES: Final = 2**30
"""Bodies that are held at a time, in bytes. Our choice."""


class Endpoints:
    """The base of a server's endpoints; it answers `/health`, `/ready` and `/metrics` itself."""

    def __init__(
        self, settings: ServeSettings, keys: ApiKeys | None, metrics: Metrics, log: Callable[[str], None]
    ) -> None:
        """Without keys, all who reach the server are answered; `log` gets a line for each request, without texts."""
        self.settings = settings
        self.keys = keys
        self.metrics = metrics
        self.log = log
        self.is_ready = False
        """Whether requests are answered; to be set while the application's lifespan lasts."""
        self._active = 0
        self._held_bytes = 0

    def app(self, routes: Sequence[BaseRoute], lifespan: Lifespan[Starlette]) -> ASGIApp:
        """The server as an ASGI application, with these routes besides its own."""
        own = [
            Route("/health", self.health),
            Route("/ready", self.ready),
            Route("/metrics", self.show_metrics),
        ]
        app = Starlette(routes=[*own, *routes], exception_handlers=ERROR_HANDLERS, lifespan=lifespan)
        return AccessLog(app, self.log, as_json=self.settings.log == "json", observe=self.metrics.request)

    async def health(self, request: Request) -> Response:  # noqa: ARG002
        """Whether the process lives."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:  # noqa: ARG002
        """Whether requests are answered."""
        return JSONResponse({"status": "ready" if self.is_ready else "starting"}, 200 if self.is_ready else 503)

    async def show_metrics(self, request: Request) -> Response:
        """Everything that was counted, for Prometheus."""
        self.caller(request)
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

    async def body(self, request: Request, largest: int | None = None) -> bytes:
        """The body of a request; `largest` limits its bytes more than the settings do.

        Raises:
            ApiError: as `received` does.
        """
        async with self.received(request, largest) as body:
            return body

    @asynccontextmanager
    async def received(self, request: Request, largest: int | None = None) -> AsyncIterator[bytes]:
        """The body of a request, for a block that holds it.

        Raises:
            ApiError: it is too large, or does not come in time, or there is no room for it.
        """
        most = min(self.settings.max_body_bytes, largest or self.settings.max_body_bytes)
        stated = request.headers.get("content-length", "")
        size = min(int(stated), most) if stated.isdecimal() else most
        if self._held_bytes and self._held_bytes + size > _MOST_BYTES:
            raise _busy("the requests in progress fill the memory that the server has for them; ask again")
        self._held_bytes += size
        try:
            yield await read_body(request, most, self.settings.receive_s)
        finally:
            self._held_bytes -= size

    def take_place(self) -> None:
        """Count a request that is being answered; it has to leave its place at its end.

        Raises:
            ApiError: as many are answered as may be at a time.
        """
        if self._active >= self.settings.max_requests:
            raise _busy(f"the server answers {self.settings.max_requests} requests at a time; ask again")
        self._active += 1
        self.metrics.in_progress.set(self._active)

    def leave_place(self) -> None:
        """Count a request no longer."""
        self._active -= 1
        self.metrics.in_progress.set(self._active)


def _busy(what: str) -> ApiError:
    return ApiError(429, what, code="too_many_requests", headers={"retry-after": "1"})
