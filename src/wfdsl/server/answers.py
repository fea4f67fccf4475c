"""What a request is answered with: a text, or calls of the client's tools, and which worker did what; as a chat
completion or a response of the Responses API, whole or as the events of a stream.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wfdsl.conductor.policy import ROOT_WORKFLOW
from wfdsl.interpreter.record import Run, total_usd
from wfdsl.interpreter.tools import pending_calls, suspended_answer
from wfdsl.protocols import ToolCall, Usage
from wfdsl.server.api_errors import ApiError
from wfdsl.server.endpoints import DONE, as_event
from wfdsl.server.json_schema import form_problem
from wfdsl.server.live_runs import Said
from wfdsl.server.models import Turn
from wfdsl.workers.tool_calls import chat_call


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a turn."""

    turn: Turn
    run: Run
    """The run; where tools are called, what there is of it."""
    text: str
    finish: str
    """OpenAI's word for how it ended: `stop`, `length`, `tool_calls`."""
    tool_calls: tuple[ToolCall, ...] = ()
    again: Run | None = None
    """The run in which the worker was asked once more, for another form of the answer."""

    @property
    def usage(self) -> Usage:
        """The tokens of this turn: of all calls, the Conductor's included."""
        before = self.turn.before  # what was paid for in earlier turns was reported then
        found = self.run.usage if before is None else self.run.usage - before.usage
        return found if self.again is None else found + self.again.usage

    @property
    def paid_usd(self) -> float | None:
        """What this turn cost, in US dollars; None if a price is not known."""
        before = 0.0 if self.turn.before is None else self.turn.before.paid_usd
        paid = total_usd(run.paid_usd for run in (self.run, self.again) if run is not None)
        return None if paid is None or before is None else max(paid - before, 0.0)

    @property
    def form_problem(self) -> str:
        """What is wrong with the form of the answer, in words; empty: nothing, or it was cut or calls tools."""
        return form_problem(self.turn.chat.form, self.text) if self.finish == "stop" else ""


def answer_of(turn: Turn, run: Run) -> Answer:
    """The answer of a run that is done, up to the first stop text; or the tool calls of one that is suspended."""
    if run.status == "suspended":
        answering = suspended_answer(run)
        text = "" if answering is None else answering.messages[-1]["content"]
        return Answer(turn, run, text, "tool_calls", pending_calls(run))
    assert run.answer is not None  # it is done
    text, finish = run.answer, "length" if run.steps[-1].finish == "length" else "stop"
    ends = [at for stop in turn.chat.stops if (at := text.find(stop)) >= 0]
    return Answer(turn, run, text[: min(ends)], "stop") if ends else Answer(turn, run, text, finish)


def usage_of(answer: Answer, read: str = "prompt", written: str = "completion") -> dict[str, Any]:
    """The tokens of all calls that were made for an answer, the Conductor's included, in the words of an API."""
    found = answer.usage
    return {
        f"{read}_tokens": found.input_tokens,
        f"{written}_tokens": found.output_tokens,
        "total_tokens": found.total_tokens,
        f"{read}_tokens_details": {"cached_tokens": found.cached_tokens},
        f"{written}_tokens_details": {"reasoning_tokens": found.thinking_tokens},
    }


def summary_of(answer: Answer) -> dict[str, Any]:
    """The run's id, what it cost, and the tokens and the cost of each step; None: a price is not known."""
    about = run_summary(answer.run)
    if answer.again is not None:
        about["cost_usd"] = total_usd(run.paid_usd for run in (answer.run, answer.again))
        about["steps"] += [{"asked_again": answer.again.id, **step} for step in _steps(answer.again)]
    return about | ({"skipped": f"conductor: {answer.turn.skipped}"} if answer.turn.skipped else {})


def run_summary(run: Run) -> dict[str, Any]:
    """The same of a run that may have no answer."""
    steps = list(_conducted(run) if run.workflow == ROOT_WORKFLOW else _steps(run))
    return {"run": run.id, "cost_usd": run.paid_usd, "seconds": _rounded(run.seconds), "steps": steps}


