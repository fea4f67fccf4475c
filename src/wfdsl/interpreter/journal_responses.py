"""Responses of a server in the journal, each with the run that it belongs to: later requests continue from them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import reading
from wfdsl.interpreter.record import as_unicode


async def keep_response(journal: Journal, response_id: str, run_id: str, content: Mapping[str, Any]) -> None:
    """Keep a response of a run that the journal has, as plain values; one that is kept already stays as it is.

    Raises:
        JournalFailure: it cannot be kept.
    """
    row = (response_id, json.dumps(content), run_id)

    def insert(connection: sqlite3.Connection) -> int:
        return connection.execute(_INSERT, row).rowcount

    await journal.do(insert)


def response_of(path: Path, response_id: str, key: str) -> dict[str, Any] | None:
    """What was kept of a response; None: there is no such response of a run that this API key has asked for.

    Raises:
        JournalFailure: the journal cannot be read.
    """
    with reading(path) as connection:
        row = connection.execute(_SELECT, (as_unicode(response_id), key)).fetchone()
    return None if row is None else dict(json.loads(row[0]))


_INSERT = (
    "INSERT INTO responses (id, run, content) SELECT ?, number, ? FROM runs WHERE runs.id = ? ON CONFLICT DO NOTHING"
)
_SELECT = (
    "SELECT content FROM responses JOIN runs ON number = run "
    "WHERE responses.id = ? AND json_extract(request, '$.origin.key') = ?"
)
