"""API keys: a TOML file with the hash and the limits of each, which `wfdsl serve keys` writes, and what they have used.

The file is read again when it has changed, so a key that is revoked is refused at once. While the file cannot be read,
every request is refused.

What a key may spend is a row in the journal, changed in transactions: it holds for all processes on one journal, and
outlives them. A call's upper bound is taken from it before the call, and what it did not take is given back after it;
what a process that died had in flight stays charged.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import secrets
import sqlite3
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl.experiment import KeyLimits
from wfdsl.files import write_whole
from wfdsl.interpreter.budget import Budget, BudgetSpent, BudgetTracker, BudgetUsage
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import spent_by_key
from wfdsl.server.api_errors import NO_RETRY, ApiError
from wfdsl.settings import from_table, parse_toml, read_toml_file, require_table, to_table

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")  # a bare key of TOML


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what the request may use."""

    name: str = ""
    """The name of the key; empty where no keys are needed."""
    limits: KeyLimits | None = None
    """What the key may do; None: everything."""
    account: BudgetTracker | None = None
    """What the key may spend, and what all keys share; None: there is no limit."""

    def within(self, budget: Budget) -> dict[str, Any]:
        """The options of a run that has a budget of its own, within what the key may spend."""
        if self.account is None:
            return {"budget": budget}
        amounts = [usd for usd in (budget.usd, self.account.budget.usd) if usd is not None]
        return {"budget": replace(budget, usd=min(amounts, default=None)), "account": self.account}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def keys_for(host: str, path: str | None, say: Callable[[str], None]) -> ApiKeys | None:
    """The keys of a file, which an address that others reach needs; None: everyone who reaches the server is answered.

    `say` takes a line when the file cannot be read any more.

    Raises:
        UsageError: there is no file although others reach the address, or it cannot be used.
    """
    if path is None and not is_loopback(host):
        raise UsageError(f"--host {host} needs --keys FILE: others reach it, and every request costs money")
    return None if path is None else ApiKeys(path, say)


class ApiKeys:
    """The keys that are accepted, by their hashes. Keys are long and random, so a plain hash tells nothing of them."""

    def __init__(self, path: str, say: Callable[[str], None], *, clock: Callable[[], float] = time.time) -> None:
        """Read the keys of a file.

        Raises:
            UsageError: it cannot be read, or holds no key.
        """
        self._path = path
        self._say = say
        self._clock = clock
        self._version = _version(path)
        self._is_readable = True
        self._callers = _by_hash(read_keys(path))
        if not self._callers:
            raise UsageError(f"{path}: holds no key; make one with: wfdsl serve keys make NAME --keys {path}")

    @property
    def are_known(self) -> bool:
        """Whether the file can be read; it is read again if it has changed."""
        version = _version(self._path)
        if version != self._version:
            self._version = version
            try:
                self._callers = _by_hash(read_keys(self._path))
                self._is_readable = True
            except UsageError as error:
                self._is_readable = False
                self._say(f"{error}; no key is accepted until it can be read")
        return self._is_readable

    def caller(self, authorization: str | None) -> Caller:
        """Whose key a request has: a bearer token, or the password of a URL such as `http://user:KEY@host`.

        Raises:
            ApiError: it has none, or one that is not accepted; or the file cannot be read.
        """
        if not self.are_known:
            what = "the server cannot read its file of keys; ask again when that is fixed"
            raise ApiError(503, what, code="keys_unreadable", headers={"retry-after": "60"})
        key = _sent_key(authorization or "")
        found = self._callers.get(_hash(key)) if key else None
        if found is None:
            what = "the API key is not accepted" if key else "send an API key: Authorization: Bearer KEY"
            raise ApiError(401, what, code="invalid_api_key", headers=_NEEDS_KEY)
        expires = "" if found.limits is None else found.limits.expires
        if expires and datetime.fromtimestamp(self._clock(), UTC).date().isoformat() >= expires:
            raise ApiError(401, f"the API key expired on {expires}", code="api_key_expired", headers=_NEEDS_KEY)
        return found


_NEEDS_KEY: Final = {"www-authenticate": "Bearer", **NO_RETRY}


def read_keys(path: str) -> dict[str, KeyLimits]:
    """The keys of a file, by their names.

    Raises:
        UsageError: it cannot be read, or is not such a file.
    """
    tables = read_toml_file(Path(path), "file of keys")
    return {
        name: from_table(KeyLimits, require_table(table, f"{path}: {name}"), f"{path}: {name}")
        for name, table in tables.items()
    }


