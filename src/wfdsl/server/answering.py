"""Answering requests: which run answers one, how it is waited for, and how it is sent.

A request with an `Idempotency-Key` has a run of its own that every repetition of it finds again, also after a restart.
OpenAI's clients repeat requests without such a key, but count them: a repetition is answered by the run of the first.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final, TypeVar

from wfdsl.errors import UsageError
from wfdsl.interpreter.events import Event, Listener
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.record import Run, RunEnded, RunSuspended, workflow_to_list
from wfdsl.interpreter.running import new_run_id
from wfdsl.server.api_errors import NO_RETRY, ApiError, not_supported, of_run
from wfdsl.server.api_keys import require_model
from wfdsl.server.chat_request import ChatRequest, read_chat_request
from wfdsl.server.continuing import ContinuedRun, continued_run
from wfdsl.server.event_stream import merged
from wfdsl.server.key_usage import Allowance
from wfdsl.server.live_runs import LINGER_S, LiveRun, LiveRuns
from wfdsl.server.progress import Progress, Said
from wfdsl.server.replies import answer_of, usage_of
from wfdsl.server.served_model import ServedModel
from wfdsl.server.turn import Answer

_T = TypeVar("_T")
_REPEATED_S: Final = 3600.0
"""How long a client's own repetition of a request finds the run of the first one."""
_ASKED_AGAIN_S: Final = 120.0
"""How long a request like one that has failed continues the run of that: many clients repeat requests and do not say
so. Our choice.
"""
_LONGEST_KEY: Final = 255
_KEYS_KEPT: Final = 10_000


@dataclass(slots=True)
class _Recent:
    """A run of the last hour."""

    run_id: str
    began: float
    failed: float = -inf
    """When, if it has and was not asked for again."""


class Answering:
    """The models and the runs of a server."""

    def __init__(
        self,
        model: Callable[[str], ServedModel],
        journal: Journal | None,
        observe: Callable[[str, Event], None],
    ) -> None:
        """`model` finds a model by its name; `observe` is told what happens in each run, with the model that runs."""
        self.model = model
        self._observe = observe
        self.live = LiveRuns()
        self._journal = journal
        self._recent: dict[str, _Recent] = {}
        """The runs of the last hour, by their requests, the oldest first."""
        self._keyed: dict[str, str] = {}
        """The requests of the last runs that have a key, the oldest first."""

    async def asked(self, chat: ChatRequest, body: bytes, headers: Mapping[str, str], allowance: Allowance) -> Asked:
        """A request with the run that answers it; `body` is what was sent.

        Raises:
            ApiError: it cannot be answered.
        """
        model = self.model(chat.model)
        require_model(model.id, allowance.models)
        model.require_able(chat, allowance)
        if chat.tools is not None and self._journal is None:
            raise not_supported("tools", "tools are not supported without a journal, which keeps their calls")
        continued = None
        if self._journal is not None and chat.results:
            path = self._journal.path
            continued = await asyncio.to_thread(continued_run, path, chat, model.id, allowance.key)
        digest = _digest(allowance.key, body)
        run_id = await self._run_id(headers, allowance.key, digest) if continued is None else continued.run_id
        origin = {"request": digest, "key": allowance.key}
        if allowance.without:
            origin["without"] = ",".join(allowance.without)
        return Asked(self, chat, run_id, origin, headers=headers, allowance=allowance, continued=continued)

    async def route(self, body: bytes, allowance: Allowance) -> dict[str, Any]:
        """What would be done for a chat completion: the steps, and what it cost to plan them. No worker is asked.

        Raises:
            ApiError: it cannot be answered.
        """
        asked = read_chat_request(body)
        model = self.model(asked.model)
        require_model(model.id, allowance.models)
        workflow, run = await _or_api_error(model.route(asked, allowance))
        steps = workflow_to_list(workflow)
        for step in steps:
            step["worker"] = model.pool.entry(step["worker"]).name
        usage = {} if run is None else {"usage": usage_of(Answer(run, "", "stop")), "cost_usd": run.paid_usd}
        return {"object": "wfdsl.route", "model": model.id, "steps": steps, **usage}

    async def _run_id(self, headers: Mapping[str, str], owner: str, digest: str) -> str:
        key = headers.get("idempotency-key")
        if key is not None:
            if not key or len(key) > _LONGEST_KEY:
                raise ApiError(400, f"Idempotency-Key must have 1 to {_LONGEST_KEY} characters", code="invalid_value")
            run_id = f"api-{_digest(owner, key.encode())[:32]}"
            await self._require_same(run_id, digest)
            return run_id
        now = time.monotonic()
        while self._recent and now - next(iter(self._recent.values())).began >= _REPEATED_S:
            del self._recent[next(iter(self._recent))]
        before = self._recent.get(digest)
        repeated = headers.get("x-stainless-retry-count", "0") != "0"
        if before is not None and (repeated or now - before.failed < _ASKED_AGAIN_S):
            before.failed = -inf
            return before.run_id
        self._recent.pop(digest, None)
        self._recent[digest] = _Recent(new_run_id(), now)
        return self._recent[digest].run_id

    def note_failure(self, asked: Asked) -> None:
        """Let the same request continue its run."""
        recent = self._recent.get(asked.origin["request"])
        if recent is not None and recent.run_id == asked.run_id:
            recent.failed = time.monotonic()

    async def _require_same(self, run_id: str, digest: str) -> None:
        """Refuse a key that was used for another request."""
        # The journal does not have a run that has just begun.
        known = self._keyed.get(run_id) or await self._digest_in_journal(run_id)
        known = self._keyed.get(run_id, known)  # another request may have come meanwhile
        if known is not None and known != digest:
            raise ApiError(
                422,
                "this Idempotency-Key was used for another request: use a new key for each request",
                code="idempotency_key_reused",
                headers=NO_RETRY,
            )
        self._keyed.pop(run_id, None)
        self._keyed[run_id] = digest
        if len(self._keyed) > _KEYS_KEPT:
            del self._keyed[next(iter(self._keyed))]

    async def _digest_in_journal(self, run_id: str) -> str | None:
        """What was asked under a key; None: nothing yet."""
        origin = None if self._journal is None else await self._journal.origin(run_id)
        return None if origin is None else origin.get("request", "")

    async def work(self, asked: Asked, index: int, listener: Listener) -> Run:
        """The run of one answer to a request: done, or suspended.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as a policy does.
        """
        model, run_id, continued = self.model(asked.chat.model), asked.run_ids[index], asked.continued
        journal, allowance = self._journal, asked.allowance

        def hear(event: Event) -> None:
            listener(event)
            self._observe(model.id, event)

        try:
            if continued is None:
                chat = _numbered(asked.chat, index)
                return await model.answer(chat, run_id, self._journal, hear, origin=asked.origin, allowance=allowance)
            assert journal is not None  # the run was found there
            await journal.add_results(asked.chat.results)
            return await model.resume(continued.asked, asked.chat, run_id, journal, hear, allowance=allowance)
        except RunSuspended as suspended:
            return suspended.run


