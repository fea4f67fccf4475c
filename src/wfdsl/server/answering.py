"""Answering requests: which run answers one, how it is waited for, and how it is sent.

A request with an `Idempotency-Key` has a run of its own that every repetition of it finds again, also after a restart.
OpenAI's clients repeat requests without such a key, but count them: a repetition is answered by the run of the first.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from wfdsl.errors import RunInUse, UsageError
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.events import Event, Listener
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import request_of, run_of, runs_of_tool_calls
from wfdsl.interpreter.record import Run, RunEnded, RunSuspended
from wfdsl.interpreter.running import new_run_id
from wfdsl.interpreter.tools import pending_calls
from wfdsl.server.answers import Answer, answer_of
from wfdsl.server.api_errors import NO_RETRY, ApiError, not_supported, of_run, wrong_value
from wfdsl.server.chat_request import ChatRequest
from wfdsl.server.keys import Allowance, require_model
from wfdsl.server.live_runs import LINGER_S, LiveRun, LiveRuns, Progress, Said
from wfdsl.server.models import ServedModel

_T = TypeVar("_T")
_REPEATED_S: Final = 3600.0
"""How long a client's own repetition of a request finds the run of the first one."""
_ASKED_AGAIN_S: Final = 120.0
"""How long a request like one that has failed continues the run of that: many clients repeat requests and do not say
so. Our choice.
"""
_REMEMBERED: Final = 10_000
"""Requests of the last hour, and keys, that are known without the journal. Our choice."""
_IDEMPOTENCY_KEY: Final = re.compile("[!-~]{1,255}")


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
        live: LiveRuns,
    ) -> None:
        """`model` finds a model by its name; `observe` is told what happens in each run, with the model that runs;
        `live` has the runs in progress.
        """
        self.model = model
        self._observe = observe
        self.live = live
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
        model.require_able(chat)
        if chat.tools is not None and self._journal is None:
            raise not_supported("tools", "tools are not supported without a journal, which keeps their calls")
        continued = None
        if self._journal is not None and chat.results:
            path = self._journal.path
            continued = await asyncio.to_thread(_continued_run, path, chat, model.id, allowance.key)
        digest = _digest(allowance.key, body)
        run_id = await self._run_id(headers, allowance.key, digest) if continued is None else continued.run_id
        origin = {"request": digest, "key": allowance.key}
        return Asked(self, chat, run_id, origin, headers=headers, allowance=allowance, continued=continued)

    async def _run_id(self, headers: Mapping[str, str], owner: str, digest: str) -> str:
        key = headers.get("idempotency-key")
        if key is not None:
            if not _IDEMPOTENCY_KEY.fullmatch(key):
                what = "Idempotency-Key must have 1 to 255 characters of ASCII, and no spaces"
                raise ApiError(400, what, code="invalid_value", param="Idempotency-Key")
            run_id = f"api-{_digest(owner, key.encode())[:32]}"
            await self._require_same(run_id, digest)
            return run_id
        now = time.monotonic()
        while self._recent and (len(self._recent) > _REMEMBERED or now - self._oldest.began >= _REPEATED_S):
            del self._recent[next(iter(self._recent))]
        before = self._recent.get(digest)
        repeated = headers.get("x-stainless-retry-count", "0") != "0"
        if before is not None and (repeated or now - before.failed < _ASKED_AGAIN_S):
            before.failed = -inf
            return before.run_id
        self._recent.pop(digest, None)
        self._recent[digest] = _Recent(new_run_id(), now)
        return self._recent[digest].run_id

    @property
    def _oldest(self) -> _Recent:
        return next(iter(self._recent.values()))

    def note_failure(self, asked: Asked) -> None:
        """Let the same request continue its run."""
        recent = self._recent.get(asked.origin["request"])
        if recent is not None and recent.run_id == asked.run_id:
            recent.failed = time.monotonic()

    async def _require_same(self, run_id: str, digest: str) -> None:
        """Refuse a key that was used for another request."""
        known = self._keyed.get(run_id)
        if known is None and self._journal is not None:  # which does not have a run that has just begun
            origin = await self._journal.origin(run_id)
            known = self._keyed.get(run_id, None if origin is None else origin.get("request", ""))
        if known is not None and known != digest:
            what = "this Idempotency-Key was used for another request: use a new key for each request"
            raise ApiError(422, what, code="idempotency_key_reused", headers=NO_RETRY)
        self._keyed.pop(run_id, None)
        self._keyed[run_id] = digest
        if len(self._keyed) > _REMEMBERED:
            del self._keyed[next(iter(self._keyed))]

    async def work(self, asked: Asked, listener: Listener) -> Run:
        """The run that answers a request: done, or suspended.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as a policy does.
        """
        chat, run_id, continued = asked.chat, asked.run_id, asked.continued
        model, journal, allowance = self.model(chat.model), self._journal, asked.allowance
        hear = self._hearing(asked, listener)
        try:
            if continued is None:
                return await model.answer(chat, run_id, journal, hear, origin=asked.origin, allowance=allowance)
            assert journal is not None  # the run was found there
            await journal.add_results(chat.results)
            return await model.resume(continued.asked, chat, run_id, journal, hear, allowance=allowance)
        except RunSuspended as suspended:
            return suspended.run

    async def repair(self, asked: Asked, run: Run, problem: str, listener: Listener) -> Run:
        """A run in which the worker that has answered is asked once more, for the form that was asked for.

        Raises:
            RunFailed, BudgetExhausted, UsageError: as a policy does.
        """
        return await self.model(asked.chat.model).repair(
            asked.chat,
            run,
            problem,
            journal=self._journal,
            on_event=self._hearing(asked, listener),
            origin=asked.origin,
            allowance=asked.allowance,
        )

    def _hearing(self, asked: Asked, listener: Listener) -> Listener:
        name = self.model(asked.chat.model).id

        def hear(event: Event) -> None:
            listener(event)
            self._observe(name, event)

        return hear


