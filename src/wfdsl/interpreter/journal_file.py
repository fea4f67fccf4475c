"""The journal's SQLite file: path, tables, migrations, the thread that writes, and the lock of the process that works.

WAL mode with synchronous FULL: what has been committed survives a power cut, and several processes may share the file.
Rows hold plain JSON.
"""

from __future__ import annotations

import asyncio
import os
import queue
import secrets
import sqlite3
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from wfdsl.errors import JournalFailure, UsageError

_BUSY_TIMEOUT_MS = 30_000

_MIGRATIONS = (
    """
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        created REAL NOT NULL,
        status TEXT NOT NULL,
        owner TEXT,
        title TEXT NOT NULL,
        plan TEXT NOT NULL,
        record TEXT
    );
    CREATE TABLE calls (
        id INTEGER PRIMARY KEY,
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        sample TEXT NOT NULL,
        path TEXT NOT NULL,
        worker TEXT NOT NULL,
        status TEXT NOT NULL,
        started REAL NOT NULL,
        finished REAL,
        call TEXT NOT NULL,
        reply TEXT,
        error TEXT NOT NULL DEFAULT '',
        calls INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        usd REAL NOT NULL
    );
    CREATE INDEX calls_of_run ON calls (run);
    CREATE INDEX replies ON calls (key, sample) WHERE status = 'finished';
    """,
    # What a run was asked has its options in one table. Quotes inside of JSON strings are escaped, so a key can be
    # replaced as text.
    """
    ALTER TABLE runs RENAME COLUMN plan TO request;
    UPDATE runs SET request = json_object(
        'workflow', json_extract(request, '$.workflow'),
        'question', json_extract(request, '$.question'),
        'config', json_object(
            'seed', json_extract(request, '$.seed'),
            'question_for', json_extract(request, '$.question_for'),
            'run_dead_steps', json(iif(json_extract(request, '$.run_dead_steps'), 'true', 'false')),
            'max_depth', json_extract(request, '$.max_depth')
        ),
        'budget', json_object(
            'calls', json_extract(request, '$.budget.calls'),
            'tokens', json_extract(request, '$.budget.tokens'),
            'usd', json_extract(request, '$.budget.usd'),
            'seconds', json_extract(request, '$.budget.wall_s')
        ),
        'names', json_extract(request, '$.names'),
        'previous', json_extract(request, '$.previous'),
        'pool', json_extract(request, '$.pool'),
        'sample_id', json_extract(request, '$.sample'),
        'origin', json_extract(request, '$.origin')
    ), record = replace(record, '"outcome": ', '"result": ');
    """,
)
"""Migration i takes a file from version i to i + 1. `calls`, `tokens` and `usd` are what the call is charged: its
upper bound while it is `started` or `lost`, then the true amount. Migrations that were once released never change.
"""
VERSION = len(_MIGRATIONS)
"""What this wfdsl writes; older files are brought up to it when they are opened."""


def default_path() -> Path:
    """`journal.db` in the folder that WFDSL_HOME names, or else where the platform keeps such files."""
    home = os.environ.get("WFDSL_HOME")
    if home:
        return Path(home) / "journal.db"
    import platformdirs  # noqa: PLC0415  (needed only where WFDSL_HOME is not set)

    return Path(platformdirs.user_state_dir("wfdsl", appauthor=False)) / "journal.db"


def connect(path: Path, *, any_thread: bool = False) -> sqlite3.Connection:
    """Open a journal for writing; make it if it is not there, and bring it up to this version.

    Raises:
        JournalFailure: it cannot be opened or written, or was written by a later version.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            path, isolation_level=None, timeout=_BUSY_TIMEOUT_MS / 1000, check_same_thread=not any_thread
        )
    except (OSError, sqlite3.Error) as error:
        raise failure(path, error) from error
    try:
        _prepare(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise failure(path, error) from error
    except JournalFailure:
        connection.close()
        raise
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a journal that is there, for reading.

    Raises:
        JournalFailure: it is not there, cannot be read, or was written by a later version.
    """
    if not path.exists():
        raise JournalFailure(
            f"there is no journal at {path}: nothing has been run yet, or WFDSL_HOME names another folder"
        )
    return connect(path)


def failure(path: Path, error: Exception) -> JournalFailure:
    """The error that says in plain words what the database or the system complained about."""
    complaint = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
    for sign, advice in _ADVICE.items():
        if sign in complaint:
            return JournalFailure(f"the journal {path} cannot be written: {complaint}; {advice}")
    return JournalFailure(
        f"the journal {path} cannot be used: {complaint}; set WFDSL_HOME to a folder that can be written"
    )


_ADVICE = {
    "full": "free some space there, then resume the run",
    "disk I/O error": "free some space there or check the disk, then resume the run",
    "readonly": "make it writable, or set WFDSL_HOME to a folder that is",
    "Permission denied": "make it writable, or set WFDSL_HOME to a folder that is",
    "locked": "another program holds it; end that one, then resume the run",
    "not a database": "move that file away, or set WFDSL_HOME to another folder",
}


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    if _version(connection) != VERSION:
        _migrate(connection, path)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN EXCLUSIVE")
    version = _version(connection)  # another process may have been first
    if version > VERSION:
        connection.execute("ROLLBACK")
        raise JournalFailure(
            f"the journal {path} has version {version}, this wfdsl knows up to {VERSION}; use a later wfdsl, "
            "or set WFDSL_HOME to another folder"
        )
    for migration in _MIGRATIONS[version:]:
        for statement in filter(str.strip, migration.split(";")):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


Operation: TypeAlias = Callable[[sqlite3.Connection], Any]
_LARGEST_BATCH = 1000


class _Job(NamedTuple):
    operation: Operation
    loop: asyncio.AbstractEventLoop | None
    future: asyncio.Future[Any] | None


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
        """Run an operation without waiting for it; `close` waits."""
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
            # No caller may wait for a thread that has ended, not even if a mistake of ours ended it.
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
        """Do all jobs in one transaction. One that fails by itself changes nothing, and the others are done."""
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            results = [self._result(job.operation) for job in jobs]
            connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return [failure(self._path, error)] * len(jobs)
        return results

    def _result(self, operation: Operation) -> Any:
        connection = self._connection
        connection.execute("SAVEPOINT job")
        try:
            result = operation(connection)
        except UsageError as error:
            result = error
        except (ValueError, TypeError, OverflowError) as error:  # SQLite holds UTF-8 and integers of 64 bits
            result = JournalFailure(f"the journal {self._path} cannot hold a value: {error}")
        except sqlite3.Error as error:
            if not connection.in_transaction:
                raise  # such as a full disk: SQLite has given up the whole transaction
            result = failure(self._path, error)
        if isinstance(result, UsageError):
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
        return result


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


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


class Owner:
    """An open journal, as other processes see it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = f"{os.getpid()}-{secrets.token_hex(6)}"
        """The process id, for people, and something that makes it unique."""
        self._file = folder / self.name
        descriptor = os.open(self._file, os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600)
        _try_lock(descriptor)
        self._descriptor: int | None = descriptor

    def close(self) -> None:
        """Let go. May be called more than once."""
        if self._descriptor is not None:
            self._file.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None


def is_alive(folder: Path, name: str) -> bool:
    """Whether the process that an owner's name stands for still has its journal open; clears up after a dead one."""
    path = folder / name
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        if not _try_lock(descriptor):
            return True
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(descriptor)
