"""Leases: calls, rate and money that a process draws from a limit server, so that limits and a budget hold for all.

Each call of a worker needs a lease. The calls that wait for one worker ask together, in one request, and the server
lets through as many as its limits and its budget allow. A call's end is told together with those of others; a
provider's refusal is told with it, and narrows the worker for every process. What a process that died had in flight
stays charged at its upper bound.
"""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl.interpreter.budget import NOTHING_SPENT, BudgetSpent, BudgetUsage
from wfdsl.protocols import WorkerFailure
from wfdsl.render.text import counted
from wfdsl.server_client import SILENCE_S, ServerClient, ServerGone, ServerRefused

_MOST_ASKED: Final = 256
"""Calls in one request. Our choice."""
_RENEWALS: Final = 3
"""How often leases are renewed in the time for which they are given."""
_FIRST_RENEWAL_S: Final = 5.0
_ANSWER_S: Final = 60.0
"""How long one attempt waits for its answer: a server answers after 20 s, with or without leases."""
_STOP_S: Final = 3.0
"""How long a stop waits for a server to hear what has ended. Our choice: it must not wait for a dead one."""
_WORKERS: Final = 64
"""Workers that calls wait for at a time; each waits in a thread."""


class _Waiting:
    """A call that waits for its lease."""

    def __init__(self, bound: BudgetUsage) -> None:
        self.bound = bound
        self.lease: asyncio.Future[str] = asyncio.get_running_loop().create_future()


@dataclass(slots=True)
class _Queue:
    """The calls that wait for one worker, first come, first served."""

    calls: deque[_Waiting] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None

    def give_up(self, task: asyncio.Task[None]) -> None:
        """Pass on what ended the task that asks for leases to the calls that still wait."""
        error = None if task.cancelled() else task.exception()
        while self.calls and task is self.task:
            lease = self.calls.popleft().lease
            if error is None:
                lease.cancel()
            elif not lease.done():
                lease.set_exception(error)


