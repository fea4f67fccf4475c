"""The journal's SQLite file: its path and tables, the thread that writes, and the lock of the process that works.

WAL mode with synchronous FULL: what has been committed survives a power cut, and several processes may share the file.
Rows hold plain JSON, a record JSON that LZMA has compressed: it repeats what each step was shown.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import lzma
import os
import queue
import secrets
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from wfdsl.errors import JournalFailure, UsageError

VERSION: Final = 7
"""Raised by one whenever a table changes; a journal of another version is not opened."""
_APPLICATION: Final = 0x77666473
"""SQLite's application id of a journal: the letters wfds."""
_TABLES: Final = """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    created REAL NOT NULL,
    status TEXT NOT NULL,
    owner TEXT,
    title TEXT NOT NULL,
    request TEXT NOT NULL,
    record BLOB
);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
    key TEXT NOT NULL,
    sample TEXT NOT NULL,
    path TEXT NOT NULL,
    worker TEXT NOT NULL,
    status TEXT NOT NULL,
    started REAL NOT NULL,
    finished REAL,
    reply TEXT,
    error TEXT NOT NULL DEFAULT '',
    calls INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    usd REAL
);
CREATE INDEX calls_of_run ON calls (run);
CREATE INDEX replies ON calls (key, sample) WHERE status = 'finished';
CREATE INDEX tool_calls ON calls (key) WHERE status IN ('called', 'answered')
"""
"""`calls`, `tokens` and `usd` are what a call is charged: its upper bound while it is `started` or `lost`, then the
true amount; `usd` is NULL where no one knows the price. A tool that a worker has called is a row whose key is the tool
call's id, whose worker is the tool, and whose reply is the result.
"""
_BUSY_TIMEOUT_MS = 30_000
_PRIVATE = 0o600
"""Questions and answers are for their owner only."""


def default_path() -> Path:
    """`journal.db` in the folder that WFDSL_HOME names, or else where the platform keeps such files."""
    home = os.environ.get("WFDSL_HOME")
    if home:
        return Path(home) / "journal.db"
    import platformdirs  # noqa: PLC0415  (needed only where WFDSL_HOME is not set)

    return Path(platformdirs.user_state_dir("wfdsl", appauthor=False)) / "journal.db"


