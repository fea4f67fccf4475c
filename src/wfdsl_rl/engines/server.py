"""The reward server as an ASGI application: `/v1/score` scores completions, `/v1/tasks` lists what can be scored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from wfdsl.experiment import ServeSettings
from wfdsl.server.api_errors import ApiError
from wfdsl.server.endpoints import ClientLeft, Endpoints, read_body, while_connected
from wfdsl.server.keys import ApiKeys, Caller, KeyUsage
from wfdsl.server.listening import FINISHED
from wfdsl_rl.engines.client import Result
from wfdsl_rl.engines.samples import LONGEST_ID, Sample, read_samples
from wfdsl_rl.engines.service import RewardService, shutting_down

_PAGE: Final = 1000
"""Tasks in one answer at most."""


def build_app(
    service: RewardService,
    settings: ServeSettings,
    *,
    keys: ApiKeys | None,
    log: Callable[[str], None],
) -> ASGIApp:
    """The server; `log` gets a line for each request, without texts. Without keys, all of this machine are answered."""
    server = _Server(service, settings, keys, log)
    routes = [
        Route("/v1/tasks", server.list_tasks),
        Route("/v1/score", server.score, methods=["POST"]),
    ]
    return server.app(routes, server.lifespan)


class _Server(Endpoints):
    def __init__(
        self,
        service: RewardService,
        settings: ServeSettings,
        keys: ApiKeys | None,
        log: Callable[[str], None],
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

    async def list_tasks(self, request: Request) -> Response:
        """The tasks that can be scored, without their answers."""
        self.caller(request)
        tasks = list(self._service.reward.tasks.values())
        first, most = _number(request, "offset", 0), min(_number(request, "limit", _PAGE), _PAGE)
        page = [{"id": task.id, "question": task.question, "kind": task.kind} for task in tasks[first : first + most]]
        return JSONResponse({"tasks": page, "total": len(tasks)})

    async def score(self, request: Request) -> Response:
        """Score one sample or several."""
        async with self._asked(request) as (caller, body):
            samples, single = read_samples(self._service.reward, body, _run(request))
            results = await self._results(request, samples, caller)
            return JSONResponse(results[0] if single else {"results": results})

    @asynccontextmanager
    async def _asked(self, request: Request) -> AsyncIterator[tuple[Caller, bytes]]:
        """What a request may use, and its body, which is read once the request has its place.

        Raises:
            ApiError: as `allowed`, `take_place` and `read_body` do, or the server ends before there is an answer.
        """
        caller = await self._usage.allowed(self.caller(request), also_spent=True)  # what was paid for is answered
        self.take_place()
        try:
            yield caller, await read_body(request, self.settings.max_body_bytes, self.settings.receive_s)
        except asyncio.CancelledError:  # the time that requests have at the server's end is over
            raise shutting_down() from None
        finally:
            self.leave_place()

    async def _results(self, request: Request, samples: list[Sample], caller: Caller) -> list[Result]:
        """The results of samples.

        Raises:
            ClientDisconnect: the client has left.
            ApiError: a sample cannot be scored.
        """
        try:
            scoring = self._service.score([each.allowed(caller) for each in samples])
            return await while_connected(request.receive, scoring)
        except ClientLeft:
            raise ClientDisconnect from None


def _run(request: Request) -> str:
    """What the ids of the request's samples begin with.

    Raises:
        ApiError: it is not printable, or too long.
    """
    run = request.query_params.get("run", "")
    if len(run) > LONGEST_ID or not run.isprintable():
        raise ApiError(
            400, f"run must have at most {LONGEST_ID} printable characters", code="invalid_value", param="run"
        )
    return run


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not text.isdecimal():
        raise ApiError(400, f"{name} must be a whole number (got {text!r})", code="invalid_value", param=name)
    return int(text)
