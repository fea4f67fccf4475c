"""Reading a journal: which runs it has, what they were asked, what happened, and which calls were lost."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from wfdsl.errors import UsageError
from wfdsl.interpreter.budget import NOTHING_SPENT, BudgetUsage
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.journal import OF_RUN, reply_from_json
from wfdsl.interpreter.journal_file import (
    UNREADABLE,
    connect,
    connect_to_read,
    damaged,
    decompressed,
    failure,
    is_alive,
    shrink,
)
from wfdsl.interpreter.journal_unfinished import Attempt, unfinished_run
from wfdsl.interpreter.record import Run, as_unicode
from wfdsl.protocols import Reply


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in one line."""

    id: str
    created: float
    """Seconds since 1970."""
    status: str
    """As in a run's record; `interrupted`: its process ended before the run did; `damaged`: it cannot be read."""
    title: str
    """The question."""
    charged: BudgetUsage
    is_bound: bool = False
    """Whether calls that were lost or still run are charged at their most."""
    pool: str = ""
    origin: Mapping[str, str] = field(default_factory=dict)
    """Where the caller found workflow or Conductor; of an evaluation its id, the policy and the task."""
    last_event: float | None = None
    """When a call was last started or ended, in seconds since 1970; None: none was made."""

    @property
    def by(self) -> str:
        """Who or what decided on the steps: a policy, a Conductor or a workflow file."""
        origin = self.origin
        return origin.get("policy") or origin.get("solve") or PurePath(origin.get("file", "")).name


_SUMMARIES = """
SELECT runs.id, created, runs.status, owner, title,
    coalesce(sum(calls), 0), coalesce(sum(tokens), 0), coalesce(sum(usd), 0.0),
    coalesce(sum(calls.status IN ('started', 'lost')), 0),
    CASE WHEN json_valid(request)
        THEN json_object('pool', json_extract(request, '$.pool'), 'origin', json_extract(request, '$.origin'))
        ELSE '{}' END,
    max(coalesce(calls.finished, calls.started))
FROM runs LEFT JOIN calls ON calls.run = number GROUP BY number ORDER BY number DESC
"""


def summaries(path: Path) -> list[RunSummary]:
    """The runs of a journal, newest first.

    Raises:
        JournalFailure: the journal cannot be read.
    """
    with reading(path) as connection:
        rows = connection.execute(_SUMMARIES).fetchall()
    return [_summary(path, row) for row in rows]


_UNKNOWN_PRICE = """
SELECT DISTINCT id FROM runs JOIN (
    SELECT run, count(reply) AS replies,
        sum(iif(json_valid(reply), json_type(reply, '$.paid_usd') IS 'null', 0)) AS unpriced
    FROM calls WHERE usd = 0 AND tokens > 0 AND {which} GROUP BY run, worker
) ON run = number WHERE unpriced > 0 OR replies = 0
"""


def runs_of_unknown_price(path: Path, run_id: str | None = None) -> set[str]:
    """The runs that were charged no dollars for a call because its price is not known, of all runs or of one.

    A worker without a price is told from a free one by its replies, so until there is one its price is not known.

    Raises:
        JournalFailure: the journal cannot be read.
    """
    which, values = ("true", ()) if run_id is None else (OF_RUN, (run_id,))
    with reading(path) as connection:
        return {row[0] for row in connection.execute(_UNKNOWN_PRICE.format(which=which), values)}


_SPENT = """
SELECT coalesce(sum(calls), 0), coalesce(sum(tokens), 0), coalesce(sum(usd), 0.0) FROM calls
WHERE started >= ? AND run IN (SELECT number FROM runs WHERE json_extract(request, '$.origin.key') = ?)
"""


def spent_by_key(path: Path, key: str, since: float) -> BudgetUsage:
    """What the calls of an API key's runs were charged since a time, in seconds since 1970; calls that still run, or
    were lost, at the most they may cost.

    Raises:
        JournalFailure: the journal cannot be read.
    """
    with reading(path) as connection:
        return BudgetUsage(*connection.execute(_SPENT, (since, key)).fetchone())


