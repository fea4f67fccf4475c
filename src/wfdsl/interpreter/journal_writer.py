"""The one thread that writes a journal. Whatever has come in while it was writing goes into its next transaction.

A commit waits for the disk, so a hundred calls that finish together share one commit. An operation's result is handed
back only after the commit: what anybody sees is durable.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from wfdsl.errors import JournalFailure
from wfdsl.interpreter.journal_file import connect, failure

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Operation: TypeAlias = "Callable[[sqlite3.Connection], Any]"
_LARGEST_BATCH = 1000


class _Job(NamedTuple):
    operation: Operation
    loop: asyncio.AbstractEventLoop | None
    future: asyncio.Future[Any] | None


class Refusal(Exception):  # noqa: N818  (it never leaves the journal)
    """An operation's own answer that it will not be done; the others of its transaction are."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class JournalWriter:
    """Runs operations on the journal's connection, in the order in which they were asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = connect(path, any_thread=True)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._ended = False
        self._thread = threading.Thread(target=self._work, name="wfdsl-journal", daemon=True)
        self._thread.start()

    async def do(self, operation: Operation) -> Any:
        """Run an operation; its result comes once it is durable.

        Raises:
            JournalFailure: it could not be made durable.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if self._ended:
            raise self._over()
        self._jobs.put(_Job(operation, loop, future))
        return await future

    def do_later(self, operation: Operation) -> None:
        """Run an operation that nobody waits for; `close` does."""
        self._jobs.put(_Job(operation, None, None))

    def close(self) -> None:
        """Do what is left, and let go of the file. May be called more than once."""
        self._jobs.put(None)
        self._thread.join()
        self._connection.close()

    def _work(self) -> None:
        jobs: list[_Job] | None = []
        try:
            while (jobs := self._next_batch()) is not None:
                results = self._commit(jobs)
                _hand_back(jobs, results)
                jobs = []
        finally:
            # Nobody may wait for a thread that has ended, not even where a mistake of ours ended it.
            self._ended = True
            left = [*(jobs or []), *self._left_over()]
            _hand_back(left, [self._over()] * len(left))

    def _left_over(self) -> list[_Job]:
        left = []
        while not self._jobs.empty():
            job = self._jobs.get_nowait()
            if job is not None:
                left.append(job)
        return left

    def _over(self) -> JournalFailure:
        return JournalFailure(f"the journal {self._path} has been closed; open it again, then resume the run")

    def _next_batch(self) -> list[_Job] | None:
        first = self._jobs.get()
        if first is None:
            return None
        jobs = [first]
        while len(jobs) < _LARGEST_BATCH:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                self._jobs.put(None)
                break
            jobs.append(job)
        return jobs

    def _commit(self, jobs: list[_Job]) -> list[Any]:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            results = [_result(job.operation, connection) for job in jobs]
            connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return [failure(self._path, error)] * len(jobs)
        return results


def _result(operation: Operation, connection: sqlite3.Connection) -> Any:
    try:
        return operation(connection)
    except Refusal as refusal:
        return refusal.error


def _hand_back(jobs: list[_Job], results: list[Any]) -> None:
    """Wake each event loop once for all of its results."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for job, result in zip(jobs, results, strict=True):
        if job.loop is not None and job.future is not None:
            by_loop.setdefault(job.loop, []).append((job.future, result))
    for loop, done in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_wake, done)


def _wake(done: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, result in done:
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
