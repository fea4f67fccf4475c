"""Reading the journal's file where nothing can be written, not even the files beside it by which processes share it.

So what has been answered can be read on a full disk, and on one that is read-only.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from wfdsl.errors import JournalFailure
from wfdsl.interpreter.journal_schema import VERSION

_NOT_WRITABLE = (
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
)
_PRIMARY = 0xFF
"""The part of SQLite's error codes that says the kind of error."""


def is_about_writing(error: BaseException | None) -> bool:
    """Whether an error may only mean that a file cannot be opened for writing."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & _PRIMARY in _NOT_WRITABLE


def connect_read_only(path: Path, *, any_thread: bool = False) -> sqlite3.Connection:
    """Open a journal without writing anything.

    As immutable, SQLite takes the file for all that there is: what is only in its log of writes would be missing. So
    that is tried only where the log is empty.

    Raises:
        JournalFailure: it cannot be read so, or is of another version.
    """
    file = path.resolve()
    log = file.with_name(f"{file.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    complaint = ""
    for way in ["mode=ro"] if has_log else ["mode=ro", "mode=ro&immutable=1"]:
        try:
            return _opened(f"{file.as_uri()}?{way}", any_thread=any_thread)
        except sqlite3.Error as error:
            complaint = str(error)
    raise JournalFailure(
        f"the journal {path} cannot be read where it lies: {complaint}; copy it and the files beside it to a folder "
        "that can be written, and set WFDSL_HOME to that folder"
    )


def _opened(uri: str, *, any_thread: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=not any_thread)
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            raise sqlite3.OperationalError(f"it has version {version}, and has to be brought up to {VERSION}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
