"""Leases as the server gives them: calls, rate and money for other processes, under the limits of its own calls.

A lease reserves the upper bound of one call. It ends when its holder says what the call was charged. A holder that is
not heard of for as long as its leases are given for has died: its calls stay charged at their bounds and are listed as
lost. Time is this process's steady clock, so no clock needs to agree with another. Leases are kept in the journal, so
that they hold after a restart of the server, too.

What a holder says is charged as long as it can be true. A call above its bound ends the holder's budget, and not that
of the other holders.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from wfdsl.errors import JournalFailure
from wfdsl.interpreter.budget import NOTHING_SPENT, TEMPLATE_TOKENS, BudgetSpent, BudgetTracker, BudgetUsage
from wfdsl.interpreter.config import LONGEST_WAIT_S
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_leases import keep_leases, note_leases, open_leases
from wfdsl.interpreter.limits import Taken, WorkerLimits
from wfdsl.render.text import counted
from wfdsl.server.api_errors import NO_RETRY, ApiError
from wfdsl.server.key_usage import Allowance

LEASE_S: Final = 30.0
"""How long a lease is given for, unless its holder asks for less or is heard of again. Our choice."""
WAIT_S: Final = 20.0
"""How long a request waits for its first lease. Our choice: proxies cut silent connections after 60 s."""
_MOST_OF_BOUND: Final = 10
"""How many times its bound a call may be charged under a budget: where a provider does not count tokens, each byte of a
reply counts as one, and some providers exceed `max_tokens`. Our choice."""
_LARGEST_CALL: Final = BudgetUsage(1, 10**8, 1000.0)
"""The most that a call may be charged where no budget has a limit, so that its bound may be unknown. Our choice."""
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
    excess: str = ""
    """Which of its calls has taken more than its bound, in words; it is given no further leases."""


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
        seconds: float | None = None,
        allowance: Allowance = _EVERYTHING,
    ) -> list[str]:
        """Leases for some of the calls, the first ones; none if no call may be made within a while.

        Args:
            holder: Who asks.
            worker: The worker's name.
            calls: The most that each call may be charged: tokens and US dollars.
            request: Names the request, so that a repeated one is given the same leases.
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
        heard = self._heard(holder, seconds)
        if heard.excess:
            raise ApiError(429, _ended(holder, heard.excess), code="insufficient_quota", headers=NO_RETRY)
        found = heard.answered.get(worker)
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
        leases = [Lease(holder, worker, bound, now, budget, taken) for bound, taken in zip(bounds, given, strict=False)]
        return await self._keep(leases, request, allowance.key)

    def settle(self, holder: str, settled: Sequence[Mapping[str, Any]]) -> list[str]:
        """End leases of a holder, and renew its others; the ids of those that it does not hold, such as expired ones.

        Each of `settled` has `lease`, `calls`, `tokens`, `usd`, the `status` of the call and its `retry_after`.

        Raises:
            ApiError: a call cannot have been charged so much; it stays charged at its bound. The others are ended.
        """
        heard = self._heard(holder)
        expired: list[str] = []
        refused: list[str] = []
        ended: list[tuple[str, str, BudgetUsage]] = []
        for told in settled:
            lease = self._held(holder, told["lease"])
            if lease is None:
                expired.append(told["lease"])
                continue
            del self._leases[told["lease"]]
            how, used = "settled", BudgetUsage(told["calls"], told["tokens"], told["usd"])
            heard.excess = heard.excess or lease.budget.excess(lease.bound, used)
            if not _is_plausible(lease, used):
                refused.append(_too_much(told["lease"], lease.bound, used))
                how, used = "lost", lease.bound
            self._end(lease, used, how)
            self._feed_back(lease, used, told.get("status", 200), told.get("retry_after"))
            ended.append((told["lease"], how, used))
        if ended:
            note_leases(self._journal, ended)
        if refused:
            raise ApiError(400, f"{'; '.join(refused[:_SHOWN])}; {_ADVICE}", code="beyond_bound")
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
            keep_leases(self._journal, first.holder, first.worker, bounds, request=request, key=key)
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
        lease.budget.settle(lease.bound, used, ends=False)
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
            self._end(lease, lease.bound, "lost")
            ended.append((id_, "lost", lease.bound))
        if ended:
            note_leases(self._journal, ended)

    async def _restore(self) -> None:
        """Take over what the journal has. The budget has counted it as charged."""
        now = asyncio.get_running_loop().time()
        for kept in await open_leases(self._journal):
            # The account of a key keeps the bound of a lease from before, as the journal had it: our choice.
            self._leases[kept.id] = Lease(kept.holder, kept.worker, kept.bound, now, self.budget)
            self.budget.reopen(kept.bound)
            if kept.worker in self._workers:
                self._workers[kept.worker].concurrency.active += 1
            answered = self._heard(kept.holder).answered
            request, ids = answered.get(kept.worker, ("", []))
            answered[kept.worker] = (kept.request, [*ids, kept.id] if request == kept.request else [kept.id])


_ADVICE: Final = "check the worker's max_tokens and prices"
_SHOWN: Final = 3
"""Refused settlements that an error tells of. Our choice."""


def _is_plausible(lease: Lease, used: BudgetUsage) -> bool:
    """Whether a call can have been charged an amount; a bound that a budget does not need may be too low."""
    tokens_limited, usd_limited = lease.budget.limited
    bound, most = lease.bound, _LARGEST_CALL
    most_tokens = _MOST_OF_BOUND * bound.tokens + TEMPLATE_TOKENS if tokens_limited else most.tokens
    most_usd = _MOST_OF_BOUND * bound.usd if usd_limited else most.usd
    return used.calls <= bound.calls and used.tokens <= most_tokens and used.usd <= most_usd


def _too_much(lease: str, bound: BudgetUsage, used: BudgetUsage) -> str:
    return (
        f"the charge of lease {lease} is far above its bound of {_amount(bound)} (got {_amount(used)}), "
        "so the bound is charged"
    )


def _amount(usage: BudgetUsage) -> str:
    return f"{counted(usage.calls, 'call')}, {counted(usage.tokens, 'token')} and ${usage.usd:g}"


def _ended(holder: str, excess: str) -> str:
    return f"the budget cannot be enforced for {holder}: {excess}; {_ADVICE}, then start it again"
