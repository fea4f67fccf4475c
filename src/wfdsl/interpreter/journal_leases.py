"""Leases in the journal: a holder is a run without a workflow of its own, and each leased call one of its calls.

So leases outlive the server that gave them, count towards its budget, and are listed by `wfdsl runs`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wfdsl.interpreter.budget import BudgetUsage
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.journal import Journal
from wfdsl.language.tree import ALL
from wfdsl.language.workflow import Step, Workflow

PREFIX = "leases/"
"""What the run of a holder begins with."""


class KeptLease(NamedTuple):
    """A lease that has not ended."""

    id: str
    holder: str
    worker: str
    bound: BudgetUsage
    """The most that its call may be charged."""
    request: str
    """The request that it answered."""


async def keep_leases(
    journal: Journal,
    holder: str,
    worker: str,
    bounds: Sequence[BudgetUsage],
    *,
    request: str,
    key: str = "",
) -> list[str]:
    """Keep new leases; their ids. `key` is the name of the API key that the holder began with.

    Raises:
        JournalFailure: they cannot be kept.
    """
    run_id, now = PREFIX + holder, time.time()
    title = f"calls leased to {holder}"
    origin = {"key": key} if key else {}
    asked = RunRequest(workflow=Workflow((Step(0, title, ALL),)), question=title, sample_id=run_id, origin=origin)
    rows = [(run_id, run_id, worker, "started", now, request, *bound) for bound in bounds]

    def insert(connection: sqlite3.Connection) -> list[str]:
        connection.execute(
            "INSERT INTO runs (id, created, status, title, request) VALUES (?, ?, 'stopped', ?, ?) "
            "ON CONFLICT DO NOTHING",
            (run_id, now, title, asked.to_json()),
        )
        return [str(connection.execute(_INSERT, row).lastrowid) for row in rows]

    found: list[str] = await journal.do(insert)
    return found


def note_leases(journal: Journal, ended: Iterable[tuple[str, str, BudgetUsage]]) -> None:
    """Note what has become of leases: the id, the status (`settled`, `lost`, `returned`) and the charge."""
    rows = [(status, time.time(), *usage, int(lease)) for lease, status, usage in ended]
    journal.do_later(lambda connection: connection.executemany(_UPDATE, rows))


async def open_leases(journal: Journal) -> list[KeptLease]:
    """The leases that had not ended when the journal was last used.

    Raises:
        JournalFailure: the journal cannot be read.
    """

    def look(connection: sqlite3.Connection) -> list[KeptLease]:
        rows = connection.execute(_SELECT)
        return [
            KeptLease(str(lease), run_id.removeprefix(PREFIX), worker, BudgetUsage(*usage), key)
            for lease, run_id, worker, key, *usage in rows
        ]

    found: list[KeptLease] = await journal.do(look)
    return found


_INSERT = (
    "INSERT INTO calls (run, sample, path, worker, status, started, key, calls, tokens, usd) "
    "VALUES ((SELECT number FROM runs WHERE id = ?), ?, '[0]', ?, ?, ?, ?, ?, ?, ?)"
)
_UPDATE = "UPDATE calls SET status = ?, finished = ?, calls = ?, tokens = ?, usd = ? WHERE id = ?"
_SELECT = (
    "SELECT calls.id, runs.id, worker, key, calls, tokens, usd FROM calls JOIN runs ON number = run "
    f"WHERE calls.status = 'started' AND runs.id GLOB '{PREFIX}*' ORDER BY calls.id"
)
