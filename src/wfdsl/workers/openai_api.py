"""Workers that speak OpenAI's APIs, through its SDK: OpenAI itself, Google's compatible endpoint, any other server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import openai

from wfdsl.errors import UsageError
from wfdsl.protocols import Call, ToolCall, Usage, Worker, WorkerFailure
from wfdsl.workers.call_settings import Sampling, in_time, split_system, with_system
from wfdsl.workers.entry import Options, WorkerEntry
from wfdsl.workers.http_failure import error_in_body
from wfdsl.workers.http_reply import ReplyBody, count, mapping, mappings, text
from wfdsl.workers.http_worker import Answer, Connection, HttpWorker, Sdk
from wfdsl.workers.registry import OpenWorkers
from wfdsl.workers.text_policy import clean
from wfdsl.workers.tool_calls import chat_message, responses_input, responses_tools

_USUAL: Final = {
    "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "google": ("https://generativelanguage.googleapis.com/v1beta/openai/", "GEMINI_API_KEY"),
}
SDK: Final[Sdk] = (openai.AsyncOpenAI, openai.OpenAIError)


def build(entry: WorkerEntry, open_workers: OpenWorkers) -> Worker:  # noqa: ARG001  (every builder takes them)
    """The worker of an entry whose provider is `openai` or `google`.

    Raises:
        UsageError: a setting or a key is missing or does not fit.
    """
    entry.options_as(Options)
    if entry.provider == "openai" and entry.thinking_budget is not None:
        raise UsageError(
            f'worker "{entry.name}": OpenAI counts no thinking budget; set reasoning_effort, '
            f"or put what another server calls its budget into extra_body"
        )
    if entry.api == "responses" and (entry.stop or entry.provider != "openai"):
        raise UsageError(f'worker "{entry.name}": api = "responses" is OpenAI\'s own, and takes no stop texts')
    answer = ResponsesAnswer if entry.api == "responses" else ChatAnswer
    return HttpWorker(entry, answer, Connection(entry, SDK, _USUAL[entry.provider]))


class _OpenAiAnswer(Answer):
    names: ClassVar[tuple[str, str]]
    """What the API calls the tokens that it reads and writes."""

    def _usage(self, bound: Usage) -> Usage:
        (read, written), counts = self.names, self.counts
        asked = count(counts, f"{read}_tokens", bound.input_tokens)
        said = count(counts, f"{written}_tokens", bound.output_tokens)
        # Some servers leave thinking out of what was written, but none leaves it out of the total.
        output = max(said, count(counts, "total_tokens") - asked)
        thinking = max(count(counts.get(f"{written}_tokens_details"), "reasoning_tokens"), output - said)
        details = counts.get(f"{read}_tokens_details")
        cached = min(count(details, "cached_tokens"), asked)
        return Usage(asked, output, thinking, cached, min(count(details, "cache_write_tokens"), asked - cached))


class ChatAnswer(_OpenAiAnswer):
    """A chat completion, or the chunks of one."""

    path, names = "/chat/completions", ("prompt", "completion")

    @staticmethod
    def request(entry: WorkerEntry, call: Call, asked: Sampling) -> dict[str, Any]:
        """The body of a chat completion for this call."""
        limit_field, budget = entry.token_limit_field, asked.thinking_budget
        if limit_field == "auto":
            is_own = entry.provider == "openai" and entry.base_url is None
            limit_field = "max_completion_tokens" if is_own else "max_tokens"
        thinks = entry.provider == "google" and budget is not None
        return {
            "messages": [chat_message(each) for each in with_system(entry, call.messages)],
            limit_field: asked.max_tokens + (budget or 0),  # Google counts thinking in it
            # Google's own settings travel in a field of this name.
            "extra_body": {"google": {"thinking_config": {"thinking_budget": budget}}} if thinks else None,
            "seed": asked.seed,
            "stop": list(asked.stop) or None,
            "reasoning_effort": asked.reasoning_effort,
            "tools": list(asked.tools) or None,
            "tool_choice": asked.tool_choice,
            "parallel_tool_calls": asked.parallel_tool_calls,
            "response_format": asked.response_format,
            "stream_options": {"include_usage": True} if call.on_delta and entry.stream_options else None,
        }

    def whole(self, body: Mapping[str, Any]) -> None:
        """Take in the answer all at once."""
        self._add(body, "message")
        if not mappings(body.get("choices")):
            raise WorkerFailure("the server sent a reply without any choices", retryable=True)

    def piece(self, event: Mapping[str, Any]) -> str:
        """Take in an event of a stream; the text that it adds."""
        new = self._add(event, "delta")
        self.complete = self.ending != ""
        return new

    def _add(self, body: Mapping[str, Any], part: str) -> str:
        choices = mappings(body.get("choices"))
        choice = next((each for each in choices if each.get("index") in (0, None)), {})  # one was asked for
        if choice.get("error"):
            raise error_in_body(choice)
        message = mapping(choice.get(part))
        new = "".join(text(each.get("text")) for each in mappings(message.get("content"))) or text(
            message.get("content")
        )
        self.said.append(new)
        self.refusal.append(text(message.get("refusal")))
        # What servers call the thinking that is not part of the text: DeepSeek, vLLM, OpenRouter.
        self.thinking.append(text(message.get("reasoning_content")) or text(message.get("reasoning")))
        if message.get("tool_calls") or message.get("function_call"):
            self.kinds.add("tools")
        for place, piece in enumerate(mappings(message.get("tool_calls"))):
            index, custom = piece.get("index"), mapping(piece.get("custom"))
            at, function = index if isinstance(index, int) else place, custom or mapping(piece.get("function"))
            begun = self.calls.get(at, ToolCall("", "", ""))
            self.calls[at] = ToolCall(
                begun.id or text(piece.get("id")),
                begun.name or text(function.get("name")),
                begun.arguments + text(function.get("input" if custom else "arguments")),
                begun.custom or bool(custom),
            )
        self._take(body, choice.get("finish_reason"))
        return new


class ResponsesAnswer(_OpenAiAnswer):
    """A response, or the events of one: the last event holds it whole."""

    path, names = "/responses", ("input", "output")

    @staticmethod
    def request(entry: WorkerEntry, call: Call, asked: Sampling) -> dict[str, Any]:
        """The body of a response for this call. The API takes no seed."""
        system, messages = split_system(entry, call.messages)
        return {
            "instructions": system or None,
            "input": responses_input(messages),
            **responses_tools(call.settings),
            "max_output_tokens": asked.max_tokens,
            "reasoning": {"effort": asked.reasoning_effort} if asked.reasoning_effort else None,
            "store": False,
        }

    def whole(self, body: Mapping[str, Any]) -> None:
        """Take in the answer all at once."""
        if not isinstance(body.get("output"), list):
            raise WorkerFailure("the server sent a response without any output", retryable=True)
        items = mappings(body["output"])
        parts = [part for item in items for part in mappings(item.get("content"))]
        self.said = [text(part.get("text")) for part in parts if part.get("type") == "output_text"]
        self.refusal = [text(part.get("refusal")) for part in parts if part.get("type") == "refusal"]
        for place, item in enumerate(items):
            kind = text(item.get("type"))
            self.kinds.add("tools" if kind.endswith("_call") else {"reasoning": "thinking"}.get(kind, kind))
            if kind in _CALLS:
                call_id, name, given = (text(item.get(field)) for field in ("call_id", "name", _CALLS[kind]))
                self.calls[place] = ToolCall(call_id, name, given, kind != "function_call")
        # Why it is incomplete says more than its status.
        self._take(body, text(mapping(body.get("incomplete_details")).get("reason")) or body.get("status"))

    def piece(self, event: Mapping[str, Any]) -> str:
        """Take in an event of a stream; the text that it adds."""
        kind = text(event.get("type"))
        if kind in _LAST_EVENTS:
            response = mapping(event.get("response"))
            if response.get("error"):
                raise error_in_body(response)
            self.whole(response)
            self.complete = True
            return ""
        new = text(event.get("delta")) if kind == "response.output_text.delta" else ""
        self.said.append(new)
        return new


_LAST_EVENTS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
"""The items that are calls of tools, and where they have what the tool is given."""


async def server_models(entry: WorkerEntry) -> dict[str, int | None]:
    """The names of the models of a server that speaks OpenAI's API, sorted, with their contexts in tokens.

    vLLM and SGLang say how long a context is (`max_model_len`); None: the server does not say.

    Raises:
        WorkerFailure: the server does not say.
        UsageError: the key is missing.
    """
    connection = Connection(entry, SDK, _USUAL[entry.provider])
    try:
        async with in_time(Call(()), entry.timeout_s):
            body = await connection.ask("/models", ReplyBody.whole, idle_s=entry.idle_timeout_s)
    finally:
        await connection.aclose()
    found = {
        clean(text(model.get("id"))): count(model, "max_model_len") or None for model in mappings(body.get("data"))
    }
    return {name: found[name] for name in sorted(found) if name}
