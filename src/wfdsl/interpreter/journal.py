"""The journal: every call that was started and every reply, durable before anything uses it.

It is the cache too. A reply is found by its key (worker, settings, messages, path) and its sample id, which is the
run's id unless the caller gives another. Identical copies of a step differ in path, the same step of another run in
sample id. So a reply is used again only by runs of the same sample.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from lzma import LZMAError
from typing import Any, NamedTuple, TypeAlias

from wfdsl.errors import JournalFailure, RunInUse, UsageError
from wfdsl.interpreter.budget import NOTHING_SPENT, BudgetUsage
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.events import Path
from wfdsl.interpreter.journal_file import JournalWriter, Owner, compressed, default_path, failure, is_alive
from wfdsl.interpreter.record import LostCall, Run, as_unicode
from wfdsl.interpreter.tools import IssuedCall
from wfdsl.protocols import Call, Reply, ToolCall, Usage

Key: TypeAlias = str


class CallEntry(NamedTuple):
    """One attempt of one call, as the journal keeps it."""

    run_id: str
    key: Key
    call: Call
    worker: str
    """The worker's name."""
    bound: BudgetUsage
    """The most that it may be charged."""
    priced: bool
    """Whether the worker's price is known."""

    def charge(self, usage: BudgetUsage, *, paid_usd: float | None = None) -> tuple[int, int, float | None]:
        """What a row says of a charge; without dollars where no one knows them."""
        is_known = self.priced or paid_usd is not None or not usage.tokens
        return usage.calls, usage.tokens, usage.usd if is_known else None


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
        self._owners = self.path.with_name(self.path.name + ".owners")
        try:
            self._owner = Owner(self._owners)
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

    async def find(self, key: Key, sample_id: str) -> Reply | None:
        """The reply of a key and a sample id."""
        found: Reply | None = await self.writer.do(lambda connection: self._find(connection, key, sample_id))
        return found

    async def origin(self, run_id: str) -> Mapping[str, str] | None:
        """Where a run came from, in its caller's words; None if there is no such run."""
        query = "SELECT json_extract(request, '$.origin') FROM runs WHERE id = ?"
        row = await self.writer.do(lambda connection: connection.execute(query, (run_id,)).fetchone())
        return None if row is None else dict(json.loads(row[0]))

    async def begin(self, entry: CallEntry, at: float) -> int:
        """Note that a call is about to be made; gives the number of its row."""
        call = entry.call
        about = (entry.run_id, entry.key, call.sample_id, json.dumps(call.path), entry.worker)
        row = (*about, at, *entry.charge(entry.bound), "started")

        def insert(connection: sqlite3.Connection) -> int | None:
            return connection.execute(_INSERT, row).lastrowid

        number: int = await self.writer.do(insert)
        return number

    async def finish(self, row: int, entry: CallEntry, reply: Reply, *, usage: BudgetUsage, at: float) -> Reply:
        """Keep a reply. Gives the one to use: an earlier reply of the same key and sample, if there is one."""
        text = reply_to_json(reply)
        charge = entry.charge(usage, paid_usd=reply.paid_usd)
        usable = reply.finish in ("stop", "length", "refusal") or bool(reply.tool_calls)

        def update(connection: sqlite3.Connection) -> Reply | None:
            earlier = self._find(connection, entry.key, entry.call.sample_id) if usable else None
            status = "rejected" if not usable else "finished" if earlier is None else "duplicate"
            connection.execute(_UPDATE, (status, at, text, "", *charge, row))
            return earlier

        earlier: Reply | None = await self.writer.do(update)
        return reply if earlier is None else earlier

    def fail(self, row: int, entry: CallEntry, error: str, usage: BudgetUsage, at: float) -> None:
        """Note that a call failed."""
        charge = entry.charge(usage)
        self.writer.do_later(
            lambda connection: connection.execute(_UPDATE, ("failed", at, None, as_unicode(error), *charge, row))
        )

    def lose(self, row: int, at: float) -> None:
        """Note that a call's result is lost; it stays charged at its bound."""
        self.writer.do_later(
            lambda connection: connection.execute(
                "UPDATE calls SET status = 'lost', finished = ? WHERE id = ? AND status = 'started'", (at, row)
            )
        )

    async def issue(self, run_id: str, path: Path, calls: Sequence[ToolCall], at: float) -> tuple[IssuedCall, ...]:
        """Keep tool calls, and give each an id."""
        issued = tuple(IssuedCall(f"call_{secrets.token_hex(_ID_BYTES)}", None) for _ in calls)
        rows = [
            (run_id, each.id, "", json.dumps(path), call.name, at, 0, 0, 0.0, "called")
            for call, each in zip(calls, issued, strict=True)
        ]
        await self.writer.do(lambda connection: connection.executemany(_INSERT, rows).rowcount)
        return issued

    async def add_results(self, results: Mapping[str, str]) -> None:
        """Keep the results of tool calls, by their ids; one that has a result keeps it. Ids that are not known, and
        calls of other kinds, change nothing.
        """
        now = time.time()
        rows = [(now, reply_to_json(Reply(as_unicode(text))), call_id) for call_id, text in results.items()]
        await self.writer.do(lambda connection: connection.executemany(_ADD_RESULT, rows).rowcount)

    def _find(self, connection: sqlite3.Connection, key: Key, sample_id: str) -> Reply | None:
        row = connection.execute(_FIND, (key, sample_id)).fetchone()
        if row is None:
            return None
        with decoding(self.path, row[0]):
            return reply_from_json(row[1])

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
        if owner is not None and owner != self._owner.name and is_alive(self._owners, owner):
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
        with decoding(self.path, run_id):
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
        """Read what earlier processes have left."""
        query = (
            "SELECT path, key, worker, status, started, reply, calls, tokens, coalesce(usd, 0.0) FROM calls "
            f"WHERE {OF_RUN} ORDER BY id DESC"
        )
        for steps, key, worker, status, started, kept, *charge in connection.execute(query, (self.run_id,)):
            path = tuple(json.loads(steps))
            self.spent = self.spent.plus(BudgetUsage(*charge))
            if status == "lost":
                self.lost = (LostCall(path, worker, started, *charge[1:]), *self.lost)
            elif status == "finished":
                self.replies[key] = reply_from_json(kept)
                self.unused.setdefault(path, set()).add(key)
            elif status in ("called", "answered"):
                result = None if kept is None else reply_from_json(kept).text
                self.tool_calls[path] = (IssuedCall(key, result), *self.tool_calls.get(path, ()))

    async def find(self, key: Key, call: Call) -> Reply | None:
        """A reply that this run, or another one of the same sample, has for a key."""
        found = key if key in self.replies else self._complete(key, call)
        if found is not None:
            self.unused[call.path].discard(found)
            return self.replies[found]
        return await self.journal.find(key, call.sample_id) if self.request.sample_id != self.run_id else None

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


