"""Answering requests: which run answers one, how it is waited for, and what it gives.

A request with an `Idempotency-Key` has a run of its own that every repetition of it finds again, also after a restart.
OpenAI's clients repeat requests without such a key, but count them: a repetition is answered by the run of the first.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, Final

from wfdsl.errors import JournalFailure, RunInUse, UsageError
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.events import Event, Listener
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import request_of, run_of, runs_of_tool_calls
from wfdsl.interpreter.record import Run, RunEnded
from wfdsl.interpreter.running import new_run_id
from wfdsl.interpreter.tools import pending_calls
from wfdsl.server.answers import Answer, answer_of
from wfdsl.server.api_errors import NO_RETRY, ApiError, journal_failed, not_supported, of_run, wrong_value
from wfdsl.server.chat_request import ChatRequest
from wfdsl.server.keys import Caller
from wfdsl.server.live_runs import LINGER_S, LiveRuns, Progress, Said
from wfdsl.server.models import ServedModel, Turn

_REMEMBERED: Final = 10_000
"""Requests that are known without the journal. Our choice."""
_IDEMPOTENCY_KEY: Final = re.compile("[!-~]{1,255}")


class Answering:
    """The models and the runs of a server."""

    def __init__(
        self,
        models: Mapping[str, ServedModel],
        journal: Journal | None,
        observe: Callable[[str, Event], None],
        live: LiveRuns,
    ) -> None:
        """`observe` is told what happens in each run, with the model that runs; `live` has the runs in progress."""
        self._models = models
        self._observe = observe
        self.live = live
        self._journal = journal
        self._recent: dict[str, str] = {}
        """The last requests, the oldest first: the run of each without a key, and the digest of each with one."""

    def model(self, name: str) -> ServedModel:
        """A model by its name.

        Raises:
            ApiError: there is none.
        """
        if name not in self._models:
            what = f"there is no model {name!r:.80} (models: {', '.join(self._models)})"
            raise ApiError(404, what, code="model_not_found", param="model")
        return self._models[name]

    async def turn(self, chat: ChatRequest, body: bytes, headers: Mapping[str, str], caller: Caller) -> Turn:
        """A request with the run that answers it; `body` is what was sent.

        Raises:
            ApiError: it cannot be answered.
        """
        model = self.model(chat.model)
        model.require_able(chat)
        if chat.offered is not None and self._journal is None:
            raise not_supported("tools", "tools are not supported without a journal, which keeps their calls")
        digest = _digest(caller.name, body)
        origin, linger_s = {"request": digest, "key": caller.name}, _lingering(headers)
        if self._journal is not None and chat.results:
            found = await asyncio.to_thread(_continued, self._journal.path, chat, model.id, caller.name)
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
        if known is None and self._journal is not None:  # which does not have a run that has just begun
            origin = await self._journal.origin(run_id)
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

    async def pieces(self, turn: Turn) -> AsyncGenerator[Said | Answer, None]:
        """What happens and what is written, as it happens, and at last the answer, whose text has been said by then.

        Raises:
            ApiError: there is no answer.
        """

        def work(listener: Listener) -> Coroutine[Any, Any, Run]:
            return turn.run(self._journal, self._hearing(turn, listener))

        async with self.live.waiting(turn.run_id, work, linger_s=turn.linger_s) as live:
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
            answer = answer_of(turn, await _result(live.task))
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

        def work(listener: Listener) -> Coroutine[Any, Any, Run]:
            return turn.again(answer.run, problem, self._journal, self._hearing(turn, listener))

        async with self.live.waiting(f"{answer.run.id}-again", work, linger_s=turn.linger_s) as live:
            again = await _result(live.task)
        repaired = answer_of(turn, again)
        if problem := repaired.form_problem:
            what = f"the answer has another form than response_format asked for, twice: {problem}"
            raise ApiError(502, what, code="response_format_not_kept", run=answer.run)
        return replace(answer, text=repaired.text, finish=repaired.finish, again=again)

    def _hearing(self, turn: Turn, listener: Listener) -> Listener:
        def hear(event: Event) -> None:
            listener(event)
            self._observe(turn.model.id, event)

        return hear


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


async def _result(task: asyncio.Task[Run]) -> Run:
    """The run of a task; what has ended it becomes the error that a client is sent."""
    await asyncio.wait([task])
    if task.cancelled():
        raise ApiError(503, "the server shuts down; ask again", code="shutting_down", headers={"retry-after": "5"})
    try:
        return await task
    except RunEnded as error:
        raise of_run(error) from error
    except RunInUse as error:
        raise ApiError(409, str(error), code="run_in_progress", headers={"retry-after": "5"}) from error
    except JournalFailure as error:
        raise journal_failed(error) from error
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
