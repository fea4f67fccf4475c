"""Answering requests: which run answers one, how it is waited for, and how it is sent.

A request with an `Idempotency-Key` has a run of its own that every repetition of it finds again, also after a restart.
OpenAI's clients repeat requests without such a key, but count them: a repetition is answered by the run of the first.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar

from starlette.requests import Request

from wfdsl.errors import JournalFailure, UsageError
from wfdsl.interpreter.events import Listener
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import request_of
from wfdsl.interpreter.record import Run, RunEnded, workflow_to_list
from wfdsl.interpreter.running import new_run_id
from wfdsl.server.api_errors import NO_RETRY, ApiError, of_run
from wfdsl.server.chat_request import ChatRequest, read_chat_request
from wfdsl.server.event_stream import DONE, as_event
from wfdsl.server.live_runs import LiveRun, LiveRuns
from wfdsl.server.progress import Progress
from wfdsl.server.replies import answer_of, completion_id, summary_of, usage_of
from wfdsl.server.served_model import ServedModel

_T = TypeVar("_T")
_REPEATED_S: Final = 3600.0
"""How long a client's own repetition of a request finds the run of the first one."""
_LONGEST_KEY: Final = 255


class Answering:
    """The models and the runs of a server."""

    def __init__(self, models: Mapping[str, ServedModel], journal: Journal | None, reasoning_field: str) -> None:
        self.models = models
        self.live = LiveRuns()
        self._journal = journal
        self._reasoning_field = reasoning_field
        self._recent: dict[str, tuple[float, str]] = {}
        """The runs of the last hour, by their requests: when, and the run's id."""

    def model(self, name: str) -> ServedModel:
        """A model by its name.

        Raises:
            ApiError: there is none.
        """
        if name not in self.models:
            known = ", ".join(self.models)
            raise ApiError(404, f"there is no model {name!r} (models: {known})", code="model_not_found", param="model")
        return self.models[name]

    def asked(self, request: Request, body: bytes, owner: str) -> Asked:
        """A request, checked, with the run that answers it.

        Raises:
            ApiError: it cannot be answered.
        """
        asked = read_chat_request(body)
        self.model(asked.model)
        digest = _digest(owner, body)
        return Asked(self, asked, self._run_id(request.headers, owner, digest), digest, request.headers)

    async def route(self, body: bytes) -> dict[str, Any]:
        """What would be done for a chat completion: the steps, and what it cost to plan them. No worker is asked.

        Raises:
            ApiError: it cannot be answered.
        """
        asked = read_chat_request(body)
        model = self.model(asked.model)
        workflow, run = await _or_api_error(model.route(asked))
        steps = workflow_to_list(workflow)
        for step in steps:
            step["worker"] = model.pool.entry(step["worker"]).name
        usage = {} if run is None else {"usage": usage_of(run), "cost_usd": run.paid_usd}
        return {"object": "wfdsl.route", "model": model.id, "steps": steps, **usage}

    def _run_id(self, headers: Mapping[str, str], owner: str, digest: str) -> str:
        key = headers.get("idempotency-key")
        if key is not None:
            if not key or len(key) > _LONGEST_KEY:
                raise ApiError(400, f"Idempotency-Key must have 1 to {_LONGEST_KEY} characters", code="invalid_value")
            run_id = f"api-{_digest(owner, key.encode())[:32]}"
            self._require_same(run_id, digest)
            return run_id
        now = time.monotonic()
        self._recent = {known: each for known, each in self._recent.items() if now - each[0] < _REPEATED_S}
        repeated = headers.get("x-stainless-retry-count", "0") != "0"
        if not repeated or digest not in self._recent:
            self._recent[digest] = (now, new_run_id())
        return self._recent[digest][1]

    def _require_same(self, run_id: str, digest: str) -> None:
        """Refuse a key that was used for another request."""
        if self._journal is None:
            return
        try:
            before = request_of(self._journal.path, run_id).origin
        except JournalFailure:
            raise
        except UsageError:  # there is no such run yet
            return
        if before.get("request") != digest:
            raise ApiError(
                422,
                "this Idempotency-Key was used for another request: use a new key for each request",
                code="idempotency_key_reused",
                headers=NO_RETRY,
            )

    def work(self, asked: Asked, listener: Listener) -> Coroutine[Any, Any, Run]:
        """The run that answers a request."""
        return self.model(asked.chat.model).answer(
            asked.chat, asked.run_id, self._journal, listener, {"request": asked.digest}
        )

    def delta(self, text: str, *, reasoning: bool) -> dict[str, Any]:
        """A piece of the answer, or of what happens, as a chunk has it."""
        return {"content": "", self._reasoning_field: text} if reasoning else {"content": text}


