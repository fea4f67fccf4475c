"""The reward server as an ASGI application: `/v1/score` scores completions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from wfdsl.experiment import ServeSettings
from wfdsl.server.api_errors import ApiError
from wfdsl.server.endpoints import ClientLeft, Endpoints, read_body, while_connected
from wfdsl.server.keys import ApiKeys, KeyUsage
from wfdsl.server.listening import FINISHED
from wfdsl_rl.engines.service import LONGEST_ID, RewardService, read_samples, shutting_down


def build_app(
    service: RewardService, settings: ServeSettings, *, keys: ApiKeys | None, log: Callable[[str], None]
) -> ASGIApp:
    """The server; `log` gets a line for each request, without texts. Without keys, all of this machine are answered."""
    server = _Server(service, settings, keys, log)
    return server.app([Route("/v1/score", server.score, methods=["POST"])], server.lifespan)


class _Server(Endpoints):
    def __init__(
        self, service: RewardService, settings: ServeSettings, keys: ApiKeys | None, log: Callable[[str], None]
    ) -> None:
        super().__init__(settings, keys, service.journal, service.metrics, log)
        self._service = service
        self._usage = KeyUsage(service.journal, within=service.budget)

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[Mapping[str, Any]]:  # noqa: ARG002  (Starlette passes it)
        """Keep the workers' clients up while the server runs, and end all runs before they close."""
        service = self._service
        async with service.reward.pool.open():
            self.is_ready = True
            try:
                yield {FINISHED: service.finished}
            finally:
                self.is_ready = False
                await service.end()

    async def score(self, request: Request) -> Response:
        """Score one sample or several.

        Raises:
            ApiError: the request cannot be allowed or read, a sample cannot be scored, or the server ends.
            ClientDisconnect: the client has left.
        """
        caller = await self._usage.allowed(self.caller(request), also_spent=True)  # what was paid for is answered
        try:
            with self.place():
                body = await read_body(request, self.settings.max_body_bytes, self.settings.receive_s)
                samples, single = read_samples(self._service.reward, body, _run(request))
                scoring = self._service.score([each.allowed(caller) for each in samples])
                results = await while_connected(request.receive, scoring)
        except ClientLeft:
            raise ClientDisconnect from None
        except asyncio.CancelledError:  # the time that requests have at the server's end is over
            raise shutting_down() from None
        return JSONResponse(results[0] if single else {"results": results})


def _run(request: Request) -> str:
    """What the ids of the request's samples begin with."""
    run = request.query_params.get("run", "")
    if len(run) > LONGEST_ID or not run.isprintable():
        raise ApiError(
            400, f"run must have at most {LONGEST_ID} printable characters", code="invalid_value", param="run"
        )
    return run