def key_of(fingerprint: str, call: Call, max_tokens: int | None) -> Key:
    """What makes two calls the same, the sample id apart: the worker's fingerprint, the request, and the most tokens of
    a reply, which are the last part, since a reply that was not cut is also one under a larger limit.
    """
    settings = {
        name: value for name, value in call.settings.items() if name != "tool_choice"
    }  # each request has its own
    parts = [fingerprint, settings, call.messages, call.path]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:_KEY_DIGITS]
    return digest if max_tokens is None else f"{digest}-{max_tokens}"


def _parts(key: Key) -> tuple[str, float]:
    """A key without the limit of tokens, and that limit."""
    request, _, limit = key.partition("-")
    return request, float(limit or "inf")


def reply_to_json(reply: Reply) -> str:
    """A reply as JSON text."""
    kept = {each.name: getattr(reply, each.name) for each in fields(Reply)}
    plain = {name: value for name, value in kept.items() if value != getattr(_REPLY, name)}
    plain |= {"text": reply.text}
    if "usage" in plain:
        plain["usage"] = {name: count for name, count in asdict(reply.usage).items() if count}
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(plain)  # escapes keep a lone surrogate, which the next step may have been shown
    return text


def reply_from_json(text: str) -> Reply:
    """The inverse of `reply_to_json`.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: it is damaged.
    """
    plain: dict[str, Any] = json.loads(text)
    if "tool_calls" in plain:
        plain["tool_calls"] = tuple(ToolCall(*call) for call in plain["tool_calls"])
    return Reply(**{**plain, "usage": Usage(**plain.get("usage", {}))})


_REPLY = Reply("")


@contextmanager
def decoding(path: pathlib.Path, run_id: str) -> Iterator[None]:
    """What makes a row unreadable is a `JournalFailure` that names the run."""
    try:
        yield
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, UsageError, LZMAError, EOFError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise JournalFailure(
            f"run {run_id} in the journal {path} is damaged: {why}; remove it with: wfdsl runs rm {run_id}, or bring "
            "the journal back from a copy"
        ) from error


OF_RUN = "run = (SELECT number FROM runs WHERE id = ?)"
_LOSE = f"UPDATE calls SET status = 'lost' WHERE {OF_RUN} AND status = 'started'"
_FIND = (
    "SELECT runs.id, reply FROM calls JOIN runs ON number = run "
    "WHERE key = ? AND calls.status = 'finished' AND sample = ? ORDER BY calls.id LIMIT 1"
)
_KEY_DIGITS = 32
_ID_BYTES = 12
_ADD_RESULT = "UPDATE calls SET status = 'answered', finished = ?, reply = ? WHERE key = ? AND status = 'called'"
_INSERT = (
    "INSERT INTO calls (run, key, sample, path, worker, started, calls, tokens, usd, status) "
    "VALUES ((SELECT number FROM runs WHERE id = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_UPDATE = "UPDATE calls SET status = ?, finished = ?, reply = ?, error = ?, calls = ?, tokens = ?, usd = ? WHERE id = ?"


def _busy(run_id: str, who: str) -> RunInUse:
    return RunInUse(f"run {run_id} is being worked on by {who}; wait until it has finished, or stop it")
