"""The journal: every call that was started and every reply, durable before anything uses it.

It is the cache too. A reply is found again by its key (worker, settings, messages, path) and its sample, which is the
run's id unless the caller says otherwise: identical copies of a step differ in path, the same step of another run in
sample, so a reply is used again only by the run that paid for it, or where reuse was asked for.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from wfdsl.errors import UsageError
from wfdsl.interpreter.journal_file import default_path, failure
from wfdsl.interpreter.journal_writer import JournalWriter, Refusal
from wfdsl.interpreter.owner import Owner, is_alive
from wfdsl.interpreter.record import NO_CHARGE, Charge, LostCall
from wfdsl.protocols import Reply, Usage

if TYPE_CHECKING:
    import sqlite3
    from types import TracebackType

    from wfdsl.interpreter.plan import Plan
    from wfdsl.protocols import Call

Key: TypeAlias = str


@dataclass(frozen=True, slots=True)
class Claimed:
    """What is known of a run when a process takes it on."""

    lost: tuple[LostCall, ...] = ()
    """Calls that were in flight when an earlier process ended."""
    spent: Charge = NO_CHARGE
    """What has been charged so far, lost calls at their bounds."""
    replies: dict[Key, Reply] = field(default_factory=dict)
    """What workers have answered."""


class Attempt(NamedTuple):
    """One call to one worker, as the journal keeps it."""

    run_id: str
    key: Key
    call: Call
    worker: str
    """The worker's name."""
    bound: Charge
    """The most that it may be charged."""


