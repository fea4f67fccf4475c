"""The reward server as an ASGI application: our own form of requests, and those of slime and OpenRLHF."""

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
from wfdsl.server.api_errors import NO_RETRY, ApiError
from wfdsl.server.endpoints import ClientLeft, Endpoints, read_body, while_connected
from wfdsl.server.keys import ApiKeys, Caller, KeyUsage
from wfdsl.server.listening import FINISHED
from wfdsl_rl.engines.results import Result
from wfdsl_rl.engines.samples import LONGEST_ID, Sample, SampleReader
from wfdsl_rl.engines.service import RewardService, shutting_down
from wfdsl_rl.scoring import RewardValues

_PAGE: Final = 1000
"""Tasks in one answer at most."""


def build_app(
    service: RewardService,
    settings: ServeSettings,
    *,
    keys: ApiKeys | None,
    log: Callable[[str], None],
    unscored: float | None = None,
) -> ASGIApp:
    """The server; `log` gets a line for each request, without texts. Without keys, all of this machine are answered.

    `unscored` is what engines that need a number get for a completion without a score; without it, an answer that
    could not be graded counts as wrong, and a worker that failed is an error.
    """
    server = _Server(service, settings, keys, log, unscored)
    routes = [
        Route("/v1/tasks", server.list_tasks),
        Route("/v1/score", server.score, methods=["POST"]),
        Route("/slime", server.score_for_slime, methods=["POST"]),
        Route("/openrlhf", server.score_for_openrlhf, methods=["POST"]),
    ]
    return server.app(routes, server.lifespan)


class _Server(Endpoints):
    def __init__(
        self,
        service: RewardService,
        settings: ServeSettings,
        keys: ApiKeys | None,
        log: Callable[[str], None],
        unscored: float | None,
    ) -> None:
        super().__init__(settings, keys, service.journal, service.metrics, log)
        self._service = service
        self._unscored = unscored
        self._reader = SampleReader(service.reward)
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
        """Score one sample or several, in our own form."""
        async with self._asked(request) as (caller, body):
            samples, single = self._reader.read(body, _run(request))
            results = await self._results(request, samples, caller)
            return JSONResponse(results[0] if single else {"results": results})

    async def score_for_slime(self, request: Request) -> Response:
        """Score one sample; the answer is a number."""
        async with self._asked(request) as (caller, body):
            samples = self._reader.read_slime(body, _run(request))
            return JSONResponse(self._number((await self._results(request, samples, caller))[0]))

    async def score_for_openrlhf(self, request: Request) -> Response:
        """Score a batch; the answer has rewards, scores and numbers to log."""
        async with self._asked(request) as (caller, body):
            samples = self._reader.read_openrlhf(body, _run(request))
            return JSONResponse(self._for_openrlhf(await self._results(request, samples, caller)))

    def _for_openrlhf(self, results: list[Result]) -> dict[str, Any]:
        rewards = [self._number(result) for result in results]
        logs = {
            "steps": [float(result["steps"]) for result in results],
            "valid": [float(result["outcome"] != "invalid") for result in results],
            "right": [float(result["outcome"] == "right") for result in results],
            "cost_usd": [result["cost_usd"] or 0.0 for result in results],
        }
        return {"rewards": rewards, "scores": rewards, "extra_logs": logs}

    def _number(self, result: Result) -> float:
        """The reward as a number, for engines that need one.

        Raises:
            ApiError: a worker failed, so that the same request may have a reward later.
        """
        score: float | None = result["score"]
        if score is not None:
            return score
        if self._unscored is not None:
            return self._unscored
        if result["outcome"] == "failed":
            raise ApiError(503, "; ".join(result["problems"]), code="worker_failed", headers={"retry-after": "5"})
        values = self._service.reward.scorer.values
        assert isinstance(values, RewardValues)  # the options of the server have no function
        return values.wrong  # the answer could not be graded

    @asynccontextmanager
    async def _asked(self, request: Request) -> AsyncIterator[tuple[Caller, bytes]]:
        """What a request may use, and its body, which is read once the request has its place.

        Raises:
            ApiError: as `_allowed`, `take_place` and `read_body` do, or the server ends before there is an answer.
        """
        caller = await self._allowed(request, also_spent=True)  # what was paid for is answered
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

    async def _allowed(self, request: Request, *, also_spent: bool = False) -> Caller:
        """What a request may use, as `KeyUsage.allowed` has it; the request counts from now on.

        Raises:
            ApiError: it has no key that is accepted, or one that is used up or is for some models.
        """
        caller = await self._usage.allowed(self.caller(request), also_spent=also_spent)
        if caller.models:
            what = f"the key {caller.name!r} is for some models, which this server has not; take another"
            raise ApiError(403, what, code="model_not_allowed", headers=NO_RETRY)
        return caller


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
