"""The server of `wfdsl serve`: its routes, and which run answers a request.

A request with an `Idempotency-Key` has a run of its own that every repetition of it finds again, also after a restart.
OpenAI's clients repeat requests without such a key, but count them: a repetition is answered by the run of the first.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Final, TypeAlias

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from wfdsl.experiment import ServeSettings
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import request_of, run_of, runs_of_tool_calls
from wfdsl.interpreter.record import Run
from wfdsl.interpreter.running import new_run_id
from wfdsl.interpreter.tools import pending_calls
from wfdsl.server.answers import Answer, ChatReply, ResponseReply, answer_of
from wfdsl.server.api_errors import NO_RETRY, ApiError, not_supported, wrong_value
from wfdsl.server.chat_request import ChatRequest, chat_request
from wfdsl.server.endpoints import CLIENT_LEFT, ClientLeft, Endpoints, EventStream, read_body, while_connected
from wfdsl.server.keys import ApiKeys, Caller, KeyUsage
from wfdsl.server.live_runs import LINGER_S, LiveRun, LiveRuns, Progress, Said, Work
from wfdsl.server.metrics import Metrics
from wfdsl.server.models import ServedModel, Turn
from wfdsl.server.openapi import openapi_document
from wfdsl.server.request_body import json_object
from wfdsl.server.responses_request import read_responses_request

_Reply: TypeAlias = ChatReply | ResponseReply
_REMEMBERED: Final = 10_000
"""Requests that are known without the journal. Our choice."""
_IDEMPOTENCY_KEY: Final = re.compile("[!-~]{1,255}")


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
        self._live = live
        self._recent: dict[str, str] = {}
        """The last requests, the oldest first: the run of each without a key, and the digest of each with one."""
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
                await self._live.end()

    async def show_openapi(self, request: Request) -> Response:  # noqa: ARG002
        """The OpenAPI document."""
        return JSONResponse(openapi_document(self._models, needs_key=self.keys is not None))

    async def list_models(self, request: Request) -> Response:
        """All models."""
        self.caller(request)
        return JSONResponse({"object": "list", "data": [model.card() for model in self._models.values()]})

    async def show_model(self, request: Request) -> Response:
        """One model."""
        self.caller(request)
        return JSONResponse(self._model(request.path_params["id"]).card())

    async def chat(self, request: Request) -> Response:
        """A chat completion."""

        async def begun(body: bytes, caller: Caller) -> ChatReply:
            return ChatReply(await self._turn(chat_request(json_object(body)), body, request.headers, caller))

        return await self._answered(request, begun)

    async def responses(self, request: Request) -> Response:
        """A response of the Responses API."""

        async def begun(body: bytes, caller: Caller) -> ResponseReply:
            wanted, fields = read_responses_request(body)
            return ResponseReply(await self._turn(wanted, body, request.headers, caller), fields)

        return await self._answered(request, begun)

    async def _answered(self, request: Request, begun: Callable[[bytes, Caller], Awaitable[_Reply]]) -> Response:
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
                return EventStream(self._sent(reply), turn.headers, reply.keep_alive, place.pop_all().close)
            try:
                await while_connected(request.receive, _to_the_end(self._sent(reply)))
                return JSONResponse(reply.body(), headers=reply.headers)
            except ApiError as error:
                error.headers |= turn.headers
                raise
            except ClientLeft:
                return Response(status_code=CLIENT_LEFT)

    async def _sent(self, reply: _Reply) -> AsyncGenerator[bytes, None]:
        """What a stream sends; an error is the last of it.

        Raises:
            ApiError: there is no answer, and the request does not want a stream.
        """
        try:
            yield reply.begin()
            async with aclosing(self._pieces(reply.turn)) as pieces:
                async for piece in pieces:
                    yield reply.said(piece) if isinstance(piece, Said) else reply.end(piece)
        except ApiError as error:
            if not reply.turn.chat.stream:
                raise
            yield reply.fail(error)

    def _model(self, name: str) -> ServedModel:
        """A model by its name.

        Raises:
            ApiError: there is none.
        """
        if name not in self._models:
            what = f"there is no model {name!r:.80} (models: {', '.join(self._models)})"
            raise ApiError(404, what, code="model_not_found", param="model")
        return self._models[name]

    async def _turn(self, chat: ChatRequest, body: bytes, headers: Mapping[str, str], caller: Caller) -> Turn:
        """A request with the run that answers it; `body` is what was sent.

        Raises:
            ApiError: it cannot be answered.
        """
        model = self._model(chat.model)
        model.require_able(chat)
        if chat.offered is not None and self.journal is None:
            raise not_supported("tools", "tools are not supported without a journal, which keeps their calls")
        digest = _digest(caller.name, body)
        origin = {**model.origin, "model": model.id, "request": digest, "key": caller.name}
        linger_s = _lingering(headers)
        if self.journal is not None and chat.results:
            found = await asyncio.to_thread(_continued, self.journal.path, chat, model.id, caller.name)
            if found is not None:
                run_id, asked, before = found
                return Turn(chat, model, caller, run_id, origin, linger_s, asked=asked, before=before)
        run_id, skipped = await self._run_id(headers, caller.name, digest), model.skips_conductor(chat, caller)
        return Turn(chat, model, caller, run_id, origin, linger_s, skipped=skipped)

    async def _run_id(self, headers: Mapping[str, str], owner: str, digest: str) -> str:
        key = headers.get("idempotency-key")
        if key is None:
            if headers.get("x-stainless-retry-count", "0") == "0" or digest not in self._recent:
                self._remember(digest, new_run_id())
            return self._recent[digest]
        if not _IDEMPOTENCY_KEY.fullmatch(key):
            what = "Idempotency-Key must have 1 to 255 characters of ASCII, and no spaces"
            raise ApiError(400, what, code="invalid_value", param="Idempotency-Key")
        run_id = f"api-{_digest(owner, key.encode())[:32]}"
        known = self._recent.get(run_id)
        if known is None and self.journal is not None:  # which does not have a run that has just begun
            origin = await self.journal.origin(run_id)
            known = self._recent.get(run_id, None if origin is None else origin.get("request", ""))
        if known not in (None, digest):
            what = "this Idempotency-Key was used for another request: use a new key for each request"
            raise ApiError(422, what, code="idempotency_key_reused", headers=NO_RETRY)
        self._remember(run_id, digest)
        return run_id

    def _remember(self, request: str, what: str) -> None:
        self._recent.pop(request, None)
        self._recent[request] = what
        if len(self._recent) > _REMEMBERED:
            del self._recent[next(iter(self._recent))]

    async def _pieces(self, turn: Turn) -> AsyncGenerator[Said | Answer, None]:
        """What happens and what is written, as it happens, and at last the answer, whose text has been said by then.

        Raises:
            ApiError: there is no answer.
        """
        async with self._waiting(turn, turn.run_id, partial(turn.run, self.journal)) as live:
            progress, written, said = Progress(turn.last_round, turn.before), "", ""
            async for event in live.follow():
                for piece in progress.said(event):
                    if piece.reasoning:
                        yield piece
                        continue
                    written += piece.text
                    # An answer that may have to be written again is not said before its end.
                    ready = "" if turn.chat.form else _before_stop(written, turn.chat.stops)
                    if len(ready) > len(said):
                        yield Said(ready[len(said) :], reasoning=False)
                        said = ready
            answer = answer_of(turn, await live.result())
        if problem := answer.form_problem:
            yield Said("the answer has another form than was asked for: asked again\n", reasoning=True)
            answer = await self._repaired(turn, answer, problem)
        if not answer.text.startswith(said):
            raise ApiError(502, "the answer began again while it was sent; ask again", code="answer_restarted")
        if len(answer.text) > len(said):
            yield Said(answer.text[len(said) :], reasoning=False)
        yield answer

    async def _repaired(self, turn: Turn, answer: Answer, problem: str) -> Answer:
        """The answer in the form that was asked for, for which its worker is asked once more."""
        work = partial(turn.again, answer.run, problem, self.journal)
        async with self._waiting(turn, f"{answer.run.id}-again", work) as live:
            again = await live.result()
        repaired = answer_of(turn, again)
        if problem := repaired.form_problem:
            what = f"the answer has another form than response_format asked for, twice: {problem}"
            raise ApiError(502, what, code="response_format_not_kept", run=answer.run)
        return replace(answer, text=repaired.text, finish=repaired.finish, again=again)

    def _waiting(self, turn: Turn, run_id: str, work: Work[Run]) -> AbstractAsyncContextManager[LiveRun[Run]]:
        return self._live.waiting(run_id, work, partial(self.metrics.event, turn.model.id), linger_s=turn.linger_s)


async def _to_the_end(pieces: AsyncGenerator[bytes, None]) -> None:
    async with aclosing(pieces):
        async for _ in pieces:
            pass


def _lingering(headers: Mapping[str, str]) -> Callable[[], float]:
    """For how many seconds a run continues without its client: until it asks again, as it does when its own time limit
    is over.
    """
    began = time.monotonic()  # the client's time began before the request was here
    try:
        limit = float(headers.get("x-stainless-read-timeout", "inf"))
    except ValueError:
        limit = inf
    return lambda: LINGER_S if time.monotonic() - began >= 0.9 * limit - 1 else 0.0


def _before_stop(text: str, stops: tuple[str, ...]) -> str:
    """What may be sent of a text that is still written: nothing from a stop text on, nor what may become one."""
    ends = [at for stop in stops if (at := text.find(stop)) >= 0]
    if ends:
        return text[: min(ends)]
    longest = max((len(stop) for stop in stops), default=1) - 1
    kept = (n for n in range(min(longest, len(text)), 0, -1) if any(s.startswith(text[-n:]) for s in stops))
    return text[: len(text) - next(kept, 0)]


def _digest(owner: str, content: bytes) -> str:
    return hashlib.sha256(owner.encode() + b"\0" + content).hexdigest()


def _continued(journal: Path, chat: ChatRequest, model: str, owner: str) -> tuple[str, RunRequest, Run] | None:
    """The run that waited for a request's results of tools, what it was asked, and what there is of it; None: there is
    none of this client and this model, so that the conversation is answered as a new question.

    Raises:
        ApiError: a tool call that the run waits for has no result.
        JournalFailure: the journal cannot be read.
    """
    found = runs_of_tool_calls(journal, chat.results)
    if len(found) != 1:
        return None
    (run_id,) = found
    asked = request_of(journal, run_id)
    if (asked.origin.get("key"), asked.origin.get("model")) != (owner, model):
        return None
    before = run_of(journal, run_id)
    missing = [call.id for call in pending_calls(before) if call.id not in chat.results]
    if missing:
        raise wrong_value("messages", f"these tool calls have no result: {', '.join(missing)}")
    return run_id, asked, before


def _opened(what: Any) -> AbstractAsyncContextManager[Any]:
    return what.open() if hasattr(what, "open") else AsyncExitStack()
