"""The routes of `wfdsl serve`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from wfdsl.conductor.prompt import question_text
from wfdsl.experiment import ServeSettings
from wfdsl.interpreter.events import Event, RunFinished
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.record import Run, as_unicode
from wfdsl.server.answering import Answering, Asked, streamed, whole
from wfdsl.server.api_errors import ApiError
from wfdsl.server.chat_reply import ChatReply
from wfdsl.server.chat_request import ChatRequest, read_chat_request
from wfdsl.server.endpoints import CLIENT_LEFT, Endpoints, json_line, read_body
from wfdsl.server.event_stream import ClientLeft, EventStream, while_connected
from wfdsl.server.keys import Allowance, ApiKeys, KeyUsage, require_model
from wfdsl.server.live_runs import LiveRuns
from wfdsl.server.metrics import Metrics
from wfdsl.server.models import ModelCards
from wfdsl.server.openapi import openapi_document
from wfdsl.server.responses_reply import ResponseReply
from wfdsl.server.responses_request import KeptResponses, read_responses_request


def build_app(
    cards: ModelCards,
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
    server = _Server(cards, settings, keys, journal, log, usage=KeyUsage(journal), live=live or LiveRuns())
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
        cards: ModelCards,
        settings: ServeSettings,
        keys: ApiKeys | None,
        journal: Journal | None,
        log: Callable[[str], None],
        *,
        usage: KeyUsage,
        live: LiveRuns,
    ) -> None:
        super().__init__(settings, keys, Metrics(), log)
        self._cards = cards
        self._answering = Answering(self._cards.model, journal, self._observe, live)
        self._usage = usage
        self._journal = journal

    def _observe(self, model: str, event: Event) -> None:
        """Count what happens in a run, and note its end in the log."""
        self.metrics.event(model, event)
        if self.settings.log == "json" and isinstance(event, RunFinished) and not event.path:
            self.log(json_line("run", _run_record(model, event.run, texts=self.settings.log_texts)))

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

    async def chat(self, request: Request) -> Response:
        """A chat completion."""

        async def begun(body: bytes, allowance: Allowance) -> ChatReply:
            asked = await self._asked(request, read_chat_request(body), body, allowance)
            return ChatReply(asked, self.settings.reasoning)

        return await self._answered(request, begun)

    async def responses(self, request: Request) -> Response:
        """A response of the Responses API."""

        async def begun(body: bytes, allowance: Allowance) -> ResponseReply:
            kept = KeptResponses(self._journal, allowance.key)
            wanted = read_responses_request(body, kept)
            return ResponseReply(await self._asked(request, wanted.chat, body, allowance), wanted, kept)

        return await self._answered(request, begun)

    async def _asked(self, request: Request, chat: ChatRequest, body: bytes, allowance: Allowance) -> Asked:
        asked = await self._answering.asked(chat, body, request.headers, allowance)
        request.state.run_id = asked.run_id
        return asked

    async def _answered(
        self, request: Request, begun: Callable[[bytes, Allowance], Awaitable[ChatReply | ResponseReply]]
    ) -> Response:
        """The answer to a request, which has its place from before its body is read until the answer ends.

        Raises:
            ApiError: the request has no key that is accepted, or one that is used up; or it cannot be answered.
        """
        allowance = await self._usage.allowance(self.caller(request))
        self.take_place()
        with ExitStack() as place:
            place.callback(self.leave_place)
            body = await read_body(request, self.settings.max_body_bytes, self.settings.receive_s)
            reply = await begun(body, allowance)
            asked = reply.asked
            if asked.chat.stream:
                return EventStream(streamed(reply, asked), asked.headers, reply.keep_alive, place.pop_all().close)
            try:
                await while_connected(request.receive, whole(reply, asked))
                return JSONResponse(reply.body(), headers=reply.headers)
            except ApiError as error:
                error.headers |= asked.headers
                raise
            except ClientLeft:
                return Response(status_code=CLIENT_LEFT)


def _opened(what: Any) -> AbstractAsyncContextManager[Any]:
    return what.open() if hasattr(what, "open") else AsyncExitStack()


def _run_record(model: str, run: Run, *, texts: bool) -> dict[str, Any]:
    """The fields of a run that is over; question and answer only if they are asked for."""
    key = run.settings.get("origin", {}).get("key")
    found = {
        "run": run.id,
        "model": model,
        **({"key": key} if key else {}),
        "status": run.status,
        "seconds": None if run.seconds is None else round(run.seconds, 3),
        "cost_usd": run.paid_usd,
        "input_tokens": run.usage.input_tokens,
        "output_tokens": run.usage.output_tokens,
    }
    if texts:
        found |= {"question": as_unicode(question_text(run.question)), "answer": run.answer}
    return found
