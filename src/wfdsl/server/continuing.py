"""Runs that wait for the results of a client's tools, found again by the ids of the tool calls."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.journal_reading import request_of, run_of, runs_of_tool_calls
from wfdsl.interpreter.record import Run
from wfdsl.interpreter.tool_rounds import pending_calls
from wfdsl.server.api_errors import wrong_value
from wfdsl.server.chat_request import ChatRequest


@dataclass(frozen=True, slots=True)
class ContinuedRun:
    """A run that a request continues."""

    run_id: str
    asked: RunRequest
    before: Run
    """What there is of it."""


def continued_run(journal: Path, chat: ChatRequest, model: str, owner: str) -> ContinuedRun | None:
    """The run that a request's results of tools belong to; None: there is none of this client and this model, so that
    the conversation is answered as a new question.

    Raises:
        ApiError: a tool call that the run waits for has no result.
        JournalFailure: the journal cannot be read.
    """
    found = runs_of_tool_calls(journal, chat.results) if chat.results else set()
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
    return ContinuedRun(run_id, asked, before)
