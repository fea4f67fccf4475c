"""Workers behind an HTTP API: keys, the client, one attempt through an SDK.

Redirects are not followed: they would carry the key to another place. Keys are read when a worker is built, and live
only in the client that sends them.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlsplit, urlunsplit
from urllib.request import getproxies

import httpx2

from wfdsl.errors import UsageError
from wfdsl.protocols import Call, Message, Reply, WorkerFailure
from wfdsl.workers.call_settings import in_time, priced, sampling
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.http_failure import about_grammar, refuse_errors, shortened, with_failures
from wfdsl.workers.http_reply import Body, ReplyBody
from wfdsl.workers.redaction import Scrubber
from wfdsl.workers.text_policy import clean
from wfdsl.workers.tool_calls import with_tool_calls


class Answer(Protocol):
    """What is known so far of one API's answer."""

    @property
    def complete(self) -> bool:
        """Whether the server has said how the reply ended. A stream may end early without any error."""
        ...

    @property
    def counted(self) -> bool:
        """Whether a complete reply has its token counts, too: nothing more is to come."""
        ...

    def whole(self, body: Mapping[str, Any]) -> None:
        """Take in the answer all at once."""
        ...

    def piece(self, event: Mapping[str, Any]) -> str:
        """Take in an event of a stream; the text that it adds."""
        ...

    def done(self) -> None:
        """Take in that the server has ended its stream on purpose."""
        ...

    def cut(self) -> None:
        """Take in that no more of a stream is read: it is far longer than the reply may be."""
        ...

    def reply(self, messages: Sequence[Message]) -> Reply:
        """The reply to these messages."""
        ...


class SdkClient(Protocol):
    """What both SDKs' clients offer for requests of one's own."""

    async def post(self, path: str, *, cast_to: Any, body: Any, options: Any) -> Any:
        """Send a JSON body as it is."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class Dialect(NamedTuple):
    """How one API is spoken through its SDK."""

    request: Callable[[WorkerEntry, Call], dict[str, Any]]
    """The body for a call."""
    path: str
    """Where the SDK's client posts it, after `base_url`."""
    client: SdkClient
    """The SDK's client."""
    answer: Callable[[], Answer]
    """An answer of which nothing is known yet."""
    errors: type[Exception]
    """The base of all the SDK's errors."""


class HttpWorker:
    """A model behind an API."""

    def __init__(self, entry: WorkerEntry, dialect: Dialect, scrub: Scrubber) -> None:
        self._entry = entry
        self._dialect = dialect
        self._scrub = scrub

    async def __call__(self, call: Call) -> Reply:
        """Answer once.

        Raises:
            WorkerFailure: there is no usable reply.
        """
        if not self._entry.stream:
            call = call._replace(on_delta=None)
        request = self._dialect.request(self._entry, call)
        async with in_time(call, self._entry.timeout_s):
            try:
                answer = await with_failures(self._attempt(call, request), self._dialect.errors, self._scrub)
            except WorkerFailure as failure:
                raise failure if "grammar" not in call.settings else about_grammar(failure) from None
        reply = answer.reply(call.messages)
        reply = replace(reply, ending=shortened(self._scrub(clean(reply.ending)), _MAX_ENDING_CHARS))
        return priced(self._entry, with_tool_calls(call, reply))

    async def _attempt(self, call: Call, request: dict[str, Any]) -> Answer:
        # The SDK's own `create` converts each message by its types, which takes 0.4 ms of the event loop for each.
        options = {"headers": _UNREAD, "timeout": _time_limits(self._entry)}
        response = await self._dialect.client.post(self._dialect.path, cast_to=object, body=request, options=options)
        try:
            return await self._read(response, call)
        finally:
            await response.close()

    async def _read(self, response: Body, call: Call) -> Answer:
        answer, body = self._dialect.answer(), ReplyBody(response, self._scrub, self._entry.idle_timeout_s)
        if await body.is_stream():
            asked = sampling(self._entry, call)
            await _follow(body, answer, call.on_delta, asked.max_tokens + (asked.thinking_budget or 0))
        else:
            answer.whole(await body.whole())
        return answer

    async def aclose(self) -> None:
        """Close the connections."""
        await self._dialect.client.close()

    def __repr__(self) -> str:
        return f"HttpWorker({self._entry.name!r})"


