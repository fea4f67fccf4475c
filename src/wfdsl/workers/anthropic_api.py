"""Workers that speak Anthropic's messages API, through its SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import anthropic

from wfdsl.errors import UsageError
from wfdsl.protocols import Call, ToolCall, Usage, Worker, WorkerFailure
from wfdsl.workers.call_settings import Sampling, split_system
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.http_reply import count, mapping, mappings, text
from wfdsl.workers.http_worker import Answer, Connection, HttpWorker, Sdk
from wfdsl.workers.registry import OpenWorkers
from wfdsl.workers.tool_calls import anthropic_messages, anthropic_tools

_USUAL: Final = ("https://api.anthropic.com", "ANTHROPIC_API_KEY")
_SDK: Final[Sdk] = (anthropic.AsyncAnthropic, anthropic.AnthropicError)
_LEAST_THINKING_TOKENS: Final = 1024


def build(entry: WorkerEntry, open_workers: OpenWorkers) -> Worker:  # noqa: ARG001  (every builder takes them)
    """The worker of an entry whose provider is `anthropic`.

    Raises:
        UsageError: a setting or a key is missing or does not fit.
    """
    if entry.thinking_budget and entry.thinking_budget < _LEAST_THINKING_TOKENS:
        raise UsageError(
            f'worker "{entry.name}": thinking_budget is 0 (no thinking) or at least {_LEAST_THINKING_TOKENS} '
            f"tokens at Anthropic, not {entry.thinking_budget}"
        )
    return HttpWorker(entry, MessagesAnswer, Connection(entry, _SDK, _USUAL))


def _output(entry: WorkerEntry, asked: Sampling) -> dict[str, Any]:
    found: dict[str, Any] = {"effort": asked.reasoning_effort} if asked.reasoning_effort else {}
    shape = asked.response_format
    if shape is not None and shape["type"] == "json_schema":
        found["format"] = {"type": "json_schema", "schema": shape["json_schema"].get("schema", {})}
    elif shape is not None and shape["type"] != "text":
        raise WorkerFailure(
            f'worker "{entry.name}": Anthropic takes a JSON schema as response_format, and no {shape["type"]}',
            retryable=False,
            sent=False,
        )
    return found


class MessagesAnswer(Answer):
    """A message, or the events of one."""

    path = "/v1/messages"

    @staticmethod
    def request(entry: WorkerEntry, call: Call, asked: Sampling) -> dict[str, Any]:
        """The body of a message for this call. The API takes no seed."""
        system, messages = split_system(entry, call.messages)
        budget, temperature, thinking = asked.thinking_budget, asked.temperature, None
        if budget is not None:
            # With the results of tools, the API wants its thinking back, which no reply keeps.
            thinks = budget > 0 and not asked.tools
            thinking = {"type": "enabled", "budget_tokens": budget} if thinks else {"type": "disabled"}
        return {
            "system": system or None,
            "messages": anthropic_messages(messages),
            "max_tokens": asked.max_tokens + (budget or 0),
            "stop_sequences": list(asked.stop) or None,
            "thinking": thinking,
            "output_config": _output(entry, asked) or None,
            **anthropic_tools(call.settings),
            # A model that thinks takes neither; a temperature is at most 1.
            "temperature": None if budget or temperature is None else min(temperature, 1.0),
            "top_p": None if budget else asked.top_p,
        }

    def whole(self, body: Mapping[str, Any]) -> None:
        """Take in the answer all at once."""
        if not isinstance(body.get("content"), list):
            raise WorkerFailure("the server sent a message without any content", retryable=True)
        for index, block in enumerate(mappings(body["content"])):
            self._begin(index, block)
            self.said.append(text(block.get("text")) if block.get("type") == "text" else "")
        self._take(body, body.get("stop_reason"))

    def piece(self, event: Mapping[str, Any]) -> str:
        """Take in an event of a stream; the text that it adds."""
        delta, index = mapping(event.get("delta")), event.get("index")
        for part in (mapping(event.get("message")), {**delta, "usage": event.get("usage")}):
            self._take(part, part.get("stop_reason"))
        self._begin(index, mapping(event.get("content_block")))
        if isinstance(index, int) and index in self.calls:
            call = self.calls[index]
            self.calls[index] = call._replace(arguments=call.arguments + text(delta.get("partial_json")))
        self.complete = self.ending != ""
        new = text(delta.get("text")) if delta.get("type") == "text_delta" else ""
        self.said.append(new)
        return new

    def _begin(self, index: Any, block: Mapping[str, Any]) -> None:
        """Take in a block, with its place in the message."""
        kind = text(block.get("type"))
        self.kinds.add({"tool_use": "tools", "redacted_thinking": "thinking"}.get(kind, kind))
        if kind == "tool_use" and isinstance(index, int):
            given = json.dumps(block["input"]) if block.get("input") else ""
            self.calls[index] = ToolCall(text(block.get("id")), text(block.get("name")), given)

    def _usage(self, bound: Usage) -> Usage:
        """Anthropic counts what it reads from the cache, and writes into it, apart from the other input."""
        asked = count(self.counts, "input_tokens", bound.input_tokens)
        output = count(self.counts, "output_tokens", bound.output_tokens)
        thinking = count(self.counts.get("output_tokens_details"), "thinking_tokens")
        cached, written = (count(self.counts, f"cache_{how}_input_tokens") for how in ("read", "creation"))
        return Usage(asked + cached + written, output, thinking, cached, written)
