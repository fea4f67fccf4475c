"""Workers over HTTP: the connection to a server with its key and its limits, an API's answer, and one call.

Keys are read when a worker is built, and live only in the client that sends them.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cache
from ipaddress import ip_address
from typing import Any, ClassVar, Final, TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx2

from wfdsl.errors import UsageError
from wfdsl.protocols import Call, Message, Reply, ToolCall, Usage, WorkerFailure
from wfdsl.workers.call_settings import Sampling, in_time, priced, sampling, with_grammar
from wfdsl.workers.endings import ended, word_of
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.http_failure import MAX_FAILURE_CHARS, about_grammar, failure_of, shortened, status_failure
from wfdsl.workers.http_reply import ReplyBody, mapping, text
from wfdsl.workers.redaction import Scrubber
from wfdsl.workers.text_policy import clean
from wfdsl.workers.tool_calls import with_tool_calls

_T = TypeVar("_T")
_CONNECT_TIMEOUT_S: Final = 10.0
"""Our choice."""
_CONNECTIONS: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=256)
"""How many calls run at once is decided by the pool's limits, so that none waits here without being seen. Idle ones are
kept up to a number (our choice): the client looks at each of them before each request.
"""
_SHORTEST_HIDDEN_HEADER_CHARS: Final = 8
_SHORTEST_HIDDEN_PART_CHARS: Final = 20
"""Shorter ones are words such as `true` or `2024-05-01-preview`, which an error text may need. Our choice."""


Sdk: TypeAlias = tuple[Callable[..., Any], type[Exception]]
"""The client of an API's SDK, and the base of all its errors."""


class Connection:
    """An SDK's client for a worker's server, and what hides the secrets that it sends.

    The client neither retries nor follows redirects: retries have one owner, and a redirect would carry the key to
    another place.
    """

    def __init__(self, entry: WorkerEntry, sdk: Sdk, usual: tuple[str, str] = ("", ""), key: str | None = None) -> None:
        """To an entry's own server, or to the usual one: its address, and the variable that has its key.

        The query of the URL, such as Azure's `api-version`, comes after the path of each request.

        Raises:
            UsageError: there is no model or no key, or a setting of the environment cannot be used.
        """
        if not entry.model:
            raise UsageError(f'worker "{entry.name}" needs a model: set model = "..."')
        variable = entry.api_key_env or (usual[1] if entry.base_url is None else None)
        key = read_variable(entry, variable, "a key") if variable else key
        secret = {name: read_variable(entry, variable, "a header") for name, variable in entry.headers_env.items()}
        parts = urlsplit(entry.base_url or usual[0])
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        hidden = [key, *secret.values()]
        hidden += [value for value in entry.headers.values() if len(value) >= _SHORTEST_HIDDEN_HEADER_CHARS]
        places = (*parts.path.split("/"), *query.values())
        hidden += [part for part in places if len(part) >= _SHORTEST_HIDDEN_PART_CHARS]
        self.scrub = Scrubber(hidden)
        make, self._errors = sdk
        self._client = make(
            base_url=urlunsplit(parts._replace(query="")),
            api_key=key or _NO_KEY,
            default_query=query,
            http_client=_http_client(entry, parts.hostname or "", self.scrub),
            max_retries=0,
        )
        # The SDKs have read headers and account from the environment by themselves, for whatever server it is.
        names = {"authorization": "Authorization"}
        own = {**entry.headers, **secret}
        self._client._custom_headers = {names.get(name.lower(), name): value for name, value in own.items()}
        if (parts.hostname, variable) != _OPENAI:
            self._client.organization = self._client.project = None

    async def ask(
        self, path: str, read: Callable[[ReplyBody], Awaitable[_T]], *, body: Any = None, idle_s: float
    ) -> _T:
        """What `read` makes of the server's answer, to a POST of this body or else a GET.

        It may be silent for `idle_s` seconds inside its own body.

        Raises:
            WorkerFailure: there is no answer, or it is an error.
        """
        # The SDK's own `create` converts each message by its types, which takes 0.4 ms of the event loop for each.
        options: dict[str, Any] = {"cast_to": object, "options": {"headers": _UNREAD}}
        client = self._client
        try:
            response = await (client.get(path, **options) if body is None else client.post(path, body=body, **options))
            try:
                return await read(ReplyBody(response.http_response, self.scrub, idle_s))
            finally:
                await response.close()
        except (self._errors, httpx2.HTTPError, httpx2.InvalidURL, WorkerFailure) as error:
            wrapped = error.__cause__ if isinstance(error, self._errors) else None  # what their HTTP client raised
            failure = failure_of(wrapped or error)
        # Raised out here: as its context, the client's error would carry the request and the reply, and the key too.
        raise failure.saying(shortened(self.scrub(str(failure)), MAX_FAILURE_CHARS))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()