async def _follow(body: ReplyBody, answer: Answer, on_delta: Callable[[str], None] | None, max_tokens: int) -> None:
    """Take in a stream up to its end; once the answer is complete, only what comes right after it."""
    loop, linger_s = asyncio.get_running_loop(), min(_LINGER_S, body.longest_silence_s / 2)
    events_left, chars_left = _MOST_EVENTS_PER_TOKEN * max_tokens + _SLACK, _MOST_CHARS_PER_TOKEN * max_tokens + _SLACK
    try:
        async with asyncio.timeout(None) as clock, aclosing(body.events()) as events:
            async for event in events:
                text = answer.piece(event)
                if text and on_delta is not None:
                    on_delta(text)
                if answer.complete:
                    clock.reschedule(loop.time() + (_FOR_THE_END_S if answer.counted else linger_s))
                events_left, chars_left = events_left - 1, chars_left - len(text)
                if min(events_left, chars_left) < 0:
                    answer.cut()
                    break
    except TimeoutError:
        if not clock.expired():
            raise
    except httpx2.HTTPError:
        if not answer.complete:
            raise
    if body.done:
        answer.done()
    if not answer.complete:
        raise WorkerFailure("the stream ended before the reply was complete", retryable=True)


_MOST_EVENTS_PER_TOKEN: Final = 8
_MOST_CHARS_PER_TOKEN: Final = 20
_SLACK: Final = 1000
"""A stream of more events or characters than this is of a server that ignores its limit of tokens. Our choice: a usual
token has four characters, and an event of its own.
"""
_UNREAD: Final = {"X-Stainless-Raw-Response": "stream"}
"""Tells both SDKs to hand over a response whose body they have not read."""
_MAX_ENDING_CHARS: Final = 80
_LINGER_S: Final = 2.0
"""How long a connection that stays open after a complete answer may take for the token counts. Our choice."""
_FOR_THE_END_S: Final = 0.2
"""The same, where they have come: for the mark of the stream's end, after which the connection can be used again."""
_CONNECT_TIMEOUT_S: Final = 10.0
"""Our choice."""
_CONNECTIONS: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=256)
"""How many calls run at once is decided by the pool's limits, so that none waits here without being seen. Idle ones are
kept up to a number (our choice): the client looks at each of them before each request.
"""


def http_client(entry: WorkerEntry, scrub: Scrubber) -> httpx2.AsyncClient:
    """The HTTP client of this worker, for an SDK. A response that is not a success raises a `WorkerFailure`.

    Raises:
        UsageError: the certificates cannot be read, or a proxy cannot be used.
    """
    options: dict[str, Any] = {}
    if entry.ca_file is not None:
        options["verify"] = _trusting(entry, entry.ca_file)
    if entry.proxy_env is not None or entry.proxy is not None:
        options["proxy"] = _proxy(entry)
    elif _is_this_machine(entry.base_url):
        options["trust_env"] = False  # a proxy set for the outside world cannot reach in here
    else:
        _check_environment_proxies(entry)
    try:
        return httpx2.AsyncClient(
            follow_redirects=False,
            limits=_CONNECTIONS,
            timeout=_time_limits(entry),
            event_hooks={"request": [_without_no_key], "response": [refuse_errors(scrub)]},
            **options,
        )
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f'worker "{entry.name}": cannot read the certificates that SSL_CERT_FILE or SSL_CERT_DIR names '
            f"({error.strerror or error}); correct the environment variable, unset it, or set ca_file in the pool file"
        ) from None


def _time_limits(entry: WorkerEntry) -> httpx2.Timeout:
    return httpx2.Timeout(entry.timeout_s, connect=min(_CONNECT_TIMEOUT_S, entry.timeout_s), pool=None)


class Address(NamedTuple):
    """A `base_url` in the two parts that an SDK takes."""

    url: str
    query: dict[str, str]


def address_of(base_url: str) -> Address:
    """The parts of a `base_url`: its query, such as Azure's `api-version`, comes after the path of each request."""
    parts = urlsplit(base_url)
    return Address(urlunsplit(parts._replace(query="")), dict(parse_qsl(parts.query, keep_blank_values=True)))


def secret_headers(entry: WorkerEntry) -> dict[str, str]:
    """The headers whose values are in the environment.

    Raises:
        UsageError: a variable is not set.
    """
    return {name: read_variable(entry, variable, "a header") for name, variable in entry.headers_env.items()}


NO_KEY: Final = "none"
"""What an SDK, which insists on a key, is told where there is none. It is not sent."""


async def _without_no_key(request: httpx2.Request) -> None:
    if request.headers.get("Authorization") == f"Bearer {NO_KEY}":
        del request.headers["Authorization"]


