"""A client of the reward server, for reward functions of training engines. It needs the core of this package only."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import httpx2

from wfdsl.errors import UsageError, WfdslError
from wfdsl.interpreter.limits import part_of
from wfdsl.workers.http_failure import retry_after_s

Result: TypeAlias = dict[str, Any]
"""What a trainer reads of a scored completion."""
_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 5.0
_CONNECT_S: Final = 5.0
_THREADS: Final = 64
"""Requests of `score` at a time. Our choice."""
_AGAIN: Final = frozenset({429, 500, 502, 503, 504})
_LOST: Final = (httpx2.TimeoutException, httpx2.NetworkError, httpx2.RemoteProtocolError)
"""Failures of a connection."""
_TOO_LARGE: Final = 413


class ServerGone(WfdslError):  # noqa: N818  (a state of the world, like a lost connection)
    """The server could not be reached, or answered with errors, for as long as the client had patience."""


class ServerRefused(UsageError):  # noqa: N818  (as JournalFailure is)
    """The server refused a request; asking again would not help."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class RewardClient:
    """Has completions scored by a reward server; safe to share between threads and event loops.

    A request is repeated while the server cannot be reached. Samples with an id, and equal ones without, are paid for
    once however often they are sent.
    """

    def __init__(
        self, url: str, key: str | None = None, *, run: str = "", patience_s: float = 600.0, timeout_s: float = 300.0
    ) -> None:
        """`url` is as `wfdsl serve --score` prints it, and may hold a key (`http://any:KEY@host:8700`).

        Args:
            url: Where the server is.
            key: An API key, unless the URL has one.
            run: Is put before all sample ids, so that experiments on one server share nothing.
            patience_s: How long a request is repeated while the server does not answer. One that has not answered an
                attempt in time, and answers `/health`, is busy: the time begins again.
            timeout_s: How long one attempt waits for its answer.

        Raises:
            UsageError: the URL cannot be used.
        """
        try:
            parts = httpx2.URL(url)
        except httpx2.InvalidURL:
            parts = httpx2.URL("")
        if parts.scheme not in ("http", "https") or not parts.host:
            raise UsageError(f"{url!r} is not the address of a server; write it as http://HOST:PORT")
        self.url = str(parts.copy_with(username=None, password=None)).rstrip("/")
        self._path = f"/v1/score?run={quote(run, safe='')}" if run else "/v1/score"
        self._patience_s = patience_s
        self._closed = threading.Event()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="wfdsl-client")
        self._http = httpx2.Client(
            auth=None if key is not None or not parts.password else (parts.username, parts.password),
            headers={} if key is None else {"authorization": f"Bearer {key}"},
            timeout=httpx2.Timeout(timeout_s, connect=_CONNECT_S, pool=None),
            trust_env=False,
        )

    async def score(self, samples: Sequence[Mapping[str, Any]]) -> list[Result]:
        """The results of samples (`task`, `completion`, `sample_id`, ...), in order, as `Scored.to_dict` has them.

        Raises:
            ServerRefused: the server refused them.
            ServerGone: it did not answer in time, or the client was closed.
            UsageError: the request cannot be sent, such as with a key that no header can hold.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.score_sync, samples)

    def score_sync(self, samples: Sequence[Mapping[str, Any]]) -> list[Result]:
        """The same for a thread without an event loop.

        Raises:
            ServerRefused, ServerGone, UsageError: as in `score`.
        """
        content = json.dumps({"samples": list(samples)}).encode()
        begun, wait_s = time.monotonic(), _FIRST_WAIT_S
        while not self._closed.is_set():
            try:
                answer = self._http.post(
                    self.url + self._path, content=content, headers={"content-type": "application/json"}
                )
                if answer.is_success:
                    found: list[Result] = answer.json()["results"]
                    return found
                why, asked_s = f"refuses for now: {self._refusal(answer)}", retry_after_s(answer.headers) or 0.0
            except _LOST as error:
                why, asked_s = f"does not answer ({str(error) or type(error).__name__})", 0.0
                if isinstance(error, httpx2.ReadTimeout) and self._is_alive():
                    begun, why = time.monotonic(), "is still working on it"
            except httpx2.TransportError as error:
                raise UsageError(f"a request to {self.url} cannot be sent: {error}") from error
            except RuntimeError:
                if self._closed.is_set():  # `close` was called meanwhile
                    break
                raise
            now = time.monotonic()
            pause_s = max(asked_s, part_of(wait_s))
            if now + pause_s > begun + self._patience_s:
                raise ServerGone(f"the server at {self.url} {why}")
            self._closed.wait(pause_s)
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
        raise ServerGone(f"the server at {self.url} was not waited for any longer")

    def close(self) -> None:
        """End its requests, threads and connections."""
        self._closed.set()
        self._http.close()
        self._threads.shutdown(cancel_futures=True)

    def _is_alive(self) -> bool:
        """Whether the server, which did not answer in time, answers at all."""
        try:
            return self._http.get(f"{self.url}/health", timeout=_CONNECT_S).status_code < 500
        except httpx2.TransportError:
            return False

    def _refusal(self, answer: httpx2.Response) -> str:
        """What an error says, if asking again may help."""
        try:
            error = answer.json()["error"]
            message, code = str(error["message"]), str(error["code"])
        except (ValueError, KeyError, TypeError):
            message, code = f"status {answer.status_code}", ""
        if answer.status_code == _TOO_LARGE:
            message += "; send less at a time, such as fewer samples"
        if answer.status_code not in _AGAIN or answer.headers.get("x-should-retry") == "false":
            raise ServerRefused(f"the server at {self.url} refuses: {message}", answer.status_code, code)
        return message