class Journal:
    """A journal that is open in this process. Close it, or use it in a `with` block."""

    def __init__(self, path: str | Path | None = None) -> None:
        """Open the journal at a path, or at the usual one; make it if it is not there.

        Raises:
            JournalFailure: it cannot be opened or written.
        """
        self.path = default_path() if path is None else Path(path)
        self._writer = JournalWriter(self.path)
        self._owners = self.path.with_name(self.path.name + ".owners")
        try:
            self._owner = Owner(self._owners)
        except OSError as error:
            self._writer.close()
            raise failure(self.path, error) from error
        self._claimed: set[str] = set()

    def close(self) -> None:
        """Write what is left and let go."""
        self._writer.close()
        self._owner.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def claim(self, run_id: str, plan: Plan) -> Claimed:
        """Take a run on, a new one or one that an earlier process left.

        Raises:
            UsageError: another process, or another task of this one, is at work on it.
        """
        if run_id in self._claimed:
            raise _busy(run_id, "this process")
        self._claimed.add(run_id)
        try:
            claimed: Claimed = await self._writer.do(lambda connection: self._claim(connection, run_id, plan))
        except BaseException:
            self._claimed.discard(run_id)
            raise
        return claimed

    def release(self, run_id: str, status: str, record: str | None) -> None:
        """Let go of a run, and keep its record."""
        self._claimed.discard(run_id)

        def update(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE calls SET status = 'lost' WHERE run = ? AND status = 'started'", (run_id,))
            connection.execute(
                "UPDATE runs SET status = ?, record = coalesce(?, record), owner = NULL WHERE id = ?",
                (status, record, run_id),
            )

        self._writer.do_later(update)

    async def find(self, key: Key, sample: str | None) -> Reply | None:
        """The reply of a key and a sample, or of any sample if that is None."""

        def look(connection: sqlite3.Connection) -> Reply | None:
            return _find(connection, key, sample)

        found: Reply | None = await self._writer.do(look)
        return found

    async def begin(self, attempt: Attempt, at: float) -> int:
        """Note that a call is about to be made; gives the number of its row."""
        call = attempt.call
        asked = json.dumps({"messages": call.messages, "settings": dict(call.settings)})
        path = json.dumps(call.path)
        row = (attempt.run_id, attempt.key, call.sample, path, attempt.worker, at, asked, *attempt.bound)

        def insert(connection: sqlite3.Connection) -> int | None:
            return connection.execute(_INSERT, row).lastrowid

        number: int = await self._writer.do(insert)
        return number

    async def finish(self, row: int, attempt: Attempt, reply: Reply, *, charge: Charge, at: float) -> Reply:
        """Keep a reply. Gives the one to use: an earlier reply of the same key and sample, if there is one."""
        text = reply_to_json(reply)
        usable = reply.finish in ("stop", "length", "refusal")

        def update(connection: sqlite3.Connection) -> Reply | None:
            earlier = _find(connection, attempt.key, attempt.call.sample) if usable else None
            status = "rejected" if not usable else "finished" if earlier is None else "duplicate"
            connection.execute(_UPDATE, (status, at, text, "", *charge, row))
            return earlier

        earlier: Reply | None = await self._writer.do(update)
        return reply if earlier is None else earlier

    def fail(self, row: int, error: str, charge: Charge, at: float) -> None:
        """Note that a call failed."""
        self._writer.do_later(lambda connection: connection.execute(_UPDATE, ("failed", at, None, error, *charge, row)))

    def lose(self, row: int, at: float) -> None:
        """Note that nobody will know how a call ended; it stays charged at its bound."""
        self._writer.do_later(
            lambda connection: connection.execute(
                "UPDATE calls SET status = 'lost', finished = ? WHERE id = ? AND status = 'started'", (at, row)
            )
        )

    def _claim(self, connection: sqlite3.Connection, run_id: str, plan: Plan) -> Claimed:
        row = connection.execute("SELECT owner FROM runs WHERE id = ?", (run_id,)).fetchone()
        if row is None:
            connection.execute(
                "INSERT INTO runs (id, created, status, owner, title, plan) VALUES (?, ?, 'running', ?, ?, ?)",
                (run_id, time.time(), self._owner.name, plan.title, plan.to_json()),
            )
            return Claimed()
        owner = row[0]
        if owner is not None and owner != self._owner.name and is_alive(self._owners, owner):
            raise Refusal(_busy(run_id, f"process {owner.partition('-')[0]}"))
        connection.execute("UPDATE runs SET owner = ?, status = 'running' WHERE id = ?", (self._owner.name, run_id))
        connection.execute("UPDATE calls SET status = 'lost' WHERE run = ? AND status = 'started'", (run_id,))
        return _history(connection, run_id)


def reply_to_json(reply: Reply) -> str:
    """A reply as JSON text."""
    return json.dumps(
        {
            "text": reply.text,
            "finish": reply.finish,
            "usage": asdict(reply.usage),
            "model": reply.model,
            "paid_usd": reply.paid_usd,
            "list_usd": reply.list_usd,
            "retries": reply.retries,
        }
    )


def reply_from_json(text: str) -> Reply:
    """The inverse of `reply_to_json`."""
    plain: dict[str, Any] = json.loads(text)
    plain["usage"] = Usage(**plain["usage"])
    return Reply(**plain)


_INSERT = (
    "INSERT INTO calls (run, key, sample, path, worker, started, call, calls, tokens, usd, status) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'started')"
)
_UPDATE = "UPDATE calls SET status = ?, finished = ?, reply = ?, error = ?, calls = ?, tokens = ?, usd = ? WHERE id = ?"


def _find(connection: sqlite3.Connection, key: Key, sample: str | None) -> Reply | None:
    where = "key = ? AND status = 'finished'" + ("" if sample is None else " AND sample = ?")
    values = (key,) if sample is None else (key, sample)
    row = connection.execute(f"SELECT reply FROM calls WHERE {where} ORDER BY id LIMIT 1", values).fetchone()
    return None if row is None else reply_from_json(row[0])


def _history(connection: sqlite3.Connection, run_id: str) -> Claimed:
    rows = connection.execute(
        "SELECT path, worker, started, tokens, usd FROM calls WHERE run = ? AND status = 'lost' ORDER BY id", (run_id,)
    ).fetchall()
    lost = tuple(LostCall(tuple(json.loads(path)), *rest) for path, *rest in rows)
    calls, tokens, usd = connection.execute(
        "SELECT coalesce(sum(calls), 0), coalesce(sum(tokens), 0), coalesce(sum(usd), 0.0) FROM calls WHERE run = ?",
        (run_id,),
    ).fetchone()
    replies = connection.execute(
        "SELECT key, reply FROM calls WHERE run = ? AND status = 'finished' ORDER BY id DESC", (run_id,)
    ).fetchall()
    return Claimed(lost, Charge(calls, tokens, usd), {key: reply_from_json(reply) for key, reply in replies})


def _busy(run_id: str, who: str) -> UsageError:
    return UsageError(f"run {run_id} is being worked on by {who}; wait until that is over, or stop it")