def _conducted(run: Run) -> Iterator[dict[str, Any]]:
    """The steps of each round, after what the Conductor's own completions took."""
    root = run.steps[0]
    inside = [nested.usage for nested in root.nested]
    own = root.usage if not inside else root.usage - sum(inside, Usage())
    known = root.paid_usd, *(nested.paid_usd for nested in root.nested)
    costs = [cost for cost in known if cost is not None]
    usd = None if len(costs) < len(known) else max(costs[0] - sum(costs[1:]), 0.0)
    yield {"step": "conductor", "worker": root.worker_name, **_tokens(own), "cost_usd": usd}
    for number, nested in enumerate(root.nested):
        for step in _steps(nested):
            yield {"round": number, **step}


def _steps(run: Run) -> Iterator[dict[str, Any]]:
    for step in run.steps:
        if step.started is not None:
            yield {
                "step": run.name_of(step.step),
                "worker": step.worker_name,
                "seconds": _rounded(step.seconds),
                **_tokens(step.usage),
                "cost_usd": step.paid_usd,
            }


def _tokens(usage: Usage) -> dict[str, int]:
    return {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


class _Reply:
    """The answer to a request, in the form of an API."""

    _answer: Answer

    def __init__(self, turn: Turn) -> None:
        self.turn = turn

    @property
    def headers(self) -> dict[str, str]:
        """The headers that name the run and its cost; `unknown` if a price is not known."""
        paid = self._answer.paid_usd
        cost = "unknown" if paid is None else f"{paid:.6f}"
        return {**self.turn.headers, "x-wfdsl-cost": cost}


class ChatReply(_Reply):
    """The answer to a request as a chat completion; each method gives the chunks that a stream sends."""

    def __init__(self, turn: Turn) -> None:
        super().__init__(turn)
        self._about = {"id": f"chatcmpl-{turn.run_id}", "created": turn.created, "model": turn.chat.model}

    def body(self) -> dict[str, Any]:
        """The chat completion, once the answer is there."""
        answer = self._answer
        message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
        if answer.tool_calls:
            message["content"] = answer.text or None
            message["tool_calls"] = [chat_call(call) for call in answer.tool_calls]
        return {
            **self._about,
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": answer.finish, "logprobs": None}],
            "usage": usage_of(answer),
            "wfdsl": summary_of(answer),
        }

    def begin(self) -> bytes:
        """The first chunk."""
        return self._chunk({"role": "assistant", "content": ""})

    def said(self, said: Said) -> bytes:
        """A piece of the answer, or of what happens."""
        delta = {"content": "", "reasoning_content": said.text} if said.reasoning else {"content": said.text}
        return self._chunk(delta)

    def keep_alive(self) -> bytes:
        """A chunk that adds nothing: some clients leave when events, not bytes, are missing for minutes."""
        return self._chunk({"content": ""})

    def end(self, answer: Answer) -> bytes:
        """The end of the answer: its tool calls, how it ended, and what was done."""
        self._answer = answer
        calls = [{"index": number, **chat_call(call)} for number, call in enumerate(answer.tool_calls)]
        delta = {"content": None, "tool_calls": calls} if calls else {"content": ""}
        ended = [{"index": 0, "delta": delta, "finish_reason": answer.finish, "logprobs": None}]
        last = self._event(ended, wfdsl=summary_of(answer))
        usage = self._event([], usage=usage_of(answer)) if self.turn.chat.include_usage else b""
        return last + usage + DONE

    def fail(self, error: ApiError) -> bytes:
        """The error as the last event."""
        return as_event(error.body())

    def _chunk(self, delta: dict[str, Any]) -> bytes:
        return self._event([{"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}])

    def _event(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        usage = {"usage": None} if self.turn.chat.include_usage else {}
        return as_event({**self._about, "object": "chat.completion.chunk", "choices": choices, **usage, **more})


class ResponseReply(_Reply):
    """A response that grows; each method gives the events that tell a client of the change.

    The response that comes whole is put together by the same steps as the streamed one, so both have the same items:
    one of reasoning, which says what happened; the message; and a call for each tool. The order of events is OpenAI's:
    `response.created`, `response.in_progress`, for each item `added`, its parts and deltas, `done`; and at the end
    `response.completed`, `response.incomplete` or `response.failed`.
    """

    def __init__(self, turn: Turn, fields: Mapping[str, Any]) -> None:
        """`fields` are those of the request, some of which the response repeats."""
        super().__init__(turn)
        self._fields = fields
        # A run that continues has several responses, whose ids differ.
        suffix = "" if turn.asked is None else f"-{turn.origin['request'][:8]}"
        self._id = f"{turn.run_id}{suffix}"
        self._numbers = 0
        self._output: list[dict[str, Any]] = []
        """All items; the last one may be unfinished."""
        self._text = ""
        """The text of the last item so far, if that is unfinished."""
        self._end: dict[str, Any] = {}

    def begin(self) -> bytes:
        """The first events, and an item of reasoning, which is open until the message begins."""
        begun = [self._event(f"response.{name}", response=self.body()) for name in ("created", "in_progress")]
        part = {"type": "summary_text", "text": ""}
        opened = self._open({"id": f"rs_{self._id}", "type": "reasoning", "summary": []})
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

    def end(self, answer: Answer) -> bytes:
        """The answer, whose text has been said."""
        events = []
        if not self._last_is("message") and not answer.tool_calls:
            events.append(self._begin_message())
        is_cut = answer.finish == "length"
        events.append(self._end_message(is_cut=is_cut) if self._last_is("message") else self._end_reasoning())
        events += [self._call(call, number) for number, call in enumerate(answer.tool_calls)]
        status = "incomplete" if is_cut else "completed"
        self._end = {
            "status": status,
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "completed_at": None if is_cut else int(time.time()),
            "usage": usage_of(answer, "input", "output"),
            "wfdsl": summary_of(answer),
        }
        self._answer = answer
        events.append(self._event(f"response.{status}", response=self.body()))
        return b"".join([*events, DONE])

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
        fields = self._fields
        repeated = {name: fields.get(name) if fields.get(name) is not None else plain for name, plain in _PLAIN.items()}
        return {
            "id": f"resp_{self._id}",
            "object": "response",
            "created_at": self.turn.created,
            "status": "in_progress",
            "completed_at": None,
            "error": None,
            "incomplete_details": None,
            "model": self.turn.chat.model,
            "output": list(self._output),
            **repeated,
            "tools": [_tool(tool) for tool in fields.get("tools") or []],
            "text": {"format": {"type": "text"}, **(fields.get("text") or {})},
            "reasoning": {"effort": None, "summary": None, **(fields.get("reasoning") or {})},
            "store": False,
            "background": False,
            "service_tier": "default",
            "usage": None,
            **self._end,
        }

    def _begin_message(self) -> bytes:
        about = {"id": f"msg_{self._id}", "type": "message", "role": "assistant"}
        opened = self._end_reasoning() + self._open({**about, "status": "in_progress", "content": []})
        return opened + self._about("response.content_part.added", part=_text_part(""))

    def _end_message(self, *, is_cut: bool) -> bytes:
        part = _text_part(self._text)
        done = self._about("response.output_text.done", text=self._text, logprobs=[])
        ended = self._about("response.content_part.done", part=part)
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

    def _open(self, item: dict[str, Any]) -> bytes:
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
        return self._about(event, delta=text, **more)

    def _about(self, event: str, **more: Any) -> bytes:
        """An event about the last item."""
        item = self._output[-1]
        part = {"message": {"content_index": 0}, "reasoning": {"summary_index": 0}}.get(item["type"], {})
        return self._event(event, item_id=item["id"], output_index=len(self._output) - 1, **part, **more)

    def _event(self, name: str, **more: Any) -> bytes:
        content = {"type": name, "sequence_number": self._numbers, **more}
        self._numbers += 1
        return f"event: {name}\ndata: {json.dumps(content, separators=(',', ':'))}\n\n".encode()


_FUNCTION: Final = ("function_call", "arguments", "response.function_call_arguments")
_CUSTOM: Final = ("custom_tool_call", "input", "response.custom_tool_call_input")
_ABSENT: Final = ("instructions", "max_output_tokens", "max_tool_calls", "previous_response_id", "prompt_cache_key")
_PLAIN: Final[dict[str, Any]] = {
    **dict.fromkeys((*_ABSENT, "safety_identifier", "user")),
    **dict.fromkeys(("frequency_penalty", "presence_penalty", "top_logprobs"), 0),
    **dict.fromkeys(("temperature", "top_p"), 1),
    "metadata": {},
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "truncation": "disabled",
}
"""Fields of the request that the response repeats, and what they are if they were not given."""


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    missing = {"description": None, "parameters": None, "strict": None} if tool.get("type") == "function" else {}
    return {**missing, **tool}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
