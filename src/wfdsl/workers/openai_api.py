"""Workers that speak OpenAI's APIs: OpenAI itself, Google through its compatible endpoint, and any other server.

The SDK's client neither retries nor follows redirects: retries have one owner, and a redirect would carry the key away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import openai

from wfdsl.errors import UsageError
from wfdsl.protocols import Call, Message, Reply, Usage, Worker, WorkerFailure
from wfdsl.workers.call_settings import (
    Sampling,
    require_grammar,
    sampling,
    split_system,
    stated_context,
    with_grammar,
    with_system,
)
from wfdsl.workers.endings import ended, is_error, word_of
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.http_failure import error_in_body, with_failures
from wfdsl.workers.http_reply import ReplyBody, count, mapping, mappings, text, usage_bound
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
from wfdsl.workers.redaction import Scrubber
from wfdsl.workers.registry import OpenWorkers
from wfdsl.workers.text_policy import clean
from wfdsl.workers.tool_calls import ChatCalls, chat_messages, responses_calls, responses_input, responses_tools

OPENAI_URL: Final = "https://api.openai.com/v1"
GOOGLE_URL: Final = "https://generativelanguage.googleapis.com/v1beta/openai/"
_USUAL: Final = {"openai": (OPENAI_URL, "OPENAI_API_KEY"), "google": (GOOGLE_URL, "GEMINI_API_KEY")}


def build(entry: WorkerEntry, open_workers: OpenWorkers) -> Worker:  # noqa: ARG001  (every builder takes them)
    """The worker of an entry whose provider is `openai` or `google`.

    Raises:
        UsageError: a setting, a key or a file is missing or does not fit.
    """
    _check_settings(entry)
    return openai_worker(entry, *_client(entry))


def _client(entry: WorkerEntry) -> tuple[openai.AsyncOpenAI, Scrubber]:
    """The client of an entry's server, with its key, and what hides its secrets."""
    url, variable = _USUAL[entry.provider]
    key, secret = read_key(entry, variable), secret_headers(entry)
    scrub = scrubber(entry, key, secret)
    return openai_client(entry, entry.base_url or url, key, own_headers(entry, secret), scrub), scrub


def openai_worker(entry: WorkerEntry, client: openai.AsyncOpenAI, scrub: Scrubber) -> HttpWorker:
    """The worker of an entry on a client that is set up already."""
    if entry.api == "responses":
        dialect = Dialect(responses_request, "/responses", client, ResponsesAnswer, openai.OpenAIError)
    else:
        dialect = Dialect(chat_request, "/chat/completions", client, ChatAnswer, openai.OpenAIError)
    return HttpWorker(entry, dialect, scrub)


def openai_client(
    entry: WorkerEntry, base_url: str, key: str | None, headers: dict[str, str], scrub: Scrubber
) -> openai.AsyncOpenAI:
    """A client for this server. The SDK insists on a key, which is not sent where there is none."""
    address = address_of(base_url)
    client = openai.AsyncOpenAI(
        base_url=address.url,
        api_key=key or NO_KEY,
        default_query=address.query,
        http_client=http_client(entry, scrub),
        max_retries=0,
    )
    # The SDK has read these from the environment by itself, for whatever server it is.
    client._custom_headers = headers
    if not _uses_usual_key(entry):
        client.organization = client.project = None
    return client


def _uses_usual_key(entry: WorkerEntry) -> bool:
    """Whether OpenAI itself is asked, with the key that OPENAI_ORG_ID and OPENAI_PROJECT_ID belong to."""
    usual = entry.api_key_env in (None, _USUAL["openai"][1]) and entry.api_key_file is None
    return entry.provider == "openai" and entry.base_url is None and usual


def chat_request(entry: WorkerEntry, call: Call) -> dict[str, Any]:
    """The body of a chat completion for this call.

    Raises:
        UsageError: the call brings a grammar, and the server takes none.
    """
    asked = sampling(entry, call)
    streams = call.on_delta is not None
    request = _given(
        {
            "model": entry.model,
            "messages": chat_messages(with_system(entry, call.messages)),
            _limit_field(entry): asked.max_tokens + (asked.thinking_budget or 0),  # Google counts thinking in it
            "temperature": asked.temperature,
            "top_p": asked.top_p,
            "seed": asked.seed,
            "stop": list(asked.stop) or None,
            "reasoning_effort": asked.reasoning_effort,
            "tools": list(asked.tools) or None,
            "tool_choice": asked.tool_choice,
            "parallel_tool_calls": asked.parallel_tool_calls,
            "response_format": asked.response_format,
            "stream": streams or None,
            "stream_options": {"include_usage": True} if streams and entry.stream_options else None,
        }
    )
    return {**request, **_extra_body(entry, asked)}


