"""Leases as the server gives them: calls, rate and money for other processes, under the limits of its own calls.

A lease reserves the upper bound of one call. It ends when its holder says what the call was charged. A holder that is
not heard of for as long as its leases are given for has died: a call that it may have begun stays charged at its bound
and is listed as lost, and everything else comes back. Time is this process's steady clock, so no clock needs to agree
with another. Leases are kept in the journal, so that they hold after a restart of the server, too.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from wfdsl.errors import JournalFailure
from wfdsl.interpreter.budget import NOTHING_SPENT, BudgetSpent, BudgetTracker, BudgetUsage
from wfdsl.interpreter.config import LONGEST_WAIT_S
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_leases import keep_leases, note_leases, open_leases
from wfdsl.interpreter.limits import Taken, WorkerLimits
from wfdsl.server.api_errors import NO_RETRY, ApiError
from wfdsl.server.key_usage import Allowance

LEASE_S: Final = 30.0
"""How long a lease is given for, unless its holder asks for less or is heard of again. Our choice."""
WAIT_S: Final = 20.0
"""How long a request waits for its first lease. Our choice: proxies cut silent connections after 60 s."""
_EVERYTHING: Final = Allowance()
_OVERLOADED: Final = {429, 529}


@dataclass(slots=True)
class Lease:
    """One call that a holder may make."""

    holder: str
    worker: str
    bound: BudgetUsage
    began: float
    """When it was given, by the event loop's clock."""
    begun: bool
    """Whether the call may have been made."""
    budget: BudgetTracker
    """What it has been reserved of."""
    taken: Taken | None = None
    """What it has taken of the limits per minute."""


@dataclass(slots=True)
class _Holder:
    """A process that draws leases."""

    expires: float
    seconds: float
    answered: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    """The last request for each worker and its leases: a request whose answer was lost is answered again."""


