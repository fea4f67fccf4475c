"""A client of our own servers, with the standard library only: JSON over HTTP, asked again until the server answers.

A server that was restarted knows what it was asked before, so that asking again pays for nothing twice.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from base64 import b64encode
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from wfdsl.errors import UsageError, WfdslError

_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 5.0
_AGAIN: Final = {429, 500, 502, 503, 504}


class ServerGone(WfdslError):  # noqa: N818  (a state of the world, like a lost connection)
    """The server could not be reached, or answered with errors, for as long as the client had patience."""


class ServerRefused(UsageError):  # noqa: N818  (as JournalFailure is)
    """The server refused a request; asking again would not help."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class ServerClient:
    """Asks one server. Safe to share between threads; `close` ends its own."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        patience_s: float = 600.0,
        timeout_s: float = 300.0,
        threads: int = 64,
    ) -> None:
        """`url` is as `wfdsl-reward serve` prints it, and may hold a key (`http://any:KEY@host:8700`).

        Args:
            url: Where the server is.
            key: An API key, unless the URL has one.
            patience_s: How long a request is repeated while the server does not answer.
            timeout_s: How long one attempt waits for its answer.
            threads: The most requests of `ask` at a time; each waits in a thread.

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
        self._idle: list[HTTPConnection] = []
        self._lock = threading.Lock()
        self._closed = False
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
            ServerGone: there was no answer in time.
        """
        content = None if body is None else json.dumps(body).encode()
        end, wait_s = time.monotonic() + self._patience_s, _FIRST_WAIT_S
        while True:
            asked_s = 0.0
            try:
                status, headers, answer = self._once(method, path, content)
                if status < 400:
                    return json.loads(answer)
                why, asked_s = self._refusal(status, headers, answer), _seconds(headers.get("retry-after"))
            except (OSError, HTTPException, ValueError) as error:
                why = str(error) or type(error).__name__
            pause_s = max(asked_s, wait_s * (0.5 + random.random() / 2))
            if time.monotonic() + pause_s > end:
                raise ServerGone(f"the server at {self.url} does not answer: {why}")
            time.sleep(pause_s)
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)

    def close(self) -> None:
        """End the threads, after the requests in progress, and close the connections."""
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop().close()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _once(self, method: str, path: str, content: bytes | None) -> tuple[int, Mapping[str, str], bytes]:
        connection = self._connection()
        try:
            connection.request(method, self._parts.path.rstrip("/") + path, content, self._headers)
            answer = connection.getresponse()
            found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        except BaseException:
            connection.close()
            raise
        with self._lock:
            if self._closed:
                connection.close()
            else:
                self._idle.append(connection)
        return found

    def _connection(self) -> HTTPConnection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        return kind(self._parts.hostname or "", self._parts.port, timeout=self._timeout_s)

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
        if status not in _AGAIN or headers.get("x-should-retry") == "false":
            raise ServerRefused(f"the server at {self.url} refuses: {message}", status, code)
        return message


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