class LeaseClient:
    """Draws leases from the server at a URL. Close it, or use it in a `with` block: what has ended is told then."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        holder: str | None = None,
        patience_s: float = 600.0,
        say: Callable[[str], None] | None = None,
        silence_s: float = SILENCE_S,
    ) -> None:
        """`holder` names this process to the server; a new name unless given. The others are those of `ServerClient`.

        Raises:
            UsageError: the URL cannot be used.
        """
        self._say = say
        self.holder = holder or f"{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._client = ServerClient(
            url, key, patience_s=patience_s, timeout_s=_ANSWER_S, threads=_WORKERS, say=say, silence_s=silence_s
        )
        self._queues: dict[tuple[asyncio.AbstractEventLoop, str], _Queue] = {}
        self._news = threading.Condition()
        self._held: set[str] = set()
        self._ended: list[dict[str, Any]] = []
        self._lease_s = _FIRST_RENEWAL_S * _RENEWALS
        self._closing = False
        self._thread: threading.Thread | None = None

    async def take(self, worker: str, bound: BudgetUsage) -> str:
        """A lease for one call of a worker, once the server gives one; `bound` is the most that it may be charged.

        Raises:
            BudgetSpent: the server's budget does not cover the call.
            WorkerFailure: the server does not answer.
            UsageError: the server refused to give any, or is not a server of leases.
        """
        loop = asyncio.get_running_loop()
        queue = self._queues.setdefault((loop, worker), _Queue())
        waiting = _Waiting(bound)
        queue.calls.append(waiting)
        if queue.task is None or queue.task.done():
            queue.task = loop.create_task(self._fill(worker, queue))
            queue.task.add_done_callback(queue.give_up)
        try:
            return await waiting.lease
        except asyncio.CancelledError:
            if waiting.lease.done() and not waiting.lease.cancelled() and waiting.lease.exception() is None:
                self.end(waiting.lease.result(), NOTHING_SPENT)
            raise

    def end(self, lease: str, used: BudgetUsage, status: int = 200, retry_after: float | None = None) -> None:
        """Give a lease back: what the call was charged, and the HTTP status that its provider gave."""
        told = {"lease": lease, "calls": used[0], "tokens": used[1], "usd": used[2], "status": status}
        with self._news:
            self._ended.append(told if retry_after is None else {**told, "retry_after": retry_after})
            self._news.notify()

    def close(self, *, soon: bool = False) -> None:
        """Tell the server what has ended, and end the threads.

        A server that does not answer is waited for as long as a lease lasts, since it may be restarted; with `soon`,
        for a few seconds.
        """
        with self._news:
            self._closing = True
            self._news.notify()
        try:
            if self._thread is not None:
                self._thread.join(_STOP_S if soon else self._lease_s)
        finally:
            self._client.close()
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> LeaseClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(soon=kind is not None)

    async def _fill(self, worker: str, queue: _Queue) -> None:
        """Ask for leases until no call waits."""
        while queue.calls:
            while queue.calls and queue.calls[0].lease.done():
                queue.calls.popleft()
            asked = [waiting for waiting in queue.calls if not waiting.lease.done()][:_MOST_ASKED]
            if not asked:
                continue
            try:
                leases = await self._request(worker, asked)
            except (ServerGone, ServerRefused) as error:
                for waiting in asked:
                    if not waiting.lease.done():
                        waiting.lease.set_exception(_failure(error))
                continue
            for lease, waiting in zip(leases, asked, strict=False):
                if waiting.lease.done():
                    self.end(lease, NOTHING_SPENT)
                else:
                    waiting.lease.set_result(lease)

    async def _request(self, worker: str, asked: list[_Waiting]) -> list[str]:
        body = {
            "holder": self.holder,
            "worker": worker,
            "request": secrets.token_hex(8),
            "calls": [[waiting.bound.tokens, waiting.bound.usd] for waiting in asked],
        }
        request = self._client.submit("POST", "/v1/leases", body)
        try:
            answer = await asyncio.wrap_future(request)
        except asyncio.CancelledError:
            request.add_done_callback(self._give_back)
            raise
        return self._took(answer)

    def _took(self, answer: Any) -> list[str]:
        try:
            found, seconds = list(map(str, answer["leases"])), float(answer["seconds"])
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"the server at {self._client.url} answers without leases: {str(answer)[:200]}; "
                "give the address of a `wfdsl-reward serve`"
            ) from error
        with self._news:
            self._held.update(found)
            self._lease_s = seconds
            if self._thread is None:
                self._thread = threading.Thread(target=self._tell, name="wfdsl-leases", daemon=True)
                self._thread.start()
        return found

    def _give_back(self, request: Future[Any]) -> None:
        """Give back leases that came for calls that had been cancelled."""
        if not request.cancelled() and request.exception() is None:
            for lease in self._took(request.result()):
                self.end(lease, NOTHING_SPENT)

    def _tell(self) -> None:
        """Tell the server what has ended, and that this process lives."""
        while True:
            with self._news:
                self._news.wait_for(lambda: self._ended or self._closing, self._lease_s / _RENEWALS)
                ended, self._ended = self._ended, []
                self._held.difference_update(told["lease"] for told in ended)
                if self._closing and not ended:
                    return
                if not ended and not self._held:
                    continue
            try:
                self._client.request("POST", "/v1/leases/settle", {"holder": self.holder, "settled": ended})
            except (ServerGone, ServerRefused) as error:  # the next call is told why
                if ended and self._say is not None:
                    charged = f"; {counted(len(ended), 'call')} charged at the upper bound"
                    is_told = isinstance(error, ServerRefused) and error.code == "beyond_bound"
                    self._say(str(error) if is_told else f"{error}{charged}")


def _failure(error: ServerGone | ServerRefused) -> Exception:
    if isinstance(error, ServerGone):
        return WorkerFailure(str(error), retryable=False, sent=False)
    return BudgetSpent(str(error)) if error.code == "insufficient_quota" else error
