"""Workers behind an HTTP API: keys, the client, one attempt through an SDK.

Redirects are not followed: they would carry the key to another place. Keys are read when a worker is built, and live
only in the client that sends them.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

import httpx2

from wfdsl.errors import UsageError
from wfdsl.protocols import Call, Message, Reply, WorkerFailure
from wfdsl.workers.call_settings import in_time, priced
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.http_reply import Body, read_events, read_object, with_failures
from wfdsl.workers.redaction import Scrubber


class Answer(Protocol):
    """What is known so far of one API's answer."""

    @property
    def complete(self) -> bool:
        """Whether nothing is missing. A stream may end early without any error."""
        ...

    def whole(self, body: Mapping[str, Any]) -> None:
        """Take in the answer all at once."""
        ...

    def piece(self, event: Mapping[str, Any]) -> str:
        """Take in an event of a stream; the text that it adds."""
        ...

    def reply(self, messages: Sequence[Message]) -> Reply:
        """The reply to these messages."""
        ...


class Dialect(NamedTuple):
    """How one API is spoken through its SDK."""

    request: Callable[[WorkerEntry, Call], dict[str, Any]]
    """The arguments of `create` for a call."""
    create: Callable[..., AbstractAsyncContextManager[Body]]
    """Sends; the SDK's `with_streaming_response.create`."""
    answer: Callable[[], Answer]
    """An answer of which nothing is known yet."""
    errors: tuple[type[Exception], type[Exception]]
    """The SDK's error for an HTTP status, and the base of all its errors."""
    close: Callable[[], Awaitable[None]]
    """Closes the SDK's client."""


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
        request = self._dialect.request(self._entry, call)
        async with in_time(call, self._entry.timeout_s):
            answer = await with_failures(self._attempt(call, request), self._dialect.errors, self._scrub)
        return priced(self._entry, answer.reply(call.messages))

    async def _attempt(self, call: Call, request: dict[str, Any]) -> Answer:
        limits = time_limits(self._entry, streams=call.on_delta is not None)
        async with self._dialect.create(**request, timeout=limits) as response:
            return await self._read(response, call)

    async def _read(self, response: Body, call: Call) -> Answer:
        answer = self._dialect.answer()
        if call.on_delta is None:
            answer.whole(await read_object(response))
            return answer
        async with aclosing(read_events(response)) as events:
            async for event in events:
                if text := answer.piece(event):
                    call.on_delta(text)
        if not answer.complete:
            raise WorkerFailure("the stream ended before the reply was complete", retryable=True)
        return answer

    async def aclose(self) -> None:
        """Close the connections."""
        await self._dialect.close()

    def __repr__(self) -> str:
        return f"HttpWorker({self._entry.name!r})"


_CONNECT_TIMEOUT_S: Final = 10.0
"""Our choice."""
_CONNECTIONS: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
"""How many calls run at once is decided by the pool's limits, so that none waits here without being seen."""


def http_options(entry: WorkerEntry) -> dict[str, Any]:
    """The options of an SDK's HTTP client for this worker.

    Raises:
        UsageError: the certificates cannot be read, or the proxy's variable is not set.
    """
    options: dict[str, Any] = {"follow_redirects": False, "limits": _CONNECTIONS, "timeout": time_limits(entry)}
    if entry.ca_file is not None:
        options["verify"] = _trusting(entry, entry.ca_file)
    if entry.proxy_env is not None or entry.proxy is not None:
        options["proxy"] = _proxy(entry)
    elif _is_this_machine(entry.base_url):
        options["trust_env"] = False  # a proxy set for the outside world cannot reach in here
    return options


def time_limits(entry: WorkerEntry, *, streams: bool = False) -> httpx2.Timeout:
    """How long the connection may be silent: a reply in one piece comes all at the end."""
    silence_s = min(entry.idle_timeout_s, entry.timeout_s) if streams else entry.timeout_s
    return httpx2.Timeout(silence_s, connect=min(_CONNECT_TIMEOUT_S, entry.timeout_s), pool=None)


def secret_headers(entry: WorkerEntry) -> dict[str, str]:
    """The headers whose values are in the environment.

    Raises:
        UsageError: a variable is not set.
    """
    return {name: read_variable(entry, variable, "a header") for name, variable in entry.headers_env.items()}


def _proxy(entry: WorkerEntry) -> httpx2.Proxy:
    url = read_variable(entry, entry.proxy_env, "a proxy") if entry.proxy_env else entry.proxy or ""
    try:
        return httpx2.Proxy(url)
    except (ValueError, httpx2.InvalidURL):
        where = f"the environment variable {entry.proxy_env}" if entry.proxy_env else "proxy"
    # Raised out here, and without the URL: there may be a password in it.
    raise UsageError(f'worker "{entry.name}": {where} is not a proxy URL, such as "http://host:3128"')


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