class Asked:
    """One request and the run that answers it."""

    def __init__(
        self, answering: Answering, chat: ChatRequest, run_id: str, digest: str, headers: Mapping[str, str]
    ) -> None:
        self.chat = chat
        self.run_id = run_id
        self.digest = digest
        self._answering = answering
        self._began = time.monotonic()
        self._created = int(time.time())
        self._time_limit_s = _seconds(headers.get("x-stainless-read-timeout"))

    async def run(self) -> Run:
        """The run, once it is done.

        Raises:
            ApiError: it has no answer.
        """
        async with self._waiting() as live:
            return await self._result(live)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The run as a stream of chunks. An error inside a stream is its last event."""
        try:
            async with self._waiting() as live:
                yield self._chunk({"role": "assistant", "content": ""})
                progress, written, said = Progress(self._answering.model(self.chat.model).last_round), "", ""
                async for event in live.follow():
                    for piece in progress.said(event):
                        if piece.reasoning:
                            yield self._chunk(self._answering.delta(piece.text, reasoning=True))
                            continue
                        written += piece.text
                        ready = _before_stop(written, self.chat.stop)
                        if len(ready) > len(said):
                            yield self._chunk(self._answering.delta(ready[len(said) :], reasoning=False))
                            said = ready
                run = await self._result(live)
                answer, finish = answer_of(self.chat, run)
                if not answer.startswith(said):
                    raise ApiError(502, "the answer began again while it was sent; ask again", code="answer_restarted")
                if len(answer) > len(said):
                    yield self._chunk(self._answering.delta(answer[len(said) :], reasoning=False))
                yield self._last_chunk(run, finish)
                if self.chat.include_usage:
                    yield as_event({**self._envelope(), "choices": [], "usage": usage_of(run)})
                yield DONE
        except ApiError as error:
            yield as_event(error.body())

    def _waiting(self) -> AbstractAsyncContextManager[LiveRun]:
        return self._answering.live.waiting(
            self.run_id, lambda listener: self._answering.work(self, listener), lingers=self._gave_up
        )

    def _gave_up(self) -> bool:
        """Whether the client's own time limit is over, after which it asks again."""
        # The client's time began before the request was here.
        limit = self._time_limit_s
        return limit is not None and time.monotonic() - self._began >= 0.9 * limit - 1

    async def _result(self, live: LiveRun) -> Run:
        await asyncio.wait([live.task])
        if live.task.cancelled():
            raise ApiError(503, "the server shuts down; ask again", code="shutting_down", headers={"retry-after": "5"})
        return await _or_api_error(live.task)

    def _envelope(self) -> dict[str, Any]:
        return {
            "id": completion_id(self.run_id),
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self.chat.model,
        }

    def _chunk(self, delta: dict[str, Any]) -> bytes:
        return self._event([{"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}])

    def _last_chunk(self, run: Run, finish: str) -> bytes:
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": finish, "logprobs": None}
        return self._event([choice], wfdsl=summary_of(run))

    def _event(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        usage = {"usage": None} if self.chat.include_usage else {}
        return as_event({**self._envelope(), "choices": choices, **usage, **more})


async def _or_api_error(work: Awaitable[_T]) -> _T:
    """The result of some work; what ends a run becomes the error that a client is sent."""
    try:
        return await work
    except RunEnded as error:
        raise of_run(error) from error
    except UsageError as error:
        raise ApiError(500, str(error), code="run_refused", headers=NO_RETRY) from error


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


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