class Leases:
    """The leases of a server; to be used inside `running`."""

    def __init__(
        self, workers: Mapping[str, WorkerLimits], budget: BudgetTracker, journal: Journal, seconds: float = LEASE_S
    ) -> None:
        """`workers` are the limits by the workers' names; `seconds` is how long a silent holder keeps its leases."""
        self.budget = budget
        self.counts = Counter[str]()
        """Leases that have ended, by how."""
        self._workers = workers
        self._journal = journal
        self.seconds = seconds
        self._leases: dict[str, Lease] = {}
        self._holders: dict[str, _Holder] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take over the leases that the journal has, and watch for holders that have died."""
        await self._restore()
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait([watching])

    async def take(
        self,
        holder: str,
        worker: str,
        calls: Sequence[tuple[int, float]],
        *,
        request: str = "",
        begun: bool = True,
        seconds: float | None = None,
        allowance: Allowance = _EVERYTHING,
    ) -> list[str]:
        """Leases for some of the calls, the first ones; none if no call may be made within a while.

        Args:
            holder: Who asks.
            worker: The worker's name.
            calls: The most that each call may be charged: tokens and US dollars.
            request: Names the request, so that a repeated one is given the same leases.
            begun: Whether the calls are made at once. If not, the holder says so of each before it is made.
            seconds: After which silence the holder has died.
            allowance: What the key of the request may use.

        Raises:
            ApiError: the worker is not known, the budget is spent, or the leases cannot be kept.
        """
        limits = self._workers.get(worker)
        if limits is None:
            known = ", ".join(self._workers)
            raise ApiError(
                404,
                f"the server's pool has no worker {worker!r} (workers: {known})",
                code="unknown_worker",
                param="worker",
            )
        found = self._heard(holder, seconds).answered.get(worker)
        if found is not None and request and found[0] == request:
            return [lease for lease in found[1] if lease in self._leases]
        bounds = [BudgetUsage(1, tokens, usd) for tokens, usd in calls]
        budget = allowance.account or self.budget
        try:
            async with asyncio.timeout(WAIT_S):
                given = await self._reserve(limits, bounds, budget)
        except TimeoutError:
            return []
        except BudgetSpent as error:
            raise ApiError(429, str(error), code="insufficient_quota", headers=NO_RETRY) from error
        now = asyncio.get_running_loop().time()
        leases = [
            Lease(holder, worker, bound, now, begun, budget, taken) for bound, taken in zip(bounds, given, strict=False)
        ]
        return await self._keep(leases, request, allowance.key)

    def settle(self, holder: str, settled: Sequence[Mapping[str, Any]], begun: Sequence[str] = ()) -> list[str]:
        """End leases of a holder, and renew its others; the ids of those that it does not hold, such as expired ones.

        Each of `settled` has `lease`, `calls`, `tokens`, `usd`, the `status` of the call and its `retry_after`.
        """
        self._heard(holder)
        expired: list[str] = []
        ended: list[tuple[str, str, BudgetUsage]] = []
        for id_ in begun:
            lease = self._held(holder, id_)
            if lease is not None:
                lease.begun = True
                ended.append((id_, "started", lease.bound))
        for told in settled:
            lease = self._held(holder, told["lease"])
            if lease is None:
                expired.append(told["lease"])
                continue
            del self._leases[told["lease"]]
            used = BudgetUsage(told["calls"], told["tokens"], told["usd"])
            self._end(lease, used, "settled")
            self._feed_back(lease, used, told.get("status", 200), told.get("retry_after"))
            ended.append((told["lease"], "settled", used))
        if ended:
            note_leases(self._journal, ended)
        return expired

    def describe(self) -> list[dict[str, Any]]:
        """The holders: their calls in flight, what is reserved for them, and when they expire."""
        now = asyncio.get_running_loop().time()
        rows = []
        for name, holder in self._holders.items():
            held = [lease for lease in self._leases.values() if lease.holder == name]
            reserved = sum((lease.bound.usd for lease in held), 0.0)
            workers = Counter(lease.worker for lease in held)
            rows.append(
                {
                    "holder": name,
                    "calls": len(held),
                    "workers": dict(workers),
                    "reserved_usd": reserved,
                    "expires_in_s": round(holder.expires - now, 3),
                }
            )
        return rows

    def _held(self, holder: str, id_: str) -> Lease | None:
        """A lease, if it is one of this holder."""
        lease = self._leases.get(id_)
        return lease if lease is not None and lease.holder == holder else None

    async def _reserve(
        self, limits: WorkerLimits, bounds: list[BudgetUsage], budget: BudgetTracker
    ) -> list[Taken | None]:
        """Places, money and rate for the first call, once there are, and for those after it that need not wait."""
        given: list[Taken | None] = []
        places = reserved = 0
        try:
            await limits.concurrency.acquire()
            places = 1
            for bound in bounds:
                if given and not (limits.has_room(bound.tokens) and limits.concurrency.try_acquire()):
                    break
                places += bool(given)
                if not budget.try_reserve(bound):
                    if given:
                        break
                    await budget.reserve(bound)
                reserved += 1
                # Last: what is taken of a minute passes, however long money is waited for.
                given.append(await limits.take(bound.tokens) if limits.per_minute else None)
        except BaseException:
            for bound in bounds[:reserved]:
                budget.settle(bound, NOTHING_SPENT)
            given.clear()
            raise
        finally:
            for _ in range(places - len(given)):
                limits.concurrency.release()
        return given

    async def _keep(self, leases: list[Lease], request: str, key: str) -> list[str]:
        first = leases[0]
        bounds = [lease.bound for lease in leases]
        keeping = asyncio.ensure_future(
            keep_leases(self._journal, first.holder, first.worker, bounds, begun=first.begun, request=request, key=key)
        )
        try:
            ids = await asyncio.shield(keeping)
        except asyncio.CancelledError:  # the client has left: it has made no call
            keeping.add_done_callback(lambda _: self._drop(keeping, leases))
            raise
        except JournalFailure as error:
            for lease in leases:
                self._end(lease, NOTHING_SPENT, "refused")
            raise ApiError(503, str(error), code="journal_failed", headers={"retry-after": "5"}) from error
        self._leases.update(zip(ids, leases, strict=True))
        self._heard(first.holder).answered[first.worker] = (request, ids)
        return ids

    def _drop(self, keeping: asyncio.Future[list[str]], leases: list[Lease]) -> None:
        """Take back leases whose holder has left before it was told of them."""
        for lease in leases:
            self._end(lease, NOTHING_SPENT, "returned")
        if not keeping.cancelled() and keeping.exception() is None:
            note_leases(self._journal, [(lease, "returned", NOTHING_SPENT) for lease in keeping.result()])

    def _end(self, lease: Lease, used: BudgetUsage, how: str) -> None:
        self.counts[how] += 1
        lease.budget.settle(lease.bound, used)
        limits = self._workers.get(lease.worker)
        if limits is not None:
            limits.concurrency.release()
            if lease.taken is not None and used.calls:
                limits.correct(lease.taken, used.tokens)
            elif lease.taken is not None:
                limits.give_back(lease.taken)

    def _feed_back(self, lease: Lease, used: BudgetUsage, status: int, retry_after: float | None) -> None:
        """Let a provider's refusal narrow the worker for everyone, and an answer widen it."""
        limits = self._workers.get(lease.worker)
        if limits is None:  # a lease of before a restart, whose worker has left the pool
            return
        if status in _OVERLOADED:
            asked_s = retry_after or 0.0  # nothing is held back for a wait that no run makes
            limits.concurrency.refused(lease.began, asked_s if asked_s <= LONGEST_WAIT_S else None)
        elif used.tokens:
            limits.concurrency.succeeded(lease.began)

    def _heard(self, name: str, seconds: float | None = None) -> _Holder:
        holder = self._holders.setdefault(name, _Holder(0.0, self.seconds))
        if seconds is not None:
            holder.seconds = min(seconds, self.seconds)
        holder.expires = asyncio.get_running_loop().time() + holder.seconds
        return holder

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(min(self.seconds, 1.0) / 4)
            self.expire(asyncio.get_running_loop().time())

    def expire(self, now: float) -> None:
        """End the leases of holders that were last heard of too long before a time of the event loop's clock."""
        dead = [name for name, holder in self._holders.items() if holder.expires <= now]
        for name in dead:
            del self._holders[name]
        ended = []
        for id_, lease in [(id_, lease) for id_, lease in self._leases.items() if lease.holder in dead]:
            del self._leases[id_]
            status, used = ("lost", lease.bound) if lease.begun else ("returned", NOTHING_SPENT)
            self._end(lease, used, status)
            ended.append((id_, status, used))
        if ended:
            note_leases(self._journal, ended)

    async def _restore(self) -> None:
        """Take over what the journal has. The budget has counted it as charged."""
        now = asyncio.get_running_loop().time()
        for kept in await open_leases(self._journal):
            # The account of a key keeps the bound of a lease from before, as the journal had it: our choice.
            self._leases[kept.id] = Lease(kept.holder, kept.worker, kept.bound, now, kept.begun, self.budget)
            self.budget.reopen(kept.bound)
            if kept.worker in self._workers:
                self._workers[kept.worker].concurrency.active += 1
            answered = self._heard(kept.holder).answered
            request, ids = answered.get(kept.worker, ("", []))
            answered[kept.worker] = (kept.request, [*ids, kept.id] if request == kept.request else [kept.id])
