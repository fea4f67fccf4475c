"""The routes of `wfdsl serve`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, aclosing, asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from wfdsl.errors import JournalFailure
from wfdsl.experiment import ServeSettings
from wfdsl.interpreter.journal import Journal
from wfdsl.server.answering import Answering
from wfdsl.server.answers import ChatReply, ResponseReply
from wfdsl.server.api_errors import ApiError, journal_failed
from wfdsl.server.chat_request import chat_request
from wfdsl.server.endpoints import (
    CLIENT_LEFT,
    ClientLeft,
    Endpoints,
    EventStream,
    read_body,
    while_connected,
)
from wfdsl.server.keys import ApiKeys, Caller, KeyUsage
from wfdsl.server.live_runs import LiveRuns, Said
from wfdsl.server.metrics import Metrics
from wfdsl.server.models import ServedModel, card
from wfdsl.server.openapi import openapi_document
from wfdsl.server.request_body import json_object
from wfdsl.server.responses_request import read_responses_request


def build_app(
    models: Mapping[str, ServedModel],
    settings: ServeSettings,
    *,
    keys: ApiKeys | None,
    journal: Journal | None,
    log: Callable[[str], None],
    more: Sequence[BaseRoute] = (),
    live: LiveRuns | None = None,
) -> ASGIApp:
    """The server as an ASGI application; `log` gets a line for each request, without texts. Without keys, everyone who
    reaches it is answered. `more` are routes besides those of the API, `live` is where runs in progress are found.
    """
    server = _Server(models, settings, keys, journal, log, live=live or LiveRuns())
    routes = [
        Route("/v1/models", server.list_models),
        Route("/v1/models/{id:path}", server.show_model),
        Route("/v1/chat/completions", server.chat, methods=["POST"]),
        Route("/v1/responses", server.responses, methods=["POST"]),
        Route("/openapi.json", server.show_openapi),
        *more,
    ]
    return server.app(routes, server.lifespan)


class _Server(Endpoints):
    def __init__(
        self,
        models: Mapping[str, ServedModel],
        settings: ServeSettings,
        keys: ApiKeys | None,
        journal: Journal | None,
        log: Callable[[str], None],
        *,
        live: LiveRuns,
    ) -> None:
        super().__init__(settings, keys, journal, Metrics(), log)
        self._models = models
        self._answering = Answering(models, journal, self.metrics.event, live)
        self._usage = KeyUsage(journal)

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:  # noqa: ARG002  (Starlette passes it)
        """Keep the workers' clients up while the server runs, and end all runs before they close."""
        async with AsyncExitStack() as opened:
            for model in self._models.values():
                await opened.enter_async_context(_opened(model.pool))
                await opened.enter_async_context(_opened(model.policy))
                model.build()
            self.is_ready = True
            try:
                yield
            finally:
                self.is_ready = False
                await self._answering.live.end()

    async def show_openapi(self, request: Request) -> Response:  # noqa: ARG002
        """The OpenAPI document."""
        return JSONResponse(openapi_document(self._models, needs_key=self.keys is not None))

    async def list_models(self, request: Request) -> Response:
        """All models."""
        self.caller(request)
        return JSONResponse({"object": "list", "data": [card(model) for model in self._models.values()]})

    async def show_model(self, request: Request) -> Response:
        """One model."""
        self.caller(request)
        return JSONResponse(card(self._answering.model(request.path_params["id"])))

    async def chat(self, request: Request) -> Response:
        """A chat completion."""

        async def begun(body: bytes, caller: Caller) -> ChatReply:
            turn = await self._answering.turn(chat_request(json_object(body)), body, request.headers, caller)
            return ChatReply(turn, self.settings.reasoning)

        return await self._answered(request, begun)

    async def responses(self, request: Request) -> Response:
        """A response of the Responses API."""

        async def begun(body: bytes, caller: Caller) -> ResponseReply:
            wanted, fields = read_responses_request(body)
            return ResponseReply(await self._answering.turn(wanted, body, request.headers, caller), fields)

        return await self._answered(request, begun)

    async def _answered(
        self, request: Request, begun: Callable[[bytes, Caller], Awaitable[ChatReply | ResponseReply]]
    ) -> Response:
        """The answer to a request, which has its place from before its body is read until the answer ends.

        Raises:
            ApiError: the request has no key that is accepted, or one that is used up; or it cannot be answered.
        """
        caller = await self._usage.allowed(self.caller(request))
        with ExitStack() as place:
            place.enter_context(self.place())
            body = await read_body(request, self.settings.max_body_bytes, self.settings.receive_s)
            reply = await begun(body, caller)
            turn = reply.turn
            request.state.run_id = turn.run_id
            if turn.chat.stream:
                return EventStream(self._streamed(reply), turn.headers, reply.keep_alive, place.pop_all().close)
            try:
                await while_connected(request.receive, self._whole(reply))
                return JSONResponse(reply.body(), headers=reply.headers)
            except ApiError as error:
                error.headers |= turn.headers
                raise
            except ClientLeft:
                return Response(status_code=CLIENT_LEFT)

    async def _replied(self, reply: ChatReply | ResponseReply) -> AsyncGenerator[bytes, None]:
        yield reply.begin()
        async with aclosing(self._answering.pieces(reply.turn)) as pieces:
            async for piece in pieces:
                yield reply.said(piece) if isinstance(piece, Said) else reply.end(piece)

    async def _streamed(self, reply: ChatReply | ResponseReply) -> AsyncGenerator[bytes, None]:
        """What a stream sends; an error is the last of it."""
        try:
            async with aclosing(self._replied(reply)) as pieces:
                async for piece in pieces:
                    yield piece
        except ApiError as error:
            yield reply.fail(error)
        except JournalFailure as error:
            yield reply.fail(journal_failed(error))

    async def _whole(self, reply: ChatReply | ResponseReply) -> None:
        """Put an answer together that is not streamed.

        Raises:
            ApiError: there is no answer.
        """
        async with aclosing(self._replied(reply)) as pieces:
            async for _ in pieces:
                pass


def _opened(what: Any) -> AbstractAsyncContextManager[Any]:
    return what.open() if hasattr(what, "open") else AsyncExitStack()
