"""The chat API's side of an answer: a chat completion, or its chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wfdsl.protocols import ToolCall
from wfdsl.server.answering import Asked
from wfdsl.server.answers import Answer, cost_headers, summary_of, usage_of
from wfdsl.server.api_errors import ApiError
from wfdsl.server.event_stream import DONE, as_event
from wfdsl.server.live_runs import Said


class ChatReply:
    """The answer to a request as a chat completion; each method gives the chunks that a stream sends."""

    def __init__(self, asked: Asked, reasoning_field: str) -> None:
        self.asked = asked
        self._reasoning = reasoning_field
        self._answer: Answer
        self._about = {"id": f"chatcmpl-{asked.run_id}", "created": asked.created, "model": asked.chat.model}

    def body(self) -> dict[str, Any]:
        """The chat completion, once the answer is there."""
        return {
            **self._about,
            "object": "chat.completion",
            "choices": [_choice(self._answer)],
            "usage": usage_of(self._answer),
            "wfdsl": summary_of(self._answer),
        }

    @property
    def headers(self) -> dict[str, str]:
        """The headers that name the run and its cost."""
        return self.asked.headers | cost_headers(self._answer)

    def begin(self) -> bytes:
        """The first chunk."""
        return self._chunk({"role": "assistant", "content": ""})

    def said(self, said: Said) -> bytes:
        """A piece of the answer, or of what happens."""
        delta = {"content": "", self._reasoning: said.text} if said.reasoning else {"content": said.text}
        return self._chunk(delta)

    def keep_alive(self) -> bytes:
        """A chunk that adds nothing: some clients leave when events, not bytes, are missing for minutes."""
        return self._chunk({"content": ""})

    async def end(self, answer: Answer) -> bytes:
        """The end of the answer: its tool calls, how it ended, and what was done."""
        self._answer = answer
        calls = b"".join(self._chunk(delta) for delta in _calls(answer))
        delta = {"content": None if answer.tool_calls else ""}
        ended = [{"index": 0, "delta": delta, "finish_reason": answer.finish, "logprobs": None}]
        last = self._event(ended, wfdsl=summary_of(answer))
        usage = self._event([], usage=usage_of(answer)) if self.asked.chat.include_usage else b""
        return calls + last + usage + DONE

    def fail(self, error: ApiError) -> bytes:
        """The error as the last event."""
        return as_event(error.body())

    def _chunk(self, delta: dict[str, Any]) -> bytes:
        return self._event([{"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}])

    def _event(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        usage = {"usage": None} if self.asked.chat.include_usage else {}
        return as_event({**self._about, "object": "chat.completion.chunk", "choices": choices, **usage, **more})


def _choice(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.tool_calls:
        message["content"] = answer.text or None
        message["tool_calls"] = [_tool_call(call) for call in answer.tool_calls]
    return {"index": 0, "message": message, "finish_reason": answer.finish, "logprobs": None}


def _tool_call(call: ToolCall) -> dict[str, Any]:
    """A tool call as the chat API has it."""
    if call.custom:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _calls(answer: Answer) -> Iterator[dict[str, Any]]:
    """Deltas for the tool calls of an answer: each call's name, then what it is given."""
    for number, call in enumerate(answer.tool_calls):
        field = "input" if call.custom else "arguments"
        whole = _tool_call(call)
        about = {**whole, whole["type"]: {**whole[whole["type"]], field: ""}}
        yield {"content": None, "tool_calls": [{"index": number, **about}]}
        yield {"content": None, "tool_calls": [{"index": number, whole["type"]: {field: call.arguments}}]}
