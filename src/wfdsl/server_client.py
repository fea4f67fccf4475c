"""A client of our own servers, with the standard library only: JSON over HTTP, asked again until the server answers.

A server that was restarted knows what it was asked before, so that asking again pays for nothing twice.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from wfdsl.errors import UsageError, WfdslError

_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 5.0
_CONNECT_S: Final = 5.0
"""How long a connection may take. Our choice: it is tried again, and `close` cannot end it."""
SILENCE_S: Final = 3.0
"""After which a server that does not answer is told of. Our choice: a restart takes about as long."""
_START: Final = "; start it, or stop this and correct the address"
_AGAIN: Final = {429, 500, 502, 503, 504}
_TOO_LARGE: Final = 413

_Answer = tuple[int, Mapping[str, str], bytes]
"""Status, headers, and content."""


class ServerGone(WfdslError):  # noqa: N818  (a state of the world, like a lost connection)
    """The server could not be reached, or answered with errors, for as long as the client had patience."""


class ServerRefused(UsageError):  # noqa: N818  (as JournalFailure is)
    """The server refused a request; asking again would not help."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class _Unanswered(TimeoutError):  # noqa: N818  (as ServerGone is)
    """A connection was made, and no answer came in time."""


class ServerClient:
    """Asks one server. Safe to share between threads; `close` ends its own, and what they ask."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        patience_s: float = 600.0,
        timeout_s: float = 300.0,
        threads: int = 64,
        say: Callable[[str], None] | None = None,
        silence_s: float = SILENCE_S,
    ) -> None:
        """`url` is as `wfdsl serve --score` prints it, and may hold a key (`http://any:KEY@host:8700`).

        Args:
            url: Where the server is.
            key: An API key, unless the URL has one.
            patience_s: How long a request is repeated while the server does not answer. One that has not answered an
                attempt in time, and answers `/health`, is busy: the time begins again.
            timeout_s: How long one attempt waits for its answer.
            threads: The most requests of `ask` at a time; each waits in a thread.
            say: Takes a line for the user when requests have failed for a while, once until those succeed.
            silence_s: How long that while is.

        Raises:
            UsageError: the URL cannot be used.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{url!r} is not the address of a server; write it as http://HOST:PORT")
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        self._parts = parts
        self._headers = {"content-type": "application/json", **_credentials(unquote(parts.password or ""), key)}
        self._patience_s = patience_s
        self._timeout_s = timeout_s
        self._say = say
        self._silence_s = silence_s
        self._told = set[bool]()
        """What the user knows of requests that fail: that the server is busy (`True`), that it fails (`False`)."""
        self._failing = set[object]()
        """The requests in progress that have failed for a while."""
        self._idle: list[HTTPConnection] = []
        self._busy: set[HTTPConnection] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="wfdsl-client")

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """`request`, for an event loop."""
        return await asyncio.wrap_future(self.submit(method, path, body))

    def submit(self, method: str, path: str, body: Any = None) -> Future[Any]:
        """`request` in a thread of its own."""
        return self._threads.submit(self.request, method, path, body)

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to a request, repeated while the server cannot be reached or asks to come again.

        Raises:
            ServerRefused: the server refused it for good.
            ServerGone: there was no answer in time, or the client was closed.
        """
        content = None if body is None else _json(body)
        request = object()
        try:
            answer = self._repeat(request, method, path, content)
        finally:
            with self._lock:
                self._failing.discard(request)
        with self._lock:
            if not self._failing:
                self._told.clear()
        return answer

    def _repeat(self, request: object, method: str, path: str, content: bytes | None) -> Any:
        first = begun = time.monotonic()
        wait_s, failing_since = _FIRST_WAIT_S, 0.0
        while not self._closed.is_set():
            asked_s, advice, busy, tried = 0.0, "", False, time.monotonic()
            try:
                status, headers, answer = self._once(method, path, content)
                if status < 400:
                    return json.loads(answer)
                why = f"refuses for now: {self._refusal(status, headers, answer)}"
                asked_s = _seconds(headers.get("retry-after"))
                now = since = time.monotonic()
            except (OSError, HTTPException, ValueError) as error:
                why, advice, now = f"does not answer ({str(error) or type(error).__name__})", _START, time.monotonic()
                # One that was cut off may have had its answer on the way until now.
                since = tried if isinstance(error, TimeoutError) else now
                busy = isinstance(error, _Unanswered) and self._is_alive()
            pause_s = max(asked_s, wait_s * (0.5 + random.random() / 2))
            failing_since = failing_since or since
            if busy:
                begun, why, advice = now, f"is still working on it ({now - first:.0f} s)", ""
            if not busy and now + pause_s > begun + self._patience_s:
                raise ServerGone(f"the server at {self.url} {why}")
            if now - failing_since >= self._silence_s:
                left = "waited for" if busy else f"asked for another {begun + self._patience_s - now:.0f} s"
                self._note_failure(request, f"{why}{advice}; it is {left}", busy=busy)
            self._closed.wait(pause_s)
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
        raise ServerGone(f"the server at {self.url} was not waited for any longer")

    def close(self) -> None:
        """End the requests in progress and the threads, and close the connections."""
        with self._lock:
            self._closed.set()
            for connection in self._busy:
                _end(connection)
            while self._idle:
                self._idle.pop().close()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _note_failure(self, request: object, why: str, *, busy: bool) -> None:
        """Tell the user, unless the user knows."""
        with self._lock:
            known = busy in self._told
            self._told.add(busy)
            self._failing.add(request)
        if self._say is not None and not known:
            self._say(f"the server at {self.url} {why}")

    def _is_alive(self) -> bool:
        """Whether the server, which did not answer in time, answers at all."""
        try:
            return self._once("GET", "/health", None, fresh_for_s=min(_CONNECT_S, self._timeout_s))[0] < 500
        except (OSError, HTTPException):
            return False

    def _once(self, method: str, path: str, content: bytes | None, *, fresh_for_s: float | None = None) -> _Answer:
        """The answer; with `fresh_for_s`, on a connection of its own, within this time."""
        fresh = fresh_for_s is not None
        connection = self._connection(fresh=fresh)
        try:
            if connection.sock is None:
                _connect(connection, self._timeout_s if fresh_for_s is None else fresh_for_s)
            if self._closed.is_set():  # and `close` may not have seen this connection
                raise ConnectionError("the client is closed")
            found = _exchange(connection, method, self._parts.path.rstrip("/") + path, content, self._headers)
        except BaseException:
            self._give_back(connection, reusable=False)
            raise
        self._give_back(connection, reusable=not fresh)
        return found

    def _connection(self, *, fresh: bool) -> HTTPConnection:
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        with self._lock:
            if self._idle and not fresh:
                found = self._idle.pop()
            else:
                found = kind(self._parts.hostname or "", self._parts.port, timeout=_CONNECT_S)
            self._busy.add(found)
        return found

    def _give_back(self, connection: HTTPConnection, *, reusable: bool) -> None:
        with self._lock:
            self._busy.discard(connection)
            if reusable and not self._closed.is_set():
                self._idle.append(connection)
            else:
                connection.close()

    def _refusal(self, status: int, headers: Mapping[str, str], answer: bytes) -> str:
        """What an error says, if asking again may help.

        Raises:
            ServerRefused: it would not.
        """
        try:
            error = json.loads(answer)["error"]
            message, code = str(error["message"]), str(error["code"])
        except (ValueError, KeyError, TypeError):
            message, code = f"status {status}", ""
        if status == _TOO_LARGE:
            message += "; send less at a time, such as fewer samples"
        if status not in _AGAIN or headers.get("x-should-retry") == "false":
            raise ServerRefused(f"the server at {self.url} refuses: {message}", status, code)
        return message


def _connect(connection: HTTPConnection, timeout_s: float) -> None:
    """Connect soon or not at all, and then wait this long for answers."""
    connection.connect()
    connection.sock.settimeout(timeout_s)


def _exchange(
    connection: HTTPConnection, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
) -> _Answer:
    try:
        try:
            connection.request(method, path, content, headers)
        except (BrokenPipeError, ConnectionResetError):  # a server may refuse before it has read everything
            try:
                return _answer(connection)
            finally:
                connection.close()
        return _answer(connection)
    except TimeoutError as error:
        raise _Unanswered(str(error)) from error


def _answer(connection: HTTPConnection) -> _Answer:
    answer = connection.getresponse()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


def _json(body: Any) -> bytes:
    """UTF-8, which takes a half to a third of the bytes of escapes; escapes for halves of surrogate pairs."""
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(body).encode()


def _end(connection: HTTPConnection) -> None:
    """Wake the thread that waits for an answer."""
    with suppress(OSError, AttributeError):  # it is not connected yet, or not any more
        connection.sock.shutdown(socket.SHUT_RDWR)


def _credentials(password: str, key: str | None) -> dict[str, str]:
    if key is not None:
        return {"authorization": f"Bearer {key}"}
    if password:
        return {"authorization": f"Basic {b64encode(f':{password}'.encode()).decode()}"}
    return {}


def _seconds(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
