"""The journal's SQLite file: path, migrating, the thread that writes, and the lock of the process that works.

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
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from wfdsl.errors import JournalFailure, UsageError
from wfdsl.interpreter.journal_read_only import connect_read_only, is_about_writing
from wfdsl.interpreter.journal_record import packed_in_sql
from wfdsl.interpreter.journal_schema import MIGRATIONS, VERSION

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
    """Open a journal for writing; make it if it is not there, and bring it up to this version.

    Raises:
        JournalFailure: it cannot be opened or written, or was written by a later version.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, _PRIVATE))
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


def connect_to_read(path: Path, *, any_thread: bool = False) -> sqlite3.Connection:
    """Open a journal that is there, for reading; also where nothing can be written, such as on a full disk.

    Raises:
        JournalFailure: it is not there, cannot be read, or was written by a later version.
    """
    if not path.exists():
        raise JournalFailure(
            f"there is no journal at {path}: nothing has been run yet, or WFDSL_HOME names another folder"
        )
    try:
        return connect(path, any_thread=any_thread)
    except JournalFailure as error:
        if not is_about_writing(error.__cause__):
            raise
    connection = connect_read_only(path, any_thread=any_thread)
    connection.text_factory = _text
    return connection


def failure(path: Path, error: Exception) -> JournalFailure:
    """The error that says in plain words what the database or the system complained about."""
    complaint = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
    for sign, advice in _ADVICE.items():
        if sign in complaint:
            what = "used" if advice is _BROKEN else "written"
            return JournalFailure(f"the journal {path} cannot be {what}: {complaint}; {advice}")
    return JournalFailure(
        f"the journal {path} cannot be used: {complaint}; set WFDSL_HOME to a folder that can be written"
    )


_BROKEN = "it is damaged: bring it back from a copy, or move it away"
_ADVICE = {
    "full": "free some space there, then resume the run",
    "disk I/O error": "free some space there or check the disk, then resume the run",
    "readonly": "make it writable, or set WFDSL_HOME to a folder that is",
    "Permission denied": "make it writable, or set WFDSL_HOME to a folder that is",
    "locked": "another program holds it; end that one, then resume the run",
    "not a database": "move that file away, or set WFDSL_HOME to another folder",
    "malformed": _BROKEN,
    "no such": _BROKEN,
}


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.text_factory = _text
    if not _version(connection):  # a new file; of another one this would be a write that changes nothing
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
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
    if version:
        for file in path.parent.glob(f"{path.name}*"):
            if file.is_file():
                file.chmod(_PRIVATE)
    connection.create_function("packed", 3, packed_in_sql, deterministic=True)
    for migration in MIGRATIONS[version:]:
        for statement in filter(str.strip, migration.split(";")):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _text(stored: bytes) -> str:
    """A text of the file, also where damage left bytes that are not UTF-8: checksums and readers notice."""
    return stored.decode(errors="replace")


def shrink(connection: sqlite3.Connection) -> None:
    """Give the space that removed runs took back to the file system."""
    if connection.execute("PRAGMA auto_vacuum").fetchone()[0]:
        connection.executescript("PRAGMA incremental_vacuum")  # `execute` would do one page
    else:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def damaged(path: Path, run_id: str, error: Exception) -> JournalFailure:
    """The error that says which run of a journal cannot be read."""
    why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
    return JournalFailure(
        f"run {run_id} in the journal {path} is damaged: {why}; remove it with: wfdsl runs rm {run_id}, or bring the "
        "journal back from a copy"
    )


UNREADABLE = (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading a damaged row raises."""


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
        """Do all jobs in one transaction. One that fails by itself changes nothing, and the others are done.

        Only where one fails are all done again with a savepoint each: each statement gives up the interpreter's lock,
        for which a thread waits 5 ms where the event loop is busy.
        """
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                results = [job.operation(connection) for job in jobs]
            except (UsageError, ValueError, TypeError, OverflowError, sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
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


class SoleUse:
    """The use of a journal by one process only, until `close`; for programs whose limits would not hold otherwise."""

    def __init__(self, path: Path) -> None:
        """Take it.

        Raises:
            UsageError: another process has it.
        """
        file = path.resolve()  # a link to a journal is the same journal
        lock = file.with_name(file.name + ".lock")
        lock.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(lock, os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), _PRIVATE)
        if not _try_lock(self._descriptor):
            os.close(self._descriptor)
            raise UsageError(f"another process answers with the journal {path}; stop it, or use another journal")

    def close(self) -> None:
        """Let others have it. The file stays: another process may be waiting for its lock."""
        os.close(self._descriptor)


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
        descriptor = _opened_for_lock(path)
    except FileNotFoundError:
        return False
    try:
        if not _try_lock(descriptor):
            return True
        with suppress(OSError):  # where nothing can be written
            path.unlink(missing_ok=True)
        return False
    finally:
        os.close(descriptor)


def _opened_for_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR)
    except OSError:  # the file system cannot be written; most let a file be locked that is open for reading
        return os.open(path, os.O_RDONLY)
