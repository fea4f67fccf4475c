"""The journal: every call that was started and every reply, durable before anything uses it.

It is the cache too. A reply is found by its key (worker, settings, messages, path) and its sample id, which is the
run's id unless the caller gives another. Identical copies of a step differ in path, the same step of another run in
sample id. So a reply is used again only by runs of the same sample.
"""

from __future__ import annotations

import json
import pathlib
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from lzma import LZMAError
from typing import Any, NamedTuple, TypeAlias

from wfdsl.errors import JournalFailure, RunInUse, UsageError
from wfdsl.interpreter.budget import NOTHING_SPENT, BudgetUsage
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.events import Path
from wfdsl.interpreter.journal_file import JournalWriter, Owner, compressed, default_path, failure, is_alive
from wfdsl.interpreter.record import LostCall, Run, adapter_of, as_unicode
from wfdsl.interpreter.tools import IssuedCall
from wfdsl.protocols import Call, Reply, ToolCall, Usage
from wfdsl.settings import problem_in

Key: TypeAlias = str
"""What makes two calls the same, the sample id apart: `WorkerProfile.key`."""
Charge: TypeAlias = tuple[int, int, float | None]
"""Calls, tokens and US dollars that a row is charged; None where no one knows the price."""


class Attempt(NamedTuple):
    """One attempt of one call, or the call of a tool, as the journal has it."""

    path: Path
    worker: str
    """The worker's name."""
    status: str
    """`started`, `finished`, `failed`, `rejected` (a reply that cannot be used), `duplicate` or `lost`; of the call of
    a tool `called` or `answered`.
    """
    started: float
    finished: float | None
    error: str
    reply: Reply | None = None
    charge: BudgetUsage = NOTHING_SPENT
    key: Key = ""

    @property
    def answer(self) -> str | None:
        """What the worker answered, if that is the reply of its step."""
        reply = self.reply if self.status == "finished" else None
        return None if reply is None or reply.tool_calls else reply.text

    @property
    def lost(self) -> LostCall:
        """What is known of it if its result is not."""
        return LostCall(self.path, self.worker, self.started, self.charge.tokens, self.charge.usd)


class Journal:
    """A journal that is open in this process. Close it, or use it in a `with` block."""

    def __init__(self, path: str | pathlib.Path | None = None) -> None:
        """Open the journal at a path, or at the default one; create it if it does not exist.

        Raises:
            JournalFailure: it cannot be opened or written.
        """
        self.path = default_path() if path is None else pathlib.Path(path)
        self.writer = JournalWriter(self.path)
        """Runs operations on the file, those of other modules too."""
        try:
            self._owner = Owner(self.path)
        except OSError as error:
            self.writer.close()
            raise failure(self.path, error) from error
        self._claimed: set[str] = set()

    def close(self) -> None:
        """Write what is left, and close the file."""
        self.writer.close()
        self._owner.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def claim(self, run_id: str, request: RunRequest) -> RunJournal:
        """Claim a run for this process: a new one, or one that an earlier process left.

        Raises:
            RunInUse: another process, or another task of this one, is working on it.
            UsageError: the run was asked something else.
        """
        if run_id in self._claimed:
            raise _busy(run_id, "this process")
        self._claimed.add(run_id)
        found = RunJournal(self, run_id, request)
        try:
            asked = replace(request, config=replace(request.config, ask_again=False)).to_json()
            await self.writer.do(lambda connection: self._claim(connection, found, asked))
        except BaseException:
            self._claimed.discard(run_id)
            raise
        return found

    def release(self, run_id: str, status: str, run: Run | None, *, refused: bool = False) -> None:
        """Give up the claim on a run, and keep its record; forget a new run that was refused before its first call."""
        self._claimed.discard(run_id)

        def update(connection: sqlite3.Connection) -> None:
            connection.execute(_LOSE, (run_id,))
            record = None if run is None else compressed(run.to_json())
            connection.execute(
                "UPDATE runs SET status = ?, record = coalesce(?, record), owner = NULL WHERE id = ?",
                (status, record, run_id),
            )
            if refused:
                asked = "SELECT 1 FROM calls WHERE run = number"
                connection.execute(f"DELETE FROM runs WHERE id = ? AND NOT EXISTS ({asked})", (run_id,))

        self.writer.do_later(update)

    async def origin(self, run_id: str) -> Mapping[str, str] | None:
        """Where a run came from, in its caller's words; None if there is no such run."""
        query = "SELECT json_extract(request, '$.origin') FROM runs WHERE id = ?"
        row = await self.writer.do(lambda connection: connection.execute(query, (run_id,)).fetchone())
        return None if row is None else dict(json.loads(row[0]))

    async def add_results(self, results: Mapping[str, str]) -> None:
        """Keep the results of tool calls, by their ids; one that has a result keeps it. Ids that are not known, and
        calls of other kinds, change nothing.
        """
        now = time.time()
        rows = [(now, reply_to_json(Reply(as_unicode(text))), call_id) for call_id, text in results.items()]
        await self.writer.do(lambda connection: connection.executemany(_ADD_RESULT, rows).rowcount)

    def find(self, connection: sqlite3.Connection, key: Key, sample_id: str) -> Reply | None:
        """The reply of a key and a sample id; runs in the writer."""
        row = connection.execute(_FIND, (key, sample_id)).fetchone()
        if row is None:
            return None
        with decoding(self.path, row[0]):
            return _reply_from_json(row[1])

    def _claim(self, connection: sqlite3.Connection, found: RunJournal, asked: str) -> None:
        run_id, request = found.run_id, found.request
        row = connection.execute("SELECT owner, request FROM runs WHERE id = ?", (run_id,)).fetchone()
        if row is None:
            connection.execute(
                "INSERT INTO runs (id, created, status, owner, title, request) VALUES (?, ?, 'running', ?, ?, ?)",
                (run_id, time.time(), self._owner.name, request.title, asked),
            )
            found.is_new = True
            return
        owner, before = row
        if owner != self._owner.name and is_alive(self.path, owner):
            raise _busy(run_id, f"process {owner.partition('-')[0]}")
        with decoding(self.path, run_id):
            changes = [] if before == asked else RunRequest.from_json(before).changes(request)
        if changes and not request.config.ask_again:
            raise UsageError(
                f"run {run_id} was asked something else ({', '.join(changes)}): give another run id, ask what it "
                "was asked, or pay for what does not fit again, with --ask-again (ask_again=True)"
            )
        connection.execute(
            "UPDATE runs SET owner = ?, status = 'running', request = ? WHERE id = ?",
            (self._owner.name, asked if changes else before, run_id),
        )
        connection.execute(_LOSE, (run_id,))
        found.read(connection)


