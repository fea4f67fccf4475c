"""The journal's file: where it lies, its tables, its versions, and what the database's complaints mean.

SQLite in WAL mode with synchronous FULL: what has been committed survives a power cut, and several processes may
share the file. Rows hold plain JSON.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from wfdsl.errors import JournalFailure

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
