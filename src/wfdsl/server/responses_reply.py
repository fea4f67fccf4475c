"""The Responses API's side of an answer: the response object, its output items, and the stream of events.

The response that comes whole is put together by the same steps as the streamed one, so both have the same items: one of
reasoning, which says what happened; the message; and a call for each tool. Order of events, as OpenAI documents it:
`response.created`, `response.in_progress`, for each item `added`, its parts and deltas, `done`; and at the end
`response.completed`, `response.incomplete` or `response.failed`.
"""

from __future__ import annotations

import json
import time
from typing import Any, Final

from wfdsl.protocols import ToolCall
from wfdsl.server.answers import Answer, cost_headers, run_summary, summary_of, usage_of
from wfdsl.server.api_errors import ApiError
from wfdsl.server.endpoints import DONE
from wfdsl.server.live_runs import Said
from wfdsl.server.models import Turn
from wfdsl.server.responses_request import RESPONSE_PREFIX, KeptResponses, ResponsesRequest

_Item = dict[str, Any]
_REASONING: Final = "reasoning"


class ResponseReply:
    """A response that grows; each method gives the events that tell a client of the change."""

    def __init__(self, turn: Turn, request: ResponsesRequest, kept: KeptResponses) -> None:
        self.turn = turn
        self._request = request
        self._kept = kept
        self._answer: Answer
        self._run_id = turn.run_id
        # A run that continues has several responses, whose ids differ.
        suffix = "" if turn.asked is None else f"-{turn.origin['request'][:8]}"
        self._id = f"{turn.run_id}{suffix}"
        self._response_id = f"{RESPONSE_PREFIX}{self._id}"
        self._created = turn.created
        self._numbers = 0
        self._output: list[_Item] = []
        """All items; the last one may be unfinished."""
        self._text = ""
        """The text of the last item so far, if that is unfinished."""
        self._end: dict[str, Any] = {}

    def begin(self) -> bytes:
        """The first events, and an item of reasoning, which is open until the message begins."""
        begun = [self._event(f"response.{name}", response=self.body()) for name in ("created", "in_progress")]
        part = {"type": "summary_text", "text": ""}
        opened = self._open({"id": f"rs_{self._id}", "type": _REASONING, "summary": []})
        return b"".join([*begun, opened, self._about("response.reasoning_summary_part.added", part=part)])

    def said(self, said: Said) -> bytes:
        """A piece of reasoning, or of the message."""
        if not said.reasoning:
            begun = b"" if self._last_is("message") else self._begin_message()
            return begun + self._delta("response.output_text.delta", said.text, logprobs=[])
        if self._last_is("message"):  # nothing comes between the pieces of an item
            return b""
        return self._delta("response.reasoning_summary_text.delta", said.text)

    def keep_alive(self) -> bytes:
        """An event that adds nothing: some clients leave when events, not bytes, are missing for minutes."""
        return self.said(Said("", reasoning=not self._last_is("message")))

    async def end(self, answer: Answer) -> bytes:
        """The answer, whose text has been said; the response is kept unless the request does not want that.

        Raises:
            JournalFailure: it cannot be kept now.
        """
        events = []
        if not self._last_is("message") and not answer.tool_calls:
            events.append(self._begin_message())
        is_cut = answer.finish in _INCOMPLETE
        events.append(self._end_message(is_cut=is_cut) if self._last_is("message") else self._end_reasoning())
        events += [self._call(call, number) for number, call in enumerate(answer.tool_calls)]
        if self._request.store:
            fields = self._request.fields
            previous, items = fields.get("previous_response_id") or None, self._request.items
            await self._kept.keep(self._response_id, self._run_id, previous=previous, asked=items, output=self._output)
        status = "incomplete" if is_cut else "completed"
        self._end = {
            "status": status,
            "incomplete_details": {"reason": _INCOMPLETE[answer.finish]} if is_cut else None,
            "completed_at": None if is_cut else int(time.time()),
            "usage": _usage(answer),
            "wfdsl": summary_of(answer),
        }
        self._answer = answer
        events.append(self._event(f"response.{status}", response=self.body()))
        return b"".join([*events, DONE])

    @property
    def headers(self) -> dict[str, str]:
        """The headers that name the run and its cost."""
        return self.turn.headers | cost_headers(self._answer)

    def fail(self, error: ApiError) -> bytes:
        """The last event of a response that has no answer."""
        message = str(error)
        if error.status == 429 and "retry-after" in error.headers:  # the words that Codex reads the wait from
            message = f"{message}. Please try again in {error.headers['retry-after']}s."
        self._end = {"status": "failed", "error": {"code": error.code or "server_error", "message": message}}
        if error.run is not None:
            self._end["wfdsl"] = run_summary(error.run)
        return self._event("response.failed", response=self.body()) + DONE

    def body(self) -> dict[str, Any]:
        """The response object as it is now."""
        fields = self._request.fields
        repeated = {name: fields.get(name) if fields.get(name) is not None else plain for name, plain in _PLAIN.items()}
        about = {"id": self._response_id, "object": "response", "created_at": self._created}
        return {
            **about,
            "status": "in_progress",
            "completed_at": None,
            "error": None,
            "incomplete_details": None,
            "model": self._request.chat.model,
            "output": list(self._output),
            **repeated,
            "tools": [_tool(tool) for tool in fields.get("tools") or []],
            "text": {"format": {"type": "text"}, **(fields.get("text") or {})},
            "reasoning": {"effort": None, "summary": None, **(fields.get("reasoning") or {})},
            "store": self._request.store,
            "background": False,
            "service_tier": "default",
            "usage": None,
            **self._end,
        }

    def _begin_message(self) -> bytes:
        about = {"id": f"msg_{self._id}", "type": "message", "role": "assistant"}
        opened = self._end_reasoning() + self._open({**about, "status": "in_progress", "content": []})
        return opened + self._about("response.content_part.added", content_index=0, part=_text_part(""))

    def _end_message(self, *, is_cut: bool) -> bytes:
        text = self._text
        part = _text_part(text)
        done = self._about("response.output_text.done", content_index=0, text=text, logprobs=[])
        ended = self._about("response.content_part.done", content_index=0, part=part)
        return done + ended + self._close(status="incomplete" if is_cut else "completed", content=[part])

    def _end_reasoning(self) -> bytes:
        part = {"type": "summary_text", "text": self._text}
        done = self._about("response.reasoning_summary_text.done", text=self._text)
        return done + self._about("response.reasoning_summary_part.done", part=part) + self._close(summary=[part])

    def _call(self, call: ToolCall, number: int) -> bytes:
        kind, field, event = _CUSTOM if call.custom else _FUNCTION
        about = {"id": f"fc_{self._id}_{number}", "type": kind, "call_id": call.id, "name": call.name}
        opened = self._open({**about, "status": "in_progress", field: ""})
        delta = self._delta(f"{event}.delta", call.arguments)
        done = self._about(f"{event}.done", **{field: call.arguments})
        return opened + delta + done + self._close(**{field: call.arguments, "status": "completed"})

    def _open(self, item: _Item) -> bytes:
        self._output.append(item)
        self._text = ""
        return self._event("response.output_item.added", output_index=len(self._output) - 1, item=item)

    def _close(self, **changed: Any) -> bytes:
        item = self._output[-1] = {**self._output[-1], **changed}
        return self._event("response.output_item.done", output_index=len(self._output) - 1, item=item)

    def _last_is(self, kind: str) -> bool:
        return bool(self._output) and self._output[-1]["type"] == kind

    def _delta(self, event: str, text: str, **more: Any) -> bytes:
        self._text += text
        if self._last_is("message"):
            more["content_index"] = 0
        return self._about(event, delta=text, **more)

    def _about(self, event: str, **more: Any) -> bytes:
        """An event about the last item."""
        if self._last_is(_REASONING):
            more["summary_index"] = 0
        item = self._output[-1]
        return self._event(event, item_id=item["id"], output_index=len(self._output) - 1, **more)

    def _event(self, name: str, **more: Any) -> bytes:
        content = {"type": name, "sequence_number": self._numbers, **more}
        self._numbers += 1
        return f"event: {name}\ndata: {json.dumps(content, separators=(',', ':'))}\n\n".encode()


_FUNCTION: Final = ("function_call", "arguments", "response.function_call_arguments")
_CUSTOM: Final = ("custom_tool_call", "input", "response.custom_tool_call_input")
_INCOMPLETE: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
_PLAIN: Final[dict[str, Any]] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "temperature": 1,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1,
    "truncation": "disabled",
    "user": None,
    "safety_identifier": None,
    "prompt_cache_key": None,
}
"""Fields of the request that the response repeats, and what they are if they were not given."""


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    missing = {"description": None, "parameters": None, "strict": None} if tool.get("type") == "function" else {}
    return {**missing, **tool}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(answer: Answer) -> dict[str, Any]:
    found = usage_of(answer)
    return {
        "input_tokens": found["prompt_tokens"],
        "input_tokens_details": found["prompt_tokens_details"],
        "output_tokens": found["completion_tokens"],
        "output_tokens_details": found["completion_tokens_details"],
        "total_tokens": found["total_tokens"],
    }