_UNREAD: Final = {"X-Stainless-Raw-Response": "stream"}
"""Tells both SDKs to hand over a response whose body they have not read."""
_NO_KEY: Final = "none"
"""What an SDK, which insists on a key, is told where there is none. It is not sent."""
_OPENAI: Final = ("api.openai.com", "OPENAI_API_KEY")
"""The only server that is told the environment's organization and project, and the key that they belong to."""


def _http_client(entry: WorkerEntry, host: str, scrub: Scrubber) -> httpx2.AsyncClient:
    async def without_no_key(request: httpx2.Request) -> None:
        if request.headers.get("authorization") == f"Bearer {_NO_KEY}":
            del request.headers["authorization"]

    async def refuse_errors(response: httpx2.Response) -> None:
        if not response.is_success:  # an SDK would read the body whole, however long it is
            raise await status_failure(response, scrub)

    trust_env = not _is_this_machine(host)  # proxies of the outside world do not reach it
    try:
        return httpx2.AsyncClient(
            verify=_certificates(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")), trust_env=trust_env),
            follow_redirects=False,
            limits=_CONNECTIONS,
            timeout=httpx2.Timeout(entry.timeout_s, connect=min(_CONNECT_TIMEOUT_S, entry.timeout_s), pool=None),
            trust_env=trust_env,
            event_hooks={"request": [without_no_key], "response": [refuse_errors]},
        )
    except (OSError, ssl.SSLError):
        problem = "certificates (SSL_CERT_FILE, SSL_CERT_DIR) cannot be read"
    except (ValueError, ImportError, httpx2.InvalidURL):
        problem = "proxy (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY) cannot be used; a SOCKS proxy needs the package socksio"
    # Raised out here, and without the value: there may be a password in it.
    raise UsageError(f'worker "{entry.name}": the environment\'s {problem}; correct or unset the variable')


@cache
def _certificates(*_: str | None, trust_env: bool) -> ssl.SSLContext:
    """What TLS trusts, read once for all clients, which takes 30 ms; by the variables that it is read from."""
    return httpx2.create_ssl_context(trust_env=trust_env)


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_variable(entry: WorkerEntry, variable: str, what: str) -> str:
    """The value of an environment variable that an entry names.

    Raises:
        UsageError: it is not set, or holds what no header may hold.
    """
    value = os.environ.get(variable, "").strip()
    if not value:
        raise UsageError(
            f'worker "{entry.name}" needs {what}: set the environment variable {variable}, '
            "or name another one in the pool file (api_key_env, headers_env)"
        )
    if not value.isascii() or not value.isprintable():
        raise UsageError(
            f'worker "{entry.name}": the environment variable {variable} must hold the key alone, in one line of ASCII'
        )
    return value


class Answer(ABC):
    """An API: its requests, and what is known so far of an answer, which comes whole or as the events of a stream."""

    path: ClassVar[str]
    """Where a request is posted."""

    @staticmethod
    @abstractmethod
    def request(entry: WorkerEntry, call: Call, asked: Sampling) -> dict[str, Any]:
        """What the body for a call has besides what every API calls the same; None: left out."""

    def __init__(self) -> None:
        self.complete = False
        """Whether the server has said how the reply ended. A stream may end early without any error."""
        self.ending = ""
        """The server's word for how it ended."""
        self.model = ""
        self.said: list[str] = []
        self.refusal: list[str] = []
        self.thinking: list[str] = []
        self.kinds: set[str] = set()
        """What it has besides text: `tools`, `thinking`."""
        self.calls: dict[int, ToolCall] = {}
        """Calls of tools as far as they have come, by their places."""
        self.counts: dict[str, Any] = {}
        """Tokens, by the server's names."""

    @abstractmethod
    def whole(self, body: Mapping[str, Any]) -> None:
        """Take in the answer all at once.

        Raises:
            WorkerFailure: it is not an answer.
        """

    @abstractmethod
    def piece(self, event: Mapping[str, Any]) -> str:
        """Take in an event of a stream; the text that it adds.

        Raises:
            WorkerFailure: it says that there is no answer.
        """

    def reply(self, messages: Sequence[Message]) -> Reply:
        """The reply to these messages. Tokens that the server does not count are charged at their upper bound: one has
        at least one byte.
        """
        said, refusal = "".join(self.said), "".join(self.refusal)
        asked = sum(len(message["content"].encode("utf-8", "replace")) for message in messages)
        written = f"{said}{refusal}{''.join(self.thinking)}".encode("utf-8", "replace")
        tools, thinks = "tools" in self.kinds, "thinking" in self.kinds or any(self.thinking)
        finish = ended(said, self.ending, refusal=bool(refusal), tools=tools, thinking=thinks)
        calls = tuple(each for _, each in sorted(self.calls.items()) if each.name)
        usage = self._usage(Usage(asked, len(written)))
        return Reply(said or refusal, finish, usage, self.model, tool_calls=calls, ending=self.ending)

    def _take(self, body: Mapping[str, Any], word: Any) -> None:
        """Take in model, tokens and the word for the end; later counts replace earlier ones, unless they are null."""
        self.model = text(body.get("model")) or self.model
        self.ending = word_of(word) or self.ending
        self.counts |= {name: value for name, value in mapping(body.get("usage")).items() if value is not None}

    @abstractmethod
    def _usage(self, bound: Usage) -> Usage:
        """The tokens that the server counts, and the bound for those that it does not."""


class HttpWorker:
    """A model at a server."""

    def __init__(self, entry: WorkerEntry, api: type[Answer], connection: Connection) -> None:
        self._entry = entry
        self._api = api
        self._connection = connection

    async def __call__(self, call: Call) -> Reply:
        """Answer once.

        Raises:
            WorkerFailure: there is no usable reply.
            UsageError: the call brings a grammar, and the server takes none.
        """
        entry, api = self._entry, self._api
        if not entry.stream:
            call = call._replace(on_delta=None)
        asked = sampling(entry, call)
        fields: dict[str, Any] = {
            "model": entry.model,
            "temperature": asked.temperature,
            "top_p": asked.top_p,
            "stream": call.on_delta is not None or None,
            **api.request(entry, call, asked),
            **entry.extra_body,
        }
        if asked.grammar is not None:
            fields = with_grammar(entry, fields, asked.grammar)
        body = {name: value for name, value in fields.items() if value is not None}
        answer = api()

        async def read(got: ReplyBody) -> None:
            if await got.is_stream():
                await _follow(got, answer, call.on_delta, asked.max_tokens + (asked.thinking_budget or 0))
            else:
                answer.whole(await got.whole())

        async with in_time(call, entry.timeout_s):
            try:
                await self._connection.ask(api.path, read, body=body, idle_s=entry.idle_timeout_s)
            except WorkerFailure as failure:
                raise failure if asked.grammar is None else about_grammar(failure) from None
        reply = answer.reply(call.messages)
        ending = shortened(self._connection.scrub(clean(reply.ending)), _MAX_ENDING_CHARS)
        return priced(entry, with_tool_calls(call, replace(reply, ending=ending)))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    def __repr__(self) -> str:
        return f"HttpWorker({self._entry.name!r})"


async def _follow(body: ReplyBody, answer: Answer, on_delta: Callable[[str], None] | None, max_tokens: int) -> None:
    """Take in a stream up to its end; once the answer is complete, only what comes right after it."""
    loop, linger_s = asyncio.get_running_loop(), min(_LINGER_S, body.longest_silence_s / 2)
    events_left, chars_left = _MOST_EVENTS_PER_TOKEN * max_tokens + _SLACK, _MOST_CHARS_PER_TOKEN * max_tokens + _SLACK
    try:
        async with asyncio.timeout(None) as clock, aclosing(body.events()) as events:
            async for event in events:
                new = answer.piece(event)
                if new and on_delta is not None:
                    on_delta(new)
                if answer.complete:
                    clock.reschedule(loop.time() + (_FOR_THE_END_S if answer.counts else linger_s))
                events_left, chars_left = events_left - 1, chars_left - len(new)
                if min(events_left, chars_left) < 0:
                    answer.complete, answer.ending = True, "length"
                    break
    except TimeoutError:
        if not clock.expired():
            raise
    except httpx2.HTTPError:
        if not answer.complete:
            raise
    if body.done and not answer.ending and any(answer.said):  # some servers never say how the reply ended
        answer.complete, answer.ending = True, "stop"
    if not answer.complete:
        raise WorkerFailure("the stream ended before the reply was complete", retryable=True)


_MOST_EVENTS_PER_TOKEN: Final = 8
_MOST_CHARS_PER_TOKEN: Final = 20
_SLACK: Final = 1000
"""A stream of more events or characters than this is of a server that ignores its limit of tokens. Our choice: a usual
token has four characters, and an event of its own.
"""
_MAX_ENDING_CHARS: Final = 80
_LINGER_S: Final = 2.0
"""How long a connection that stays open after a complete answer may take for the token counts. Our choice."""
_FOR_THE_END_S: Final = 0.2
"""The same, where they have come: for the mark of the stream's end, after which the connection can be used again."""