def full_id(path: Path, prefix: str) -> str:
    """The run whose id begins like this; `last` is the newest.

    Raises:
        UsageError: there is none, or there are several.
    """
    with reading(path) as connection:
        found: list[str] = [row[0] for row in connection.execute("SELECT id FROM runs ORDER BY number DESC")]
    if prefix == "last" and found:
        return found[0]
    matching = [run_id for run_id in found if run_id == prefix] or [
        run_id for run_id in found if run_id.startswith(prefix)
    ]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise UsageError(f"several runs begin with {prefix!r}: {', '.join(matching[:5])}; write more of the id")
    raise UsageError(f"the journal {path} has no run {prefix!r}; `wfdsl runs` lists those that it has")


def request_of(path: Path, run_id: str) -> RunRequest:
    """What a run was asked to do.

    Raises:
        UsageError: the journal has no such run.
    """
    with reading(path) as connection:
        row = connection.execute("SELECT request FROM runs WHERE id = ?", (run_id,)).fetchone()
    if row is None:
        raise UsageError(f"the journal {path} has no run {run_id!r}; `wfdsl runs` lists those that it has")
    with _decoding(path, run_id):
        return RunRequest.from_json(row[0])


def run_of(path: Path, run_id: str) -> Run:
    """The record of a run; put together from its calls if its process ended before it could write one.

    Raises:
        UsageError: the journal has no such run.
    """
    request = request_of(path, run_id)
    with reading(path) as connection:
        created, status, owner, record = connection.execute(
            "SELECT created, status, owner, record FROM runs WHERE id = ?", (run_id,)
        ).fetchone()
    if record is not None and status != "running":
        with _decoding(path, run_id):
            return Run.from_json(decompressed(record))
    is_running = _status(path, status, owner) == "running"
    return unfinished_run(run_id, request, attempts_of(path, run_id), created, is_running=is_running)


def response_of(path: Path, response_id: str, key: str) -> dict[str, Any] | None:
    """What was kept of a server's response; None: there is no such response of a run that this API key has asked for.

    Raises:
        JournalFailure: the journal cannot be read.
    """
    with reading(path) as connection:
        row = connection.execute(_RESPONSE, (as_unicode(response_id), key)).fetchone()
    return None if row is None else dict(json.loads(row[0]))


_RESPONSE = (
    "SELECT content FROM responses JOIN runs ON number = run "
    "WHERE responses.id = ? AND json_extract(request, '$.origin.key') = ?"
)


def runs_of_tool_calls(path: Path, call_ids: Collection[str]) -> set[str]:
    """The runs whose workers have made these tool calls.

    Raises:
        JournalFailure: the journal cannot be read.
    """
    of_tool_call = "SELECT run FROM calls WHERE key = ? AND status IN ('called', 'answered')"
    query = f"SELECT id FROM runs WHERE number = ({of_tool_call})"
    with reading(path) as connection:
        found = [connection.execute(query, (call_id,)).fetchone() for call_id in call_ids]
    return {row[0] for row in found if row is not None}


def attempts_of(path: Path, run_id: str) -> tuple[Attempt, ...]:
    """Every attempt of a run, in the order in which they began.

    Raises:
        JournalFailure: the journal or the run cannot be read.
    """
    with reading(path) as connection:
        rows = connection.execute(_ATTEMPTS, (run_id,)).fetchall()
    with _decoding(path, run_id):
        return tuple(
            Attempt(
                tuple(json.loads(steps)),
                worker,
                status,
                started,
                finished,
                error,
                _reply(status, reply),
                BudgetUsage(*charge),
            )
            for steps, worker, status, started, finished, error, reply, *charge in rows
        )


_ATTEMPTS = (
    "SELECT path, worker, status, started, finished, error, reply, calls, tokens, usd FROM calls "
    f"WHERE {OF_RUN} AND status NOT IN ('called', 'answered') ORDER BY id"  # those are tool calls
)


def _reply(status: str, kept: str | None) -> Reply | None:
    return reply_from_json(kept or "") if status == "finished" or kept else None