def connect(path: Path, *, any_thread: bool = False) -> sqlite3.Connection:
    """Open a journal; make it if it is not there.

    Raises:
        JournalFailure: it cannot be opened or written, is of another version, or is another program's file.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, _PRIVATE))
        timeout_s = _BUSY_TIMEOUT_MS / 1000
        connection = sqlite3.connect(path, isolation_level=None, timeout=timeout_s, check_same_thread=not any_thread)
        try:
            _prepare(connection)
            _require_ours(connection, path)
        except BaseException:
            connection.close()
            raise
    except (OSError, sqlite3.Error) as error:
        raise failure(path, error) from error
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    """Set what holds for a connection, and make the tables of a new file."""
    if _is_new(connection):
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN EXCLUSIVE")
        if _is_new(connection):  # another process may have been first
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _is_new(connection: sqlite3.Connection) -> bool:
    return not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]


def _require_ours(connection: sqlite3.Connection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if (application, version) == (_APPLICATION, VERSION):
        return
    what = f"is a journal of version {version}, and this wfdsl uses version {VERSION}"
    if application != _APPLICATION:
        what = "is not a journal of this wfdsl, but another program's SQLite file"
    raise JournalFailure(f"{path} {what}; move it away, or set WFDSL_HOME to another folder")


def failure(path: Path, error: Exception) -> JournalFailure:
    """The error that says in plain words what the database or the system complained about."""
    complaint = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
    advice = next((advice for sign, advice in _ADVICE.items() if sign in complaint), _ELSEWHERE)
    return JournalFailure(f"the journal {path} cannot be used: {complaint}; {advice}")


_ELSEWHERE = "set WFDSL_HOME to a folder that can be written"
_ADVICE = {
    "full": "free some space there, then resume the run",
    "disk I/O error": "free some space there or check the disk, then resume the run",
    "locked": "another program holds it; end that one, then resume the run",
    **dict.fromkeys(("not a database", "malformed", "no such", "decode"), "it is damaged: move it away"),
}


def compressed(text: str) -> bytes:
    """A text as the journal keeps it if it is long. The dictionary is as long as the text, since it repeats itself."""
    plain = text.encode()
    size = min(max(len(plain), 4096), _LARGEST_DICTIONARY)
    return lzma.compress(plain, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": size}])


_LARGEST_DICTIONARY = 1 << 23
"""Bytes; compressing takes about ten times as much memory. Our choice."""


Operation: TypeAlias = Callable[[sqlite3.Connection], Any]
_LARGEST_BATCH = 1000


class _Job(NamedTuple):
    operation: Operation
    future: asyncio.Future[Any] | None


class JournalWriter:
    """Runs operations on the journal's connection, in the order in which they were asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = connect(path, any_thread=True)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._at_work: list[_Job] = []
        self.has_ended = False
        """Whether no operation can be run any more."""
        self._thread = threading.Thread(target=self.work, name="wfdsl-journal", daemon=True)
        self.start()

    def start(self) -> None:
        """Let the operations run as they come."""
        self._thread.start()

    async def do(self, operation: Operation) -> Any:
        """Run an operation; its result comes once it is durable.

        Raises:
            JournalFailure: it could not be made durable.
        """
        if self.has_ended:
            raise self._over()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.put(_Job(operation, future))
        return await future

    def do_later(self, operation: Operation) -> None:
        """Run an operation without waiting for it; `close` waits."""
        self.put(_Job(operation, None))

    def put(self, job: _Job | None) -> None:
        """Add a job; None ends the work."""
        self._jobs.put(job)

    def close(self) -> None:
        """Do what is left, and let go of the file. May be called more than once."""
        self.put(None)
        self._thread.join()
        self._connection.close()

    def work(self) -> None:
        """Do jobs until one is None."""
        try:
            while self.do_batch():
                pass
        finally:
            # No caller may wait for a thread that has ended, not even if a mistake of ours ended it.
            self.has_ended = True
            left = list(self._at_work)
            while not self._jobs.empty():
                left += filter(None, [self._jobs.get_nowait()])
            _hand_back(left, [self._over()] * len(left))

    def do_batch(self) -> bool:
        """Wait for jobs and do them; gives whether more may come."""
        jobs = self._at_work = self._next_batch()
        if jobs:
            _hand_back(jobs, self._commit(jobs))
        self._at_work = []
        return bool(jobs)

    def _over(self) -> JournalFailure:
        return JournalFailure(f"the journal {self._path} has been closed; open it again, then resume the run")

    def _next_batch(self) -> list[_Job]:
        """At least one job; none at the end."""
        jobs: list[_Job] = []
        while (job := self._jobs.get()) is not None:
            jobs.append(job)
            if len(jobs) == _LARGEST_BATCH or self._jobs.empty():
                return jobs
        if jobs:
            self._jobs.put(None)
        return jobs

    def _commit(self, jobs: list[_Job]) -> list[Any]:
        """Do all jobs in one transaction. One that fails by itself changes nothing, and the others are done.

        Only where one fails are all done again with a savepoint each: each statement gives up the interpreter's lock,
        for which a thread waits 5 ms where the event loop is busy.
        """
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                results = [job.operation(connection) for job in jobs]
            except Exception:  # noqa: BLE001  (it is found again, and handed to its own caller)
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                connection.execute("BEGIN IMMEDIATE")
                results = [self._result(job) for job in jobs]
            connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return [failure(self._path, error)] * len(jobs)
        return results

    def _result(self, job: _Job) -> Any:
        connection = self._connection
        connection.execute("SAVEPOINT job")
        try:
            result = job.operation(connection)
        except sqlite3.Error as error:
            if not connection.in_transaction:
                raise  # such as a full disk: SQLite has given up the whole transaction
            result = failure(self._path, error)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            # SQLite holds UTF-8 and integers of 64 bits, and JSON no more levels than Python calls.
            result = JournalFailure(f"the journal {self._path} cannot hold a value: {error}")
        except Exception as error:  # noqa: BLE001  (our mistake is the job's, and not that of the jobs beside it)
            result = error
        if isinstance(result, Exception):
            connection.execute("ROLLBACK TO job")
            if job.future is None:
                logging.getLogger("wfdsl").error("the journal %s could not be written", self._path, exc_info=result)
        connection.execute("RELEASE job")
        return result


def _hand_back(jobs: list[_Job], results: list[Any]) -> None:
    """Wake each event loop once for all of its results."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for job, result in zip(jobs, results, strict=True):
        if job.future is not None:
            by_loop.setdefault(job.future.get_loop(), []).append((job.future, result))
    for loop, done in by_loop.items():
        with suppress(RuntimeError):  # the loop has been closed, and no one waits any more
            loop.call_soon_threadsafe(_wake, done)


def _wake(done: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, result in done:
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)


def locked(file: Path) -> int | None:
    """Lock a file, which is made if it is not there; None: another process, or another descriptor, has it."""
    descriptor = os.open(file, os.O_CREAT | os.O_RDWR, _PRIVATE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def lock_for_sole_use(path: Path) -> int:
    """Lock a journal for one process, until it ends; for programs whose limits would not hold otherwise.

    Raises:
        UsageError: another process has it.
    """
    file = path.resolve()  # a link to a journal is the same journal
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = locked(file.with_name(file.name + ".lock"))
    if descriptor is None:
        raise UsageError(f"another process answers with the journal {path}; stop it, or use another journal")
    return descriptor


def owners_of(path: Path) -> Path:
    """The folder with a file for each process that has a journal open, which holds a lock on it."""
    return path.with_name(path.name + ".owners")


class Owner:
    """An open journal, as other processes see it."""

    def __init__(self, path: Path) -> None:
        folder = owners_of(path)
        folder.mkdir(parents=True, exist_ok=True)
        self.name = f"{os.getpid()}-{secrets.token_hex(6)}"
        """The process id, for people, and something that makes it unique."""
        self._file = folder / self.name
        self._lock = locked(self._file)

    def close(self) -> None:
        """Let go. May be called more than once."""
        self._file.unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def is_alive(path: Path, owner: str | None) -> bool:
    """Whether an owner's process still has the journal open; clears up after a dead one."""
    file = owners_of(path) / (owner or "")
    if not file.is_file():
        return False
    descriptor = locked(file)
    if descriptor is not None:
        file.unlink(missing_ok=True)
        os.close(descriptor)
    return descriptor is None