class Asked:
    """One request and the runs that answer it, one for each answer that it wants."""

    def __init__(
        self,
        answering: Answering,
        chat: ChatRequest,
        run_id: str,
        origin: Mapping[str, str],
        *,
        headers: Mapping[str, str],
        allowance: Allowance,
        continued: ContinuedRun | None,
    ) -> None:
        self.chat = chat
        self.run_id = run_id
        """The first run."""
        count = 1 if continued is not None else chat.count
        self.run_ids = [run_id, *(f"{run_id}-{index}" for index in range(1, count))]
        self.origin = origin
        self.allowance = allowance
        self.continued = continued
        self._answering = answering
        self.created = int(time.time())
        self._began = time.monotonic()
        self._finishes = headers.get("x-wfdsl-finish", "").lower() == "true"
        self._time_limit_s = _seconds(headers.get("x-stainless-read-timeout"))

    async def answers(self) -> list[Answer]:
        """All answers, once they are there.

        Raises:
            ApiError: one of them fails.
        """
        if len(self.run_ids) == 1:
            return [await self._answer(0)]
        tasks = [asyncio.create_task(self._answer(index)) for index in range(len(self.run_ids))]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, index: int) -> Answer:
        async with self._waiting(index) as live:
            return answer_of(self.chat, await self._result(live), live.before, index)

    def pieces(self) -> AsyncGenerator[Said | Answer, None]:
        """What happens and what is written, as it happens, and at last each answer, whose text has been said by then.

        Raises:
            ApiError: there is no answer.
        """
        return merged([self._pieces(index) for index in range(len(self.run_ids))])

    async def _pieces(self, index: int) -> AsyncGenerator[Said | Answer, None]:
        async with self._waiting(index) as live:
            asked = None if self.continued is None else self.continued.asked
            last_round = self._answering.model(self.chat.model).last_round(self.chat, asked)
            progress, written, said = Progress(last_round, live.before), "", ""
            async for event in live.follow():
                for piece in progress.said(event):
                    if piece.reasoning:
                        yield piece._replace(choice=index)
                        continue
                    written += piece.text
                    ready = _before_stop(written, self.chat.stop)
                    if len(ready) > len(said):
                        yield Said(ready[len(said) :], reasoning=False, choice=index)
                        said = ready
            answer = answer_of(self.chat, await self._result(live), live.before, index)
            if not answer.text.startswith(said):
                raise ApiError(502, "the answer began again while it was sent; ask again", code="answer_restarted")
            if len(answer.text) > len(said):
                yield Said(answer.text[len(said) :], reasoning=False, choice=index)
            yield answer

    def _waiting(self, index: int) -> AbstractAsyncContextManager[LiveRun]:
        return self._answering.live.waiting(
            self.run_ids[index],
            lambda listener: self._answering.work(self, index, listener),
            linger_s=self._linger_s,
            before=None if self.continued is None else self.continued.before,
        )

    def _linger_s(self) -> float:
        """For how long the run continues without the client: while it wants that, or until it asks again as it does
        when its own time limit is over.
        """
        if self._finishes:
            return inf
        # The client's time began before the request was here.
        limit = self._time_limit_s
        gave_up = limit is not None and time.monotonic() - self._began >= 0.9 * limit - 1
        return LINGER_S if gave_up else 0.0

    async def _result(self, live: LiveRun) -> Run:
        await asyncio.wait([live.task])
        if live.task.cancelled():
            raise ApiError(503, "the server shuts down; ask again", code="shutting_down", headers={"retry-after": "5"})
        try:
            return await _or_api_error(live.task)
        except ApiError:
            self._answering.note_failure(self)
            raise


def _numbered(chat: ChatRequest, index: int) -> ChatRequest:
    """The request for one of several answers, which have seeds of their own."""
    return chat if chat.seed is None or not index else replace(chat, seed=chat.seed + index)


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
