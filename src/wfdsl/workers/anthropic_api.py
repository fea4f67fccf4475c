"""Workers that speak Anthropic's messages API. The SDK's client neither retries nor follows redirects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anthropic

from wfdsl.errors import UsageError
from wfdsl.protocols import Call, Message, Reply, Usage, Worker, WorkerFailure
from wfdsl.workers.call_settings import Sampling, require_grammar, sampling, split_system
from wfdsl.workers.endings import ended, is_error, word_of
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.http_failure import error_in_body
from wfdsl.workers.http_reply import count, mapping, mappings, text, usage_bound
from wfdsl.workers.http_worker import (
    NO_KEY,
    Dialect,
    HttpWorker,
    address_of,
    http_client,
    own_headers,
    read_key,
    scrubber,
    secret_headers,
)
from wfdsl.workers.registry import OpenWorkers
from wfdsl.workers.tool_calls import AnthropicCalls, anthropic_messages, anthropic_tools

ANTHROPIC_URL: Final = "https://api.anthropic.com"
_LEAST_THINKING_TOKENS: Final = 1024


def build(entry: WorkerEntry, open_workers: OpenWorkers) -> Worker:  # noqa: ARG001  (every builder takes them)
    """The worker of an entry whose provider is `anthropic`.

    Raises:
        UsageError: a setting, a key or a file is missing or does not fit.
    """
    if not entry.model:
        raise UsageError(f'worker "{entry.name}" needs a model: set model = "..."')
    if entry.thinking_budget and entry.thinking_budget < _LEAST_THINKING_TOKENS:
        raise UsageError(
            f'worker "{entry.name}": thinking_budget is 0 (no thinking) or at least {_LEAST_THINKING_TOKENS} '
            f"tokens at Anthropic, not {entry.thinking_budget}"
        )
    key, secret = read_key(entry, "ANTHROPIC_API_KEY"), secret_headers(entry)
    scrub, address = scrubber(entry, key, secret), address_of(entry.base_url or ANTHROPIC_URL)
    client = anthropic.AsyncAnthropic(
        base_url=address.url,
        api_key=key or NO_KEY,
        default_query=address.query,
        http_client=http_client(entry, scrub),
        max_retries=0,
    )
    # The SDK has read ANTHROPIC_CUSTOM_HEADERS from the environment by itself, for whatever server it is.
    client._custom_headers = own_headers(entry, secret)
    dialect = Dialect(messages_request, "/v1/messages", client, MessagesAnswer, anthropic.AnthropicError)
    return HttpWorker(entry, dialect, scrub)


def messages_request(entry: WorkerEntry, call: Call) -> dict[str, Any]:
    """The body of a message for this call. The API takes no seed.

    Raises:
        UsageError: the call brings a grammar.
    """
    asked = sampling(entry, call)
    if asked.grammar is not None:
        require_grammar(entry)
    system, messages = split_system(entry, call.messages)
    request = {
        "model": entry.model,
        "system": system or None,
        "messages": anthropic_messages(messages),
        "max_tokens": asked.max_tokens + (asked.thinking_budget or 0),
        "stop_sequences": list(asked.stop) or None,
        "thinking": _thinking(asked),
        "output_config": _output(entry, asked) or None,
        **anthropic_tools(call.settings),
        "stream": call.on_delta is not None or None,
        **_randomness(asked),
    }
    return {name: value for name, value in request.items() if value is not None} | dict(entry.extra_body)


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


def _thinking(asked: Sampling) -> dict[str, Any] | None:
    if asked.thinking_budget is None:
        return None
    if asked.tools:  # with the results of tools, the API wants its thinking back, which no reply keeps
        return {"type": "disabled"}
    return (
        {"type": "enabled", "budget_tokens": asked.thinking_budget} if asked.thinking_budget else {"type": "disabled"}
    )


def _randomness(asked: Sampling) -> dict[str, float]:
    """A model that thinks takes neither; a temperature is at most 1."""
    if asked.thinking_budget:
        return {}
    temperature = {} if asked.temperature is None else {"temperature": min(asked.temperature, 1.0)}
    return temperature if asked.top_p is None else {**temperature, "top_p": asked.top_p}


@dataclass(slots=True)
class MessagesAnswer:
    """A message, or the events of one."""

    _text: list[str] = field(default_factory=list)
    _finish: str = ""
    _model: str = ""
    _usage: dict[str, Any] = field(default_factory=dict)
    _kinds: set[str] = field(default_factory=set)
    """The types of the message's parts."""
    _ended: bool = False
    _calls: AnthropicCalls = field(default_factory=AnthropicCalls)

    @property
    def complete(self) -> bool:
        """Whether the server has said how the message ended."""
        return self._finish != ""

    @property
    def counted(self) -> bool:
        """Whether the message has ended, or its last counts have come."""
        return self._ended

    def whole(self, body: Mapping[str, Any]) -> None:
        """Take in a message.

        Raises:
            WorkerFailure: it is an error, or holds no content.
        """
        if is_error(body):
            raise error_in_body(body)
        if not isinstance(body.get("content"), list):
            raise WorkerFailure("the server sent a message without any content", retryable=True)
        self._text += [text(part.get("text")) for part in mappings(body["content"]) if part.get("type") == "text"]
        self._kinds |= {text(part.get("type")) for part in mappings(body["content"])}
        for index, part in enumerate(mappings(body["content"])):
            self._calls.begin(index, part)
        self._begin(body)

    def piece(self, event: Mapping[str, Any]) -> str:
        """Take in an event; the text that it adds.

        Raises:
            WorkerFailure: it is an error.
        """
        if is_error(event):
            raise error_in_body(event)
        kind, delta = event.get("type"), mapping(event.get("delta"))
        self._begin(mapping(event.get("message")))
        self._finish = word_of(delta.get("stop_reason")) or self._finish
        self._kinds.add(text(mapping(event.get("content_block")).get("type")))
        self._calls.begin(event.get("index"), mapping(event.get("content_block")))
        self._calls.add(event.get("index"), text(delta.get("partial_json")))
        self._count(event)
        self._ended = self._ended or kind == "message_stop" or (self.complete and bool(event.get("usage")))
        new = text(delta.get("text")) if delta.get("type") == "text_delta" else ""
        self._text.append(new)
        return new

    def done(self) -> None:
        """The end of the stream says nothing more than its last event."""

    def cut(self) -> None:
        """Take in that no more is read."""
        self._finish = "max_tokens"

    def reply(self, messages: Sequence[Message]) -> Reply:
        """The reply. Where the server counts no tokens, their upper bound is charged."""
        said = "".join(self._text)
        tools, thinking = "tool_use" in self._kinds, not self._kinds.isdisjoint(_THINKING)
        finish = ended(said, self._finish, tools=tools, thinking=thinking)
        usage = _tokens(self._usage, usage_bound(messages, said))
        return Reply(said, finish, usage, self._model, tool_calls=self._calls.found(), ending=self._finish)

    def _begin(self, message: Mapping[str, Any]) -> None:
        self._model = text(message.get("model")) or self._model
        self._finish = word_of(message.get("stop_reason")) or self._finish
        self._count(message)

    def _count(self, part: Mapping[str, Any]) -> None:
        """Later counts replace earlier ones, unless there is nothing in them."""
        counts = mapping(part.get("usage")).items()
        self._usage |= {name: value for name, value in counts if value is not None}


_THINKING: Final = frozenset({"thinking", "redacted_thinking"})


def _tokens(counts: Mapping[str, Any], bound: Usage) -> Usage:
    """Anthropic counts what it reads from the cache, and writes into it, apart from the other input."""
    asked, output = count(counts, "input_tokens"), count(counts, "output_tokens")
    cached = count(counts, "cache_read_input_tokens") or 0
    written = count(counts, "cache_creation_input_tokens") or 0
    thinking = count(mapping(counts.get("output_tokens_details")), "thinking_tokens") or 0
    return Usage(
        (bound.input_tokens if asked is None else asked) + cached + written,
        bound.output_tokens if output is None else output,
        thinking,
        cached,
        written,
    )