def responses_request(entry: WorkerEntry, call: Call) -> dict[str, Any]:
    """The body of a response for this call. The API takes no seed.

    Raises:
        UsageError: the call brings a grammar.
    """
    asked = sampling(entry, call)
    if asked.grammar is not None:
        require_grammar(entry)
    system, messages = split_system(entry, call.messages)
    request = _given(
        {
            "model": entry.model,
            "instructions": system or None,
            "input": responses_input(messages),
            **responses_tools(call.settings),
            "max_output_tokens": asked.max_tokens,
            "temperature": asked.temperature,
            "top_p": asked.top_p,
            "reasoning": {"effort": asked.reasoning_effort} if asked.reasoning_effort else None,
            "store": False,
            "stream": call.on_delta is not None or None,
        }
    )
    return {**request, **entry.extra_body}


def _check_settings(entry: WorkerEntry) -> None:
    if not entry.model:
        raise UsageError(f'worker "{entry.name}" needs a model: set model = "..."')
    stated_context(entry)
    if unknown := sorted(entry.options.keys() - {"context"}):
        raise UsageError(
            f'worker "{entry.name}": {entry.provider} has no option {unknown[0]!r}, only context; '
            f"put further fields of the request into extra_body"
        )
    if entry.provider == "openai" and entry.thinking_budget is not None:
        raise UsageError(
            f'worker "{entry.name}": OpenAI counts no thinking budget; set reasoning_effort, '
            f"or put what another server calls its budget into extra_body"
        )
    if entry.api == "responses" and (entry.stop or entry.provider != "openai"):
        raise UsageError(f'worker "{entry.name}": api = "responses" is OpenAI\'s own, and takes no stop texts')


def _limit_field(entry: WorkerEntry) -> str:
    if entry.token_limit_field != "auto":
        return entry.token_limit_field
    return "max_completion_tokens" if entry.provider == "openai" and entry.base_url is None else "max_tokens"


def _extra_body(entry: WorkerEntry, asked: Sampling) -> dict[str, Any]:
    """Google's own settings travel in a field that is called `extra_body` once more."""
    body = dict(entry.extra_body)
    if asked.grammar is not None:
        body = with_grammar(entry, body, asked.grammar)
    if asked.thinking_budget is None or entry.provider != "google":
        return body
    google = {"google": {"thinking_config": {"thinking_budget": asked.thinking_budget}}}
    return {"extra_body": google, **body}


def _given(request: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if value is not None}


@dataclass(slots=True)
class ChatAnswer:
    """A chat completion, or the chunks of one."""

    _text: list[str] = field(default_factory=list)
    _refusal: list[str] = field(default_factory=list)
    _finish: str = ""
    _model: str = ""
    _usage: Mapping[str, Any] = field(default_factory=dict)
    _thinking: list[str] = field(default_factory=list)
    _tools: bool = False
    _calls: ChatCalls = field(default_factory=ChatCalls)

    @property
    def complete(self) -> bool:
        """Whether the server has said how the reply ended."""
        return self._finish != ""

    @property
    def counted(self) -> bool:
        """Whether it has counted the tokens."""
        return bool(self._usage)

    def whole(self, body: Mapping[str, Any]) -> None:
        """Take in a completion.

        Raises:
            WorkerFailure: it is an error, or holds no choices.
        """
        self._take(body, "message")
        if not mappings(body.get("choices")):
            raise WorkerFailure("the server sent a reply without any choices", retryable=True)

    def piece(self, event: Mapping[str, Any]) -> str:
        """Take in a chunk; the text that it adds.

        Raises:
            WorkerFailure: it is an error.
        """
        return self._take(event, "delta")

    def done(self) -> None:
        """Take in that the server has ended its stream; some never say how the reply ended."""
        if not self._finish and any(self._text):
            self._finish = "stop"

    def cut(self) -> None:
        """Take in that no more is read."""
        self._finish = "length"

    def reply(self, messages: Sequence[Message]) -> Reply:
        """The reply. Where the server counts no tokens, their upper bound is charged: a token has at least one byte."""
        said, refusal, thinking = "".join(self._text), "".join(self._refusal), "".join(self._thinking)
        usage = _usage(self._usage, usage_bound(messages, said + refusal + thinking))
        finish = ended(said, self._finish, refusal=bool(refusal), tools=self._tools, thinking=any(self._thinking))
        calls = self._calls.found()
        return Reply(said or refusal, finish, usage, self._model, tool_calls=calls, ending=self._finish)

    def _take(self, body: Mapping[str, Any], part: str) -> str:
        if is_error(body):
            raise error_in_body(body)
        choices = mappings(body.get("choices"))
        choice = next((each for each in choices if each.get("index") in (0, None)), {})  # one was asked for
        if choice.get("error"):
            raise error_in_body(choice)
        message = mapping(choice.get(part))
        new = _content(message.get("content"))
        self._text.append(new)
        self._refusal.append(text(message.get("refusal")))
        self._tools = self._tools or bool(message.get("tool_calls") or message.get("function_call"))
        self._calls.take(message.get("tool_calls"))
        self._thinking.append(next(filter(None, (text(message.get(name)) for name in _THINKING)), ""))
        self._finish = word_of(choice.get("finish_reason")) or self._finish
        self._model = text(body.get("model")) or self._model
        self._usage = mapping(body.get("usage")) or self._usage
        return new


_THINKING: Final = ("reasoning_content", "reasoning")
"""What servers call the thinking that is not part of a reply's text: DeepSeek, vLLM, OpenRouter."""


