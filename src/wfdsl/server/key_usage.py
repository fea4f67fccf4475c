"""What API keys have used: how many requests in the last minute, and how many dollars in a day or a month."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from wfdsl.interpreter.budget import NOTHING_SPENT, Budget, BudgetTracker
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import spent_by_key
from wfdsl.server.api_errors import NO_RETRY, ApiError
from wfdsl.server.api_keys import Caller

_MINUTE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one request may use."""

    key: str = ""
    """The name of its key; empty where no keys are needed."""
    without: tuple[str, ...] = ()
    """Names or tags of workers that it is never sent to."""
    models: tuple[str, ...] = ()
    """The models that it may name; empty: all of them."""
    account: BudgetTracker | None = None
    """What its key may spend, and what all keys share; None: there is no limit."""

    def within(self, budget: Budget) -> dict[str, Any]:
        """The options of a run that has a budget of its own, within what the key may spend."""
        if self.account is None:
            return {"budget": budget}
        amounts = [usd for usd in (budget.usd, self.account.budget.usd) if usd is not None]
        return {"budget": replace(budget, usd=min(amounts, default=None)), "account": self.account}


class _Account(NamedTuple):
    since: float
    tracker: BudgetTracker


class KeyUsage:
    """What the keys of a server have used. Dollars are those of the journal, so they outlive the server."""

    def __init__(
        self,
        journal: Journal | None,
        *,
        within: BudgetTracker | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Without a journal, only what was spent since the server started counts. `within` tracks what all keys share:
        each may spend its own amount within it.
        """
        self._within = within
        self._journal = journal
        self._clock = clock
        self._requests: defaultdict[str, deque[float]] = defaultdict(deque)
        """When the requests of the last minute came."""
        self._accounts: dict[str, _Account] = {}
        self._opening = asyncio.Lock()

    async def allowance(self, caller: Caller, *, also_spent: bool = False) -> Allowance:
        """What a request may use; the request counts from now on. With `also_spent`, a key that has spent its budget
        may ask for what needs no call: its account refuses all calls.

        Raises:
            ApiError: its key has spent its budget, or has sent too many requests.
        """
        limits = caller.limits
        if limits is None:
            return Allowance(caller.name, account=self._within)
        if limits.requests_per_minute is not None:
            self._count(caller.name, limits.requests_per_minute)
        account = self._within
        if limits.usd is not None:
            account = await self._account(caller.name, limits.usd, limits.per)
            if account.spent.usd >= limits.usd and not also_spent:
                raise _spent(caller.name, limits.usd, limits.per)
        return Allowance(caller.name, limits.without, limits.models, account)

    def _count(self, key: str, limit: int) -> None:
        now, sent = self._clock(), self._requests[key]
        while sent and sent[0] <= now - _MINUTE_S:
            sent.popleft()
        if len(sent) >= limit:
            wait_s = max(1, round(sent[0] + _MINUTE_S - now))
            raise ApiError(
                429,
                f"the key {key!r} may send {limit} requests per minute; try again in {wait_s}s",
                code="rate_limit_exceeded",
                headers={"retry-after": str(wait_s)},
            )
        sent.append(now)

    async def _account(self, key: str, usd: float, per: str) -> BudgetTracker:
        since = _begin(per, self._clock())
        async with self._opening:
            known = self._accounts.get(key)
            if known is None or known.since != since or known.tracker.budget.usd != usd:
                known = self._accounts[key] = await self._open(key, usd, since, known)
        return known.tracker

    async def _open(self, key: str, usd: float, since: float, before: _Account | None) -> _Account:
        if self._journal is not None:
            spent = await asyncio.to_thread(spent_by_key, self._journal.path, key, since)
        else:
            spent = before.tracker.spent if before is not None and before.since == since else NOTHING_SPENT
        return _Account(since, BudgetTracker(Budget(usd=usd), spent, within=self._within))


def _spent(key: str, usd: float, per: str) -> ApiError:
    when = "" if per == "ever" else f" of this {per}"
    return ApiError(429, f"the key {key!r} has spent its ${usd:g}{when}", code="insufficient_quota", headers=NO_RETRY)


def _begin(per: str, now: float) -> float:
    """When the period began that a time is in, in seconds since 1970."""
    if per == "ever":
        return 0.0
    midnight = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return (midnight if per == "day" else midnight.replace(day=1)).timestamp()