def kept_replies(path: Path, run_id: str) -> tuple[Attempt, ...]:
    """The attempts of a run whose replies it has.

    Raises:
        JournalFailure: the journal or the run cannot be read.
    """
    return tuple(attempt for attempt in attempts_of(path, run_id) if attempt.status == "finished")


def add_copy(path: Path, run_id: str, request: RunRequest, source: str, kept: Iterable[Attempt]) -> None:
    """Write a run that has stopped, with replies of another run, which cost it nothing.

    Raises:
        JournalFailure: it cannot be written.
    """
    paths = json.dumps([json.dumps(each.path) for each in kept])
    with _open(path, connect) as connection:
        connection.execute("BEGIN IMMEDIATE")
        number = connection.execute(
            "INSERT INTO runs (id, created, status, title, request) VALUES (?, ?, 'stopped', ?, ?)",
            (run_id, time.time(), request.title, request.to_json()),
        ).lastrowid
        connection.execute(_COPY, (number, run_id, source, paths))
        connection.execute("COMMIT")


_COPY = f"""
INSERT INTO calls (run, key, sample, path, worker, status, started, finished, reply, calls, tokens, usd)
SELECT ?, key, ?, path, worker, status, started, finished, json_set(reply, '$.paid_usd', 0.0), 0, 0, 0.0
FROM calls WHERE {OF_RUN} AND status = 'finished' AND path IN (SELECT value FROM json_each(?))
"""


def remove(path: Path, run_ids: Iterable[str]) -> int:
    """Forget runs and their calls, and give the space back to the file system; gives how many runs there were.

    Raises:
        UsageError: a process is working on one of them.
    """
    wanted = list(run_ids)
    with _open(path, connect) as connection:
        for run_id in wanted:
            row = connection.execute("SELECT owner FROM runs WHERE id = ?", (run_id,)).fetchone()
            if row is not None and row[0] is not None and is_alive(_owners(path), row[0]):
                raise UsageError(f"run {run_id} is being worked on; stop it first")
        connection.execute("BEGIN IMMEDIATE")
        removed = sum(connection.execute("DELETE FROM runs WHERE id = ?", (run_id,)).rowcount for run_id in wanted)
        connection.execute("COMMIT")
        if removed:
            shrink(connection)
    return removed


def reading(path: Path) -> AbstractContextManager[sqlite3.Connection]:
    """The journal, open for reading; what the database complains about is a `JournalFailure`."""
    return _open(path, connect_to_read)


@contextmanager
def _open(path: Path, opener: Callable[[Path], sqlite3.Connection]) -> Iterator[sqlite3.Connection]:
    with closing(opener(path)) as connection:
        try:
            yield connection
        except sqlite3.Error as error:
            raise failure(path, error) from error


@contextmanager
def _decoding(path: Path, run_id: str) -> Iterator[None]:
    """What makes a row unreadable is a `JournalFailure` that names the run."""
    try:
        yield
    except (*UNREADABLE, UsageError) as error:
        raise damaged(path, run_id, error) from error


def _summary(path: Path, row: tuple[Any, ...]) -> RunSummary:
    run_id, created, status, owner, title, *charge, unsure, asked, last = row
    if isinstance(created, float) and isinstance(status, str) and isinstance(title, str):
        found = json.loads(asked)
        pool, origin = str(found.get("pool") or ""), found.get("origin") or {}
        charged = BudgetUsage(*charge)
        status = _status(path, status, owner)
        return RunSummary(run_id, created, status, title, charged, bool(unsure), pool, origin, last)
    return RunSummary(run_id, 0.0, DAMAGED, "", NOTHING_SPENT)


DAMAGED = "damaged"
"""The status of a run whose row cannot be read."""
STATUSES = ("done", "failed", "budget", "stopped", "suspended", "interrupted", "running", DAMAGED)
"""What the status of a run in a list may be."""


def _status(path: Path, status: str, owner: str | None) -> str:
    if status != "running":
        return status
    return "running" if owner is not None and is_alive(_owners(path), owner) else "interrupted"


def _owners(path: Path) -> Path:
    return path.with_name(path.name + ".owners")
