"""The routes of `wfdsl serve`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from wfdsl.experiment import ServeSettings
from wfdsl.interpreter.events import Event, RunFinished
from wfdsl.interpreter.journal import Journal
from wfdsl.server.answering import Answering, Asked
from wfdsl.server.api_errors import ApiError
from wfdsl.server.api_keys import ApiKeys, require_model
from wfdsl.server.chat_request import ChatRequest, read_chat_request
from wfdsl.server.chat_stream import Chunks, chat_chunks
from wfdsl.server.endpoints import Endpoints
from wfdsl.server.event_stream import ClientLeft, EventStream, while_connected
from wfdsl.server.kept_responses import KeptResponses
from wfdsl.server.key_usage import Allowance, KeyUsage
from wfdsl.server.log_lines import json_line, run_record
from wfdsl.server.metrics import Metrics
from wfdsl.server.middleware import CLIENT_LEFT
from wfdsl.server.model_cards import ModelCards
from wfdsl.server.openapi import openapi_document
from wfdsl.server.replies import chat_completion, headers_of
from wfdsl.server.responses_reply import ResponseInProgress, response_events, whole_response
from wfdsl.server.responses_request import read_responses_request

_T = TypeVar("_T")


def build_app(
    cards: ModelCards,
    settings: ServeSettings,
    *,
    keys: ApiKeys | None,
    journal: Journal | None,
    log: Callable[[str], None],
    more: Sequence[BaseRoute] = (),
) -> ASGIApp:
    """The server as an ASGI application; `log` gets a line for each request, without texts. Without keys, everyone who
    reaches it is answered. `more` are routes besides those of the API.
    """
    server = _Server(cards, settings, keys, journal, log, usage=KeyUsage(journal))
    routes = [
        Route("/v1/models", server.list_models),
        Route("/v1/models/{id:path}", server.show_model),
        Route("/v1/chat/completions", server.chat, methods=["POST"]),
        Route("/v1/responses", server.responses, methods=["POST"]),
        Route("/v1/route", server.route, methods=["POST"]),
        Route("/openapi.json", server.show_openapi),
        *more,
    ]
    return server.app(routes, server.lifespan)


class _Server(Endpoints):
    def __init__(
        self,
        cards: ModelCards,
        settings: ServeSettings,
        keys: ApiKeys | None,
        journal: Journal | None,
        log: Callable[[str], None],
        *,
        usage: KeyUsage,
    ) -> None:
        super().__init__(settings, keys, Metrics(), log)
        self._cards = cards
        self._answering = Answering(self._cards.model, journal, self._observe)
        self._usage = usage
        self._journal = journal

    def _observe(self, model: str, event: Event) -> None:
        """Count what happens in a run, and note its end in the log."""
        self.metrics.event(model, event)
        if self.settings.log == "json" and isinstance(event, RunFinished) and not event.path:
            self.log(json_line("run", run_record(model, event.run, texts=self.settings.log_texts)))

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:  # noqa: ARG002  (Starlette passes it)
        """Keep the workers' clients up while the server runs, and end all runs before they close."""
        async with AsyncExitStack() as opened:
            for model in self._cards.models:
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
        return JSONResponse(openapi_document(self._cards.names, needs_key=self.keys is not None))

    async def list_models(self, request: Request) -> Response:
        """The models that the key may name."""
        return JSONResponse({"object": "list", "data": self._cards.all(self.caller(request).models)})

    async def show_model(self, request: Request) -> Response:
        """One model."""
        caller, name = self.caller(request), request.path_params["id"]
        require_model(self._cards.model(name).id, caller.models)
        return JSONResponse(self._cards.card(name))

    async def route(self, request: Request) -> Response:
        """The workflow that would answer a chat completion request."""
        allowance, body = await self._admit(request)
        self.take_place()
        try:
            return JSONResponse(await while_connected(request.receive, self._answering.route(body, allowance)))
        except ClientLeft:
            return Response(status_code=CLIENT_LEFT)
        finally:
            self.leave_place()

    async def chat(self, request: Request) -> Response:
        """A chat completion."""
        allowance, body = await self._admit(request)
        asked = await self._asked(request, read_chat_request(body), body, allowance)
        if asked.chat.stream:
            chunks = Chunks(asked)
            return self._stream(asked, chat_chunks(chunks, asked, self.settings.reasoning), chunks.keep_alive)
        answers = await self._whole(request, asked, asked.answers())
        if answers is None:
            return Response(status_code=CLIENT_LEFT)
        return JSONResponse(chat_completion(asked.chat, answers), headers=headers_of(*answers))

    async def _asked(self, request: Request, chat: ChatRequest, body: bytes, allowance: Allowance) -> Asked:
        asked = await self._answering.asked(chat, body, request.headers, allowance)
        request.state.run_id = asked.run_id
        self.take_place()
        return asked

    async def responses(self, request: Request) -> Response:
        """A response of the Responses API."""
        allowance, body = await self._admit(request)
        kept = KeptResponses(self._journal, allowance.key)
        wanted = read_responses_request(body, kept)
        asked = await self._asked(request, wanted.chat, body, allowance)
        response = ResponseInProgress(asked, wanted, kept)
        if asked.chat.stream:
            return self._stream(asked, response_events(response, asked), response.keep_alive)
        found = await self._whole(request, asked, whole_response(response, asked))
        if found is None:
            return Response(status_code=CLIENT_LEFT)
        return JSONResponse(found[0], headers=headers_of(found[1]))

    def _stream(self, asked: Asked, pieces: AsyncGenerator[bytes, None], keep_alive: Callable[[], bytes]) -> Response:
        return _Counted(EventStream(pieces, {"x-wfdsl-run": asked.run_id}, keep_alive), self.leave_place)

    async def _whole(self, request: Request, asked: Asked, work: Coroutine[Any, Any, _T]) -> _T | None:
        """What a request is answered with; None: the client has left."""
        try:
            return await while_connected(request.receive, work)
        except ApiError as error:
            error.headers["x-wfdsl-run"] = asked.run_id
            raise
        except ClientLeft:
            return None
        finally:
            self.leave_place()

    async def _admit(self, request: Request) -> tuple[Allowance, bytes]:
        """What a request may use, and its body.

        Raises:
            ApiError: it has no key that is accepted, or one that is used up; or the body is too large.
        """
        allowance = await self._usage.allowance(self.caller(request))
        return allowance, await self.body(request)


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


def _opened(what: Any) -> AbstractAsyncContextManager[Any]:
    return what.open() if hasattr(what, "open") else AsyncExitStack()