def own_headers(entry: WorkerEntry, secret: Mapping[str, str]) -> dict[str, str]:
    """The headers that an entry names, spelled as its SDK does where they replace one of the SDK's."""
    headers = {**entry.headers, **secret}
    return {"Authorization" if name.lower() == "authorization" else name: value for name, value in headers.items()}


def scrubber(entry: WorkerEntry, key: str | None, secret: Mapping[str, str]) -> Scrubber:
    """What hides a worker's secrets: its key, its secret headers, and whatever else that it sends may be secret."""
    plain = (value for value in entry.headers.values() if len(value) >= _SHORTEST_HIDDEN_HEADER_CHARS)
    url, query = address_of(entry.base_url or "")
    parts = (
        part for part in (*urlsplit(url).path.split("/"), *query.values()) if len(part) >= _SHORTEST_HIDDEN_PART_CHARS
    )
    return Scrubber([key, *secret.values(), *plain, *parts])


_SHORTEST_HIDDEN_HEADER_CHARS: Final = 8
_SHORTEST_HIDDEN_PART_CHARS: Final = 20
"""Shorter ones are words such as `true` or `2024-05-01-preview`, which an error text may need. Our choice."""


def _proxy(entry: WorkerEntry) -> httpx2.Proxy:
    where = f"the environment variable {entry.proxy_env}" if entry.proxy_env else "proxy"
    url = read_variable(entry, entry.proxy_env, "a proxy") if entry.proxy_env else entry.proxy or ""
    return _usable_proxy(entry, url, where)


def _check_environment_proxies(entry: WorkerEntry) -> None:
    """Refuse proxies of the environment that cannot be used: the client would fail only once it is asked."""
    for scheme, url in getproxies().items():
        if scheme in ("http", "https", "all"):
            where = f"the environment variable {scheme.upper()}_PROXY (or {scheme}_proxy)"
            _usable_proxy(entry, url if "://" in url else f"http://{url}", where)


def _usable_proxy(entry: WorkerEntry, url: str, where: str) -> httpx2.Proxy:
    who = f'worker "{entry.name}": {where}'
    try:
        proxy = httpx2.Proxy(url)
        usable = bool(proxy.url.host) and (proxy.url.port or 0) <= _LAST_PORT
    except (ValueError, httpx2.InvalidURL):
        usable = False
    # Raised out here, and without the URL: there may be a password in it.
    if not usable:
        raise UsageError(f'{who} is not a proxy URL, such as "http://host:3128"; correct it, or unset it')
    if proxy.url.scheme.startswith("socks") and find_spec("socksio") is None:
        raise UsageError(f"{who} is a SOCKS proxy, which needs the package socksio: pip install socksio; or unset it")
    return proxy


_LAST_PORT: Final = 65_535


def _trusting(entry: WorkerEntry, ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f'worker "{entry.name}": cannot read certificates from ca_file {ca_file}: {error}') from error


def _is_this_machine(url: str | None) -> bool:
    host = urlsplit(url or "").hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_MAX_KEY_FILE_BYTES: Final = 65_536


def read_key(entry: WorkerEntry, usual_variable: str | None) -> str | None:
    """The key of a worker; None for a server that needs none (`base_url` is set, and no key named).

    Raises:
        UsageError: the variable is not set, or the file cannot be read.
    """
    if entry.api_key_file is not None:
        return _from_file(entry, Path(entry.api_key_file).expanduser())
    if entry.api_key_env is not None:
        return read_variable(entry, entry.api_key_env, "a key")
    if usual_variable is None or entry.base_url is not None:
        return None
    return read_variable(entry, usual_variable, "a key")


def read_variable(entry: WorkerEntry, variable: str, what: str) -> str:
    """The value of an environment variable that an entry names.

    Raises:
        UsageError: it is not set, or holds what no header may hold.
    """
    value = os.environ.get(variable, "").strip()
    if not value:
        raise UsageError(
            f'worker "{entry.name}" needs {what}: set the environment variable {variable}, '
            f"or name another place in the pool file (api_key_env, api_key_file)"
        )
    return _one_line(entry, value, f"the environment variable {variable}")


def _from_file(entry: WorkerEntry, path: Path) -> str:
    try:
        with path.open("rb") as file:
            value = file.read(_MAX_KEY_FILE_BYTES).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text"
        raise UsageError(f'worker "{entry.name}": cannot read the key file {path}: {reason}') from None
    if not value:
        raise UsageError(f'worker "{entry.name}": the key file {path} is empty')
    return _one_line(entry, value, f"the key file {path}")


def _one_line(entry: WorkerEntry, value: str, where: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise UsageError(f'worker "{entry.name}": {where} must hold the key alone, in one line of ASCII')
    return value