def _content(content: Any) -> str:
    """A message's content: a string, or a list of parts."""
    return "".join(text(part.get("text")) for part in mappings(content)) or text(content)


def _usage(counts: Mapping[str, Any], bound: Usage) -> Usage:
    """The tokens that a server counts, and the bound for those that it does not."""
    asked, completion = count(counts, "prompt_tokens"), count(counts, "completion_tokens")
    asked = bound.input_tokens if asked is None else asked
    completion = bound.output_tokens if completion is None else completion
    # Some servers leave thinking out of completion_tokens, but none leaves it out of the total.
    output = max(completion, (count(counts, "total_tokens") or 0) - asked)
    said = count(mapping(counts.get("completion_tokens_details")), "reasoning_tokens") or 0
    return Usage(asked, output, max(said, output - completion), *_cached(counts.get("prompt_tokens_details"), asked))


def _cached(details: Any, asked: int) -> tuple[int, int]:
    """The input tokens that were read from the cache, and those that were written into it."""
    read = min(count(mapping(details), "cached_tokens") or 0, asked)
    return read, min(count(mapping(details), "cache_write_tokens") or 0, asked - read)


_LAST_EVENTS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})


@dataclass(slots=True)
class ResponsesAnswer:
    """A response, or the events of one: the last event holds it whole."""

    _body: Mapping[str, Any] = field(default_factory=dict)
    _pieces: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the response has come."""
        return bool(self._body)

    @property
    def counted(self) -> bool:
        """A response comes with its counts, or without any."""
        return self.complete

    def done(self) -> None:
        """The end of the stream says nothing more than its last event."""

    def cut(self) -> None:
        """Take in that no more is read: the response is what has come."""
        content = {"type": "output_text", "text": "".join(self._pieces)}
        self._body = {"status": "max_output_tokens", "output": [{"type": "message", "content": [content]}]}

    def whole(self, body: Mapping[str, Any]) -> None:
        """Take in a response.

        Raises:
            WorkerFailure: it is an error, or holds no output.
        """
        if is_error(body):
            raise error_in_body(body)
        if not isinstance(body.get("output"), list):
            raise WorkerFailure("the server sent a response without any output", retryable=True)
        self._body = body

    def piece(self, event: Mapping[str, Any]) -> str:
        """Take in an event; the text that it adds.

        Raises:
            WorkerFailure: it is an error.
        """
        kind = text(event.get("type"))
        if is_error(event):
            raise error_in_body(event)
        if kind in _LAST_EVENTS:
            self.whole(mapping(event.get("response")))
        new = text(event.get("delta")) if kind == "response.output_text.delta" else ""
        self._pieces.append(new)
        return new

    def reply(self, messages: Sequence[Message]) -> Reply:
        """The reply. Where the server counts no tokens, their upper bound is charged."""
        items = mappings(self._body.get("output"))
        parts = [part for item in items for part in mappings(item.get("content"))]
        said = "".join(text(part.get("text")) for part in parts if part.get("type") == "output_text")
        refusal = "".join(text(part.get("refusal")) for part in parts if part.get("type") == "refusal")
        usage = _response_usage(mapping(self._body.get("usage")), usage_bound(messages, said + refusal))
        kinds = {text(item.get("type")) for item in items}
        # Why it is incomplete says more than its status.
        word = text(mapping(self._body.get("incomplete_details")).get("reason")) or word_of(self._body.get("status"))
        tools, thinking = any(kind.endswith("_call") for kind in kinds), "reasoning" in kinds
        finish = ended(said, word, refusal=bool(refusal), tools=tools, thinking=thinking)
        model, calls = text(self._body.get("model")), responses_calls(items)
        return Reply(said or refusal, finish, usage, model, tool_calls=calls, ending=word)


def _response_usage(counts: Mapping[str, Any], bound: Usage) -> Usage:
    asked, output = count(counts, "input_tokens"), count(counts, "output_tokens")
    asked = bound.input_tokens if asked is None else asked
    return Usage(
        asked,
        bound.output_tokens if output is None else output,
        count(mapping(counts.get("output_tokens_details")), "reasoning_tokens") or 0,
        *_cached(counts.get("input_tokens_details"), asked),
    )


async def server_models(entry: WorkerEntry) -> dict[str, int | None]:
    """The names of the models of a server that speaks OpenAI's API, sorted, with their contexts in tokens.

    vLLM and SGLang say how long a context is (`max_model_len`); None: the server does not say.

    Raises:
        WorkerFailure: the server does not say.
        UsageError: the key is missing.
    """
    client, scrub = _client(entry)
    async with client:
        body = await with_failures(_list(client, scrub), openai.OpenAIError, scrub)
    found = {
        clean(text(model.get("id"))): count(model, "max_model_len") or None for model in mappings(body.get("data"))
    }
    return {name: found[name] for name in sorted(found) if name}


async def _list(client: openai.AsyncOpenAI, scrub: Scrubber) -> dict[str, Any]:
    async with client.models.with_streaming_response.list() as response:
        return await ReplyBody(response, scrub).whole()
