"""A chat completion as a stream of chunks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from wfdsl.server.answering import Asked
from wfdsl.server.api_errors import ApiError
from wfdsl.server.event_stream import DONE, as_event
from wfdsl.server.progress import Said
from wfdsl.server.replies import completion_id, summaries_of, tool_call, usage_of
from wfdsl.server.turn import Answer


async def chat_chunks(chunks: Chunks, asked: Asked, reasoning_field: str) -> AsyncGenerator[bytes, None]:
    """The answers to a request as chunks; an error is the last event."""
    answers: list[Answer] = []
    try:
        for index in range(len(asked.run_ids)):
            yield chunks.chunk({"role": "assistant", "content": ""}, index)
        async with aclosing(asked.pieces()) as pieces:
            async for piece in pieces:
                if isinstance(piece, Said):
                    yield chunks.chunk(_delta(piece, reasoning_field), piece.choice)
                else:
                    answers.append(piece)
                    yield chunks.end(piece, answers)
        yield chunks.last(answers)
    except ApiError as error:
        yield as_event(error.body())


def _delta(said: Said, reasoning_field: str) -> dict[str, Any]:
    return {"content": "", reasoning_field: said.text} if said.reasoning else {"content": said.text}


def _calls(answer: Answer) -> Iterator[dict[str, Any]]:
    """Deltas for the tool calls of an answer: each call's name, then what it is given."""
    for number, call in enumerate(answer.tool_calls):
        field = "input" if call.custom else "arguments"
        whole = tool_call(call)
        about = {**whole, whole["type"]: {**whole[whole["type"]], field: ""}}
        yield {"content": None, "tool_calls": [{"index": number, **about}]}
        yield {"content": None, "tool_calls": [{"index": number, whole["type"]: {field: call.arguments}}]}


class Chunks:
    """What all chunks of a stream have in common."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._envelope = {
            "id": completion_id(asked.run_id),
            "object": "chat.completion.chunk",
            "created": asked.created,
            "model": asked.chat.model,
        }

    def chunk(self, delta: dict[str, Any], index: int = 0) -> bytes:
        """A piece of a message."""
        return self._event([{"index": index, "delta": delta, "finish_reason": None, "logprobs": None}])

    def keep_alive(self) -> bytes:
        """A chunk that adds nothing: some clients leave when events, not bytes, are missing for minutes."""
        return self.chunk({"content": ""})

    def end(self, answer: Answer, answers: Sequence[Answer]) -> bytes:
        """The end of an answer, whose text has been sent: its tool calls, how it ended, and at last what was done."""
        calls = b"".join(self.chunk(delta, answer.choice) for delta in _calls(answer))
        delta = {"content": None if answer.tool_calls else ""}
        choice = {"index": answer.choice, "delta": delta, "finish_reason": answer.finish, "logprobs": None}
        is_last = len(answers) == len(self._asked.run_ids)
        return calls + self._event([choice], **({"wfdsl": summaries_of(answers)} if is_last else {}))

    def last(self, answers: Sequence[Answer]) -> bytes:
        """The tokens, if they were asked for, and that nothing follows."""
        if not self._asked.chat.include_usage:
            return DONE
        return as_event({**self._envelope, "choices": [], "usage": usage_of(*answers)}) + DONE

    def _event(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        usage = {"usage": None} if self._asked.chat.include_usage else {}
        return as_event({**self._envelope, "choices": choices, **usage, **more})