class Asked:
    """One request and the run that answers it."""

    def __init__(
        self,
        answering: Answering,
        chat: ChatRequest,
        run_id: str,
        origin: Mapping[str, str],
        *,
        headers: Mapping[str, str],
        allowance: Allowance,
        continued: _ContinuedRun | None,
    ) -> None:
        self.chat = chat
        self.run_id = run_id
        self.origin = origin
        self.allowance = allowance
        self.continued = continued
        self.skipped = answering.model(chat.model).skips_conductor(chat)
        """Why no Conductor is asked, if the model has one; empty: it is."""
        self._answering = answering
        self.created = int(time.time())
        self._began = time.monotonic()
        self._finishes = headers.get("x-wfdsl-finish", "").lower() == "true"
        self._time_limit_s = _seconds(headers.get("x-stainless-read-timeout"))

    @property
    def headers(self) -> dict[str, str]:
        """The headers that name the run, and say that the Conductor was skipped."""
        return {"x-wfdsl-run": self.run_id, **({"x-wfdsl-skipped": "conductor"} if self.skipped else {})}

    async def pieces(self) -> AsyncGenerator[Said | Answer, None]:
        """What happens and what is written, as it happens, and at last the answer, whose text has been said by then.

        Raises:
            ApiError: there is no answer.
        """
        before, asked = (None, None) if self.continued is None else (self.continued.before, self.continued.asked)

        def work(listener: Listener) -> Any:
            return self._answering.work(self, listener)

        async with self._answering.live.waiting(self.run_id, work, linger_s=self._linger_s, before=before) as live:
            last_round = self._answering.model(self.chat.model).last_round(self.chat, asked)
            progress, written, said = Progress(last_round, live.before), "", ""
            async for event in live.follow():
                for piece in progress.said(event):
                    if piece.reasoning:
                        yield piece
                        continue
                    written += piece.text
                    # An answer that may have to be written again is not said before its end.
                    ready = "" if self.chat.has_form else _before_stop(written, self.chat.stop)
                    if len(ready) > len(said):
                        yield Said(ready[len(said) :], reasoning=False)
                        said = ready
            answer = answer_of(self.chat, await self._result(live), live.before, skipped=self.skipped)
        if problem := answer.form_problem(self.chat):
            yield Said("the answer has another form than was asked for: asked again\n", reasoning=True)
            answer = await self._repaired(answer, problem)
        if not answer.text.startswith(said):
            raise ApiError(502, "the answer began again while it was sent; ask again", code="answer_restarted")
        if len(answer.text) > len(said):
            yield Said(answer.text[len(said) :], reasoning=False)
        yield answer

    async def _repaired(self, answer: Answer, problem: str) -> Answer:
        """The answer in the form that was asked for, for which its worker is asked once more."""

        def work(listener: Listener) -> Any:
            return self._answering.repair(self, answer.run, problem, listener)

        run_id = f"{answer.run.id}-again"
        async with self._answering.live.waiting(run_id, work, linger_s=self._linger_s) as live:
            repaired = answer.repaired(self.chat, await self._result(live))
        if problem := repaired.form_problem(self.chat):
            what = f"the answer has another form than response_format asked for, twice: {problem}"
            raise ApiError(502, what, code="response_format_not_kept", run=answer.run)
        return repaired

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


class Reply(Protocol):
    """What an API makes of the pieces of an answer; each method gives what a stream sends of it."""

    def begin(self) -> bytes:
        """The beginning."""

    def said(self, said: Said) -> bytes:
        """A piece of the reasoning, or of the answer."""

    async def end(self, answer: Answer) -> bytes:
        """An answer, whose text has been said."""

    def fail(self, error: ApiError) -> bytes:
        """Why there is no answer."""


async def streamed(reply: Reply, asked: Asked) -> AsyncGenerator[bytes, None]:
    """What a stream sends; an error is the last of it."""
    try:
        async with aclosing(_replied(reply, asked)) as pieces:
            async for piece in pieces:
                yield piece
    except ApiError as error:
        yield reply.fail(error)


async def whole(reply: Reply, asked: Asked) -> None:
    """Put an answer together that is not streamed.

    Raises:
        ApiError: there is no answer.
    """
    async with aclosing(_replied(reply, asked)) as pieces:
        async for _ in pieces:
            pass


async def _replied(reply: Reply, asked: Asked) -> AsyncGenerator[bytes, None]:
    yield reply.begin()
    async with aclosing(asked.pieces()) as pieces:
        async for piece in pieces:
            yield reply.said(piece) if isinstance(piece, Said) else await reply.end(piece)


async def _or_api_error(work: Awaitable[_T]) -> _T:
    """The result of some work; what ends a run becomes the error that a client is sent."""
    try:
        return await work
    except RunEnded as error:
        raise of_run(error) from error
    except RunInUse as error:
        raise ApiError(409, str(error), code="run_in_progress", headers={"retry-after": "5"}) from error
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


@dataclass(frozen=True, slots=True)
class _ContinuedRun:
    """A run that waited for the results of a client's tools, and that a request continues."""

    run_id: str
    asked: RunRequest
    before: Run
    """What there is of it."""


def _continued_run(journal: Path, chat: ChatRequest, model: str, owner: str) -> _ContinuedRun | None:
    """The run that a request's results of tools belong to; None: there is none of this client and this model, so that
    the conversation is answered as a new question.

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
    return _ContinuedRun(run_id, asked, before)