@dataclass(slots=True)
class RunJournal:
    """The journal as one run uses it, while this process works on the run."""

    journal: Journal
    run_id: str
    request: RunRequest
    is_new: bool = False
    """Whether the journal did not have the run before."""
    spent: BudgetUsage = NOTHING_SPENT
    """What has been charged by earlier processes, lost calls at their bounds."""
    lost: tuple[LostCall, ...] = ()
    """Calls that were in flight when an earlier process ended."""
    replies: dict[Key, Reply] = field(default_factory=dict)
    """What this run's earlier processes were answered."""
    unused: dict[Path, set[Key]] = field(default_factory=dict)
    """The keys of those replies that no call has asked for yet, by the calls' paths."""
    tool_calls: dict[Path, tuple[IssuedCall, ...]] = field(default_factory=dict)
    """The tools that this run's workers have called, in order, by the paths of their steps."""

    def read(self, connection: sqlite3.Connection) -> None:
        """Read what earlier processes have left.

        Raises:
            JournalFailure: it is damaged.
        """
        for each in attempts_in(connection, self.journal.path, self.run_id):
            path, key, reply = each.path, each.key, each.reply
            self.spent = self.spent.plus(each.charge)
            if each.status == "lost":
                self.lost = (*self.lost, each.lost)
            elif each.status == "finished" and reply is not None:
                self.replies.setdefault(key, reply)
                self.unused.setdefault(path, set()).add(key)
            elif each.status in TOOL_CALLS:
                issued = IssuedCall(key, None if reply is None else reply.text)
                self.tool_calls[path] = (*self.tool_calls.get(path, ()), issued)

    async def find(self, key: Key, call: Call) -> Reply | None:
        """A reply that this run, or another one of the same sample, has for a key."""
        found = key if key in self.replies else self._complete(key, call)
        if found is not None:
            self.unused[call.path].discard(found)
            return self.replies[found]
        if self.request.sample_id == self.run_id:
            return None
        journal = self.journal
        other: Reply | None = await journal.writer.do(lambda connection: journal.find(connection, key, call.sample_id))
        return other

    def _complete(self, key: Key, call: Call) -> Key | None:
        """The key of a reply that has ended by itself, to the same request under a smaller limit of tokens."""
        request, limit = _parts(key)
        for other in self.unused.get(call.path, ()):
            same, before = _parts(other)
            if same == request and before <= limit and self.replies[other].finish == "stop":
                return other
        return None

    def require_fit(self, call: Call, worker: str) -> None:
        """Refuse to pay for a call again whose reply was kept, but for another request.

        Raises:
            UsageError: there is such a reply.
        """
        if not self.request.config.ask_again and self.unused.get(call.path):
            where = "/".join(map(str, call.path))
            raise UsageError(
                f"step {where}, worker {worker}: the journal has its reply, but to another request: the pool, an "
                "option or a prompt is not as it was; change it back, or pay again for what does not fit, with "
                "--ask-again (ask_again=True)"
            )

    async def begin(self, key: Key, call: Call, worker: str, charge: Charge, at: float) -> int:
        """Note that a worker is about to be asked, and the most that it may cost; gives the number of the row."""
        row = (self.run_id, key, call.sample_id, json.dumps(call.path), worker, at, *charge, "started")
        number: int = await self.journal.writer.do(lambda connection: connection.execute(_INSERT, row).lastrowid)
        return number

    async def finish(
        self, row: int, key: Key, call: Call, reply: Reply, charge: Charge, *, at: float, usable: bool
    ) -> Reply:
        """Keep a reply. Gives the one to use: an earlier reply of the same key and sample, if there is one."""
        text, journal = reply_to_json(reply), self.journal

        def update(connection: sqlite3.Connection) -> Reply | None:
            earlier = journal.find(connection, key, call.sample_id) if usable else None
            status = "rejected" if not usable else "finished" if earlier is None else "duplicate"
            connection.execute(_UPDATE, (status, at, text, "", *charge, row))
            return earlier

        earlier: Reply | None = await journal.writer.do(update)
        return reply if earlier is None else earlier

    def fail(self, row: int, status: str, charge: Charge, at: float, error: str = "") -> None:
        """Note that a call failed, or that its result is lost."""
        values = (status, at, None, as_unicode(error), *charge, row)
        self.journal.writer.do_later(lambda connection: connection.execute(_UPDATE, values))

    async def issue(self, path: Path, calls: Sequence[ToolCall], at: float) -> tuple[IssuedCall, ...]:
        """Keep tool calls, and give each an id."""
        issued = tuple(IssuedCall(f"call_{secrets.token_hex(_ID_BYTES)}", None) for _ in calls)
        rows = [
            (self.run_id, each.id, "", json.dumps(path), call.name, at, 0, 0, 0.0, "called")
            for call, each in zip(calls, issued, strict=True)
        ]
        await self.journal.writer.do(lambda connection: connection.executemany(_INSERT, rows).rowcount)
        return issued


