"""Workers that speak OpenAI's APIs: OpenAI itself, Google through its compatible endpoint, and any other server.

The SDK's client neither retries nor follows redirects: retries have one owner, and a redirect would carry the key away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import openai

from wfdsl.errors import UsageError
from wfdsl.redaction import Scrubber
from wfdsl.workers.chat_answer import ChatAnswer
from wfdsl.workers.grammars import require_grammar, with_grammar
from wfdsl.workers.http_client import http_options, secret_headers
from wfdsl.workers.http_worker import Dialect, HttpWorker
from wfdsl.workers.keys import read_key
from wfdsl.workers.responses_answer import ResponsesAnswer
from wfdsl.workers.sampling import sampling, split_system, with_system

if TYPE_CHECKING:
    from wfdsl.protocols import Call, Worker
    from wfdsl.workers.bench import Bench
    from wfdsl.workers.pool import WorkerEntry
    from wfdsl.workers.sampling import Sampling

OPENAI_URL: Final = "https://api.openai.com/v1"
GOOGLE_URL: Final = "https://generativelanguage.googleapis.com/v1beta/openai/"
_USUAL: Final = {"openai": (OPENAI_URL, "OPENAI_API_KEY"), "google": (GOOGLE_URL, "GEMINI_API_KEY")}


def build(entry: WorkerEntry, bench: Bench) -> Worker:  # noqa: ARG001  (every builder takes a bench)
    """The worker of an entry whose provider is `openai` or `google`.

    Raises:
        UsageError: a setting, a key or a file is missing or does not fit.
    """
    _check_settings(entry)
    url, variable = _USUAL[entry.provider]
    key, secret = read_key(entry, variable), secret_headers(entry)
    client = openai_client(entry, entry.base_url or url, key, {**entry.headers, **secret})
    return openai_worker(entry, client, Scrubber([key, *secret.values()]))


def openai_worker(entry: WorkerEntry, client: openai.AsyncOpenAI, scrub: Scrubber) -> HttpWorker:
    """The worker of an entry on a client that is set up already."""
    errors = (openai.APIStatusError, openai.OpenAIError)
    if entry.api == "responses":
        create = client.responses.with_streaming_response.create
        return HttpWorker(entry, Dialect(responses_request, create, ResponsesAnswer, errors, client.close), scrub)
    chat = client.chat.completions.with_streaming_response.create
    return HttpWorker(entry, Dialect(chat_request, chat, ChatAnswer, errors, client.close), scrub)


def openai_client(entry: WorkerEntry, base_url: str, key: str | None, headers: dict[str, str]) -> openai.AsyncOpenAI:
    """A client for this server. The SDK insists on a key; servers that need none ignore the word that it sends."""
    return openai.AsyncOpenAI(
        base_url=base_url,
        api_key=key or "none",
        default_headers=headers,
        http_client=openai.DefaultAsyncHttpxClient(**http_options(entry)),
        max_retries=0,
    )


def chat_request(entry: WorkerEntry, call: Call) -> dict[str, Any]:
    """The arguments of `chat.completions.create` for this call.

    Raises:
        UsageError: the call brings a grammar, and the server takes none.
    """
    asked = sampling(entry, call)
    streams = call.on_delta is not None
    return _given(
        {
            "model": entry.model,
            "messages": with_system(entry, call.messages),
            _limit_field(entry): asked.max_tokens + (asked.thinking_budget or 0),  # Google counts thinking in it
            "temperature": asked.temperature,
            "top_p": asked.top_p,
            "seed": asked.seed,
            "stop": list(asked.stop) or None,
            "reasoning_effort": asked.reasoning_effort,
            "stream": streams or None,
            "stream_options": {"include_usage": True} if streams else None,
            "extra_body": _extra_body(entry, asked),
        }
    )


def responses_request(entry: WorkerEntry, call: Call) -> dict[str, Any]:
    """The arguments of `responses.create` for this call. The API takes no seed.

    Raises:
        UsageError: the call brings a grammar.
    """
    asked = sampling(entry, call)
    if asked.grammar is not None:
        require_grammar(entry)
    system, messages = split_system(entry, call.messages)
    return _given(
        {
            "model": entry.model,
            "instructions": system or None,
            "input": messages,
            "max_output_tokens": asked.max_tokens,
            "temperature": asked.temperature,
            "top_p": asked.top_p,
            "reasoning": {"effort": asked.reasoning_effort} if asked.reasoning_effort else None,
            "store": False,
            "stream": call.on_delta is not None or None,
            "extra_body": dict(entry.extra_body) or None,
        }
    )


def _check_settings(entry: WorkerEntry) -> None:
    if not entry.model:
        raise UsageError(f'worker "{entry.name}" needs a model: set model = "..."')
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


def _extra_body(entry: WorkerEntry, asked: Sampling) -> dict[str, Any] | None:
    """Google's own settings travel in a field that is called `extra_body` once more."""
    body = dict(entry.extra_body)
    if asked.grammar is not None:
        body = with_grammar(entry, body, asked.grammar)
    if asked.thinking_budget is None or entry.provider != "google":
        return body or None
    google = {"google": {"thinking_config": {"thinking_budget": asked.thinking_budget}}}
    return {"extra_body": google, **body}


def _given(request: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if value is not None}