def make_key(path: str, name: str, limits: Mapping[str, Any]) -> str:
    """Make a key and add its hash and its limits to a file; the key, which is not kept anywhere.

    Raises:
        UsageError: the name or a limit cannot be used, or the file cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"a key's name has 1 to 64 letters, digits, - and _ (got {name!r:.80})")
    if (exists := Path(path).exists()) and name in read_keys(path):
        raise UsageError(f"{path}: there is a key {name!r} already; take another name, or revoke it first")
    key, created = f"wfdsl-{secrets.token_urlsafe(32)}", time.strftime("%Y-%m-%d", time.gmtime())
    if "" < (end := limits.get("expires", "")) <= created:
        raise UsageError(f"the key would have expired on {end} already; name a day after {created}")
    table = to_table(KeyLimits(hash=_hash(key), created=created, **limits))
    # what is empty or off is left out; a budget of 0 is neither
    lines = [f"{field} = {json.dumps(value)}\n" for field, value in table.items() if value or field == "usd"]
    before = f"{Path(path).read_text('utf-8-sig').rstrip()}\n\n".lstrip() if exists else ""
    _write(path, f"{before}[{name}]\n{''.join(lines)}")
    return key


def revoke_key(path: str, name: str) -> None:
    """Take a key out of a file.

    Raises:
        UsageError: there is no such key, or the file cannot be written.
    """
    known = read_keys(path)
    if known.pop(name, None) is None:
        raise UsageError(f"{path}: there is no key {name!r} (keys: {', '.join(known) or 'none'})")
    left = re.sub(_TABLE_OF_KEY.format(re.escape(name)), "", Path(path).read_text("utf-8-sig"))
    if parse_toml(left, path).keys() != known.keys():
        raise UsageError(f"{path}: cannot tell which lines are of {name!r}: take them out by hand")
    _write(path, left)


_TABLE_OF_KEY: Final = (
    r"""(?m)^[ \t]*\[[ "']*{}[ "']*\].*\n(?:(?:(?![ \t]*\[).*\n)*(?![ \t]*[\[#]).*=.*(?:\n|\Z))?\n*"""
)
"""What is taken out: its head, and the lines to its last value. What follows is of the next one."""


def _write(path: str, text: str) -> None:
    """Write a file that only its owner may read, in one step: a server that reads it sees all of it."""
    try:
        write_whole(Path(path), text, mode=0o600)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def _by_hash(keys: Mapping[str, KeyLimits]) -> dict[str, Caller]:
    return {limits.hash: Caller(name, limits) for name, limits in keys.items()}


def _version(path: str) -> tuple[int, ...]:
    """What changes when a file is written; empty if there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _sent_key(authorization: str) -> str:
    """The key in a request's credentials: a bearer token, or the password of HTTP's basic scheme (RFC 7617)."""
    scheme, _, sent = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return sent.strip()
    try:
        return b64decode(sent.strip(), validate=True).decode().partition(":")[2] if scheme.lower() == "basic" else ""
    except ValueError:
        return ""


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()


class KeyUsage:
    """What the keys of a server have used, in US dollars in a day or a month."""

    def __init__(
        self, journal: Journal | None, *, within: BudgetTracker | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        """`within` tracks what all keys share: each may spend its own amount within it."""
        self._within = within
        self._journal = journal
        self._clock = clock
        self._accounts: dict[tuple[str, float, float], _KeyBudget] = {}
        """By key, its amount, and the beginning of the period."""

    async def allowed(self, caller: Caller, *, also_spent: bool = False) -> Caller:
        """The caller with what its request may use. With `also_spent`, a key that has spent its budget may ask for what
        needs no call: its account refuses all calls.

        Raises:
            ApiError: its key has spent its budget; or it has a budget, and no journal keeps what is spent.
        """
        limits = caller.limits
        if limits is None or limits.usd is None:
            return replace(caller, account=self._within)
        if self._journal is None:
            what = f"the key {caller.name!r} has a budget, which the journal keeps; start the server with a journal"
            raise ApiError(503, what, code="journal_needed", headers=NO_RETRY)
        since = _begin(limits.per, self._clock())
        account = self._accounts.get((caller.name, limits.usd, since))
        if account is None:
            account = _KeyBudget(self._journal, caller.name, since, limits.usd, self._within)
            await account.open()
            account = self._accounts.setdefault((caller.name, limits.usd, since), account)
        if not also_spent and await account.row() >= limits.usd:
            when = "" if limits.per == "ever" else f" of this {limits.per}"
            what = f"the key {caller.name!r} has spent its ${limits.usd:g}{when}"
            raise ApiError(429, what, code="insufficient_quota", headers=NO_RETRY)
        return replace(caller, account=account)


class _KeyBudget(BudgetTracker):
    """What a key may spend in a period, in all processes on one journal together."""

    def __init__(self, journal: Journal, key: str, since: float, usd: float, within: BudgetTracker | None) -> None:
        super().__init__(Budget(usd=usd), within=within)
        self._journal = journal
        self._about: dict[str, Any] = {"key": key, "since": since, "limit": usd * (1 + 1e-12)}
        """The row, and what may be in it: sums of dollars are rounded."""
        self._in_flight = 0
        self._settled = asyncio.Event()

    async def open(self) -> None:
        """Make the row, with what the journal says that was spent, if it is not there."""
        key, since = self._about["key"], self._about["since"]
        spent = (await asyncio.to_thread(spent_by_key, self._journal.path, key, since)).usd

        def make(connection: sqlite3.Connection) -> None:
            connection.execute(_TABLE)
            connection.execute(_ROW, (key, since, spent))

        await self._journal.writer.do(make)

    async def row(self) -> float:
        """Dollars that all processes have spent or reserved."""
        found: float = await self._journal.writer.do(lambda of: of.execute(_READ, self._about).fetchone()[0])
        return found

    async def reserve(self, bound: BudgetUsage) -> None:
        """Take an amount from the row, or wait until calls of this process have made room for it.

        Raises:
            BudgetSpent: it does not fit, and this process has no call in flight.
            JournalFailure: the journal cannot be written.
        """
        while True:
            settled = self._settled
            if await self._draw(bound.usd):
                break
            if not self._in_flight:
                self._wake()
                limit = self.budget.usd or 0.0
                left = max(limit - await self.row(), 0.0)
                what = f"the budget of ${limit:g} has ${left:.6f} left, and this call may cost ${bound.usd:.6f}"
                raise BudgetSpent(what)
            await settled.wait()
        try:
            if self._within is not None:
                await self._within.reserve(bound)
        except BaseException:
            self._give_back(bound.usd)
            raise

    def settle(self, bound: BudgetUsage, actual: BudgetUsage) -> None:
        """Charge an amount instead of the one that was reserved."""
        if self._within is not None:
            self._within.settle(bound, actual)
        self._give_back(bound.usd - actual.usd)

    def _give_back(self, usd: float) -> None:
        self._journal.writer.do_later(lambda of: of.execute(_ADD, {**self._about, "usd": -usd}))
        self._leave()

    def _leave(self) -> None:
        self._in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        """Let those who wait for a call in flight look again."""
        self._settled.set()
        self._settled = asyncio.Event()

    async def _draw(self, usd: float) -> bool:
        """Take an amount from the row if it fits; the call is in flight also while it is drawn, so that no other one
        takes the budget for spent.
        """
        drawn = False
        self._in_flight += 1

        def draw(connection: sqlite3.Connection) -> None:
            nonlocal drawn
            asked = {**self._about, "usd": usd}
            drawn = connection.execute(f"{_ADD} AND usd + :usd <= :limit", asked).rowcount == 1

        try:
            await self._journal.writer.do(draw)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):  # it may have been drawn
                self._journal.writer.do_later(lambda of: drawn and of.execute(_ADD, {**self._about, "usd": -usd}))
            self._leave()
            raise
        if not drawn:
            self._in_flight -= 1
        return drawn


_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS key_budgets (key TEXT, since REAL, usd REAL NOT NULL, PRIMARY KEY (key, since)) STRICT"
)
_ROW: Final = "INSERT INTO key_budgets VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET usd = max(usd, excluded.usd)"
_READ: Final = "SELECT usd FROM key_budgets WHERE key = :key AND since = :since"
_ADD: Final = "UPDATE key_budgets SET usd = usd + :usd WHERE key = :key AND since = :since"


def _begin(per: str, now: float) -> float:
    """When the period began that a time is in, in seconds since 1970."""
    if per == "ever":
        return 0.0
    midnight = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return (midnight if per == "day" else midnight.replace(day=1)).timestamp()