def _parts(key: Key) -> tuple[str, float]:
    """A key without the limit of tokens, and that limit."""
    request, _, limit = key.partition("-")
    return request, float(limit or "inf")


def attempts_in(connection: sqlite3.Connection, path: pathlib.Path, run_id: str) -> list[Attempt]:
    """Every attempt of a run, and every call of a tool, in the order in which they began.

    Raises:
        JournalFailure: one is damaged.
    """
    rows = connection.execute(_ATTEMPTS, (run_id,)).fetchall()
    with decoding(path, run_id):
        return [
            Attempt(
                tuple(json.loads(steps)),
                worker,
                status,
                started,
                finished,
                error,
                _reply_from_json(reply or "") if status == "finished" or reply else None,
                BudgetUsage(*charge),
                key,
            )
            for key, steps, worker, status, started, finished, error, reply, *charge in rows
        ]


def reply_to_json(reply: Reply) -> str:
    """A reply as JSON text."""
    plain = adapter_of(Reply).dump_python(reply, mode="json", exclude_defaults=True, warnings=False)
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(plain)  # escapes keep a lone surrogate, which the next step may have been shown
    return text


def _reply_from_json(text: str) -> Reply:
    """The inverse of `reply_to_json`.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: it is damaged.
    """
    plain: dict[str, Any] = json.loads(text)
    if "tool_calls" in plain:
        plain["tool_calls"] = tuple(ToolCall(*call) for call in plain["tool_calls"])
    return Reply(**{**plain, "usage": Usage(**plain.get("usage", {}))})


@contextmanager
def decoding(path: pathlib.Path, run_id: str) -> Iterator[None]:
    """What makes a row unreadable is a `JournalFailure` that names the run."""
    try:
        yield
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, UsageError, LZMAError, EOFError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        if isinstance(error, ValueError) and hasattr(error, "errors"):  # pydantic is imported for records only
            why = problem_in(error)
        raise JournalFailure(
            f"run {run_id} in the journal {path} is damaged: {why}; remove it with: wfdsl runs rm {run_id}, or bring "
            "the journal back from a copy"
        ) from error


TOOL_CALLS = ("called", "answered")
OF_RUN = "run = (SELECT number FROM runs WHERE id = ?)"
_ATTEMPTS = (
    "SELECT key, path, worker, status, started, finished, error, reply, calls, tokens, coalesce(usd, 0.0) FROM calls "
    f"WHERE {OF_RUN} ORDER BY id"
)
_LOSE = f"UPDATE calls SET status = 'lost' WHERE {OF_RUN} AND status = 'started'"
_FIND = (
    "SELECT runs.id, reply FROM calls JOIN runs ON number = run "
    "WHERE key = ? AND calls.status = 'finished' AND sample = ? ORDER BY calls.id LIMIT 1"
)
_ID_BYTES = 12
_ADD_RESULT = "UPDATE calls SET status = 'answered', finished = ?, reply = ? WHERE key = ? AND status = 'called'"
_INSERT = (
    "INSERT INTO calls (run, key, sample, path, worker, started, calls, tokens, usd, status) "
    "VALUES ((SELECT number FROM runs WHERE id = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_UPDATE = "UPDATE calls SET status = ?, finished = ?, reply = ?, error = ?, calls = ?, tokens = ?, usd = ? WHERE id = ?"


def _busy(run_id: str, who: str) -> RunInUse:
    return RunInUse(f"run {run_id} is being worked on by {who}; wait until it has finished, or stop it")
