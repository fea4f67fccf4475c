"""What a tree of runs may spend, and the layer that keeps to it.

Before a call its upper bound is reserved: input at its UTF-8 bytes, output at its most tokens, thinking included.
Afterwards the true amount takes its place; a call whose outcome nobody knows stays charged at its bound. So calls in
flight together cannot overrun a budget. A call that does not fit now, but may once others are settled, waits for them.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from wfdsl.errors import UsageError, WfdslError
from wfdsl.interpreter.environment import ASKING
from wfdsl.interpreter.events import BudgetCharged
from wfdsl.interpreter.record import NO_CHARGE, Charge
from wfdsl.interpreter.terms import utf8_bytes
from wfdsl.protocols import Usage, WorkerFailure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from wfdsl.interpreter.environment import Ask, StepCall
    from wfdsl.interpreter.lines import Line
    from wfdsl.interpreter.terms import Terms
    from wfdsl.protocols import Call, Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that a run may spend, its nested runs and earlier processes included; None: no limit.

    Wall time alone starts anew when a run is resumed.
    """

    calls: int | None = None
    """Attempts that may have reached a worker."""
    tokens: int | None = None
    """Input and output tokens."""
    usd: float | None = None
    """US dollars paid."""
    wall_s: float | None = None
    """Seconds from the start of the run."""

    def __post_init__(self) -> None:
        for name in ("calls", "tokens", "usd", "wall_s"):
            limit = getattr(self, name)
            if limit is not None and not limit >= 0:
                raise UsageError(f"a budget's {name} is a number from 0, not {limit}")


UNLIMITED = Budget()


class BudgetSpent(WfdslError):  # noqa: N818  (an event, like StopIteration: the run turns it into its own error)
    """A call does not fit into what is left."""


class Ledger(Protocol):
    """Who keeps account of a budget; one for a whole tree of runs, which may lie elsewhere."""

    @property
    def budget(self) -> Budget:
        """What may be spent."""
        ...

    @property
    def spent(self) -> Charge:
        """What has been settled."""
        ...

    async def reserve(self, bound: Charge) -> None:
        """Put an amount aside.

        Raises:
            BudgetSpent: it does not fit, whatever becomes of the calls in flight.
        """
        ...

    async def settle(self, bound: Charge, charge: Charge) -> None:
        """Charge an amount in place of one that was put aside. Never waits."""
        ...


_ROUNDING = 1e-12
"""Sums of dollars are floating-point numbers, so the last call that fits exactly needs a little room."""


class Account:
    """A budget and what has been spent of it, in this process. Invariant: what is held never exceeds the budget by
    more than replies exceed their bounds.
    """

    __slots__ = ("_held", "_limits", "_waiting", "budget", "spent")

    def __init__(self, budget: Budget, spent: Charge | None = None) -> None:
        self.budget = budget
        self.spent = spent or NO_CHARGE
        self._held = self.spent
        """What has been spent or is put aside."""
        self._limits = (
            math.inf if budget.calls is None else budget.calls,
            math.inf if budget.tokens is None else budget.tokens,
            math.inf if budget.usd is None else budget.usd * (1 + _ROUNDING),
        )
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def reserve(self, bound: Charge) -> None:
        """Put an amount aside, or wait until calls in flight have made room for it.

        Raises:
            BudgetSpent: it does not fit, whatever becomes of the calls in flight.
        """
        while not self._fits(held := self._held.plus(bound)):
            self._require_possible(bound)
            settled = asyncio.get_running_loop().create_future()
            self._waiting.append(settled)
            await settled
        self._held = held

    async def settle(self, bound: Charge, charge: Charge) -> None:
        """Charge an amount in place of one that was put aside."""
        self._held = self._held.corrected(bound, charge)
        self.spent = self.spent.plus(charge)
        while self._waiting:
            settled = self._waiting.popleft()
            if not settled.done():
                settled.set_result(None)

    def _fits(self, charge: Charge) -> bool:
        calls, tokens, usd = self._limits
        return charge[0] <= calls and charge[1] <= tokens and charge[2] <= usd

    def _require_possible(self, bound: Charge) -> None:
        if not self._fits(self.spent.plus(bound)):
            raise BudgetSpent(f"the budget of {self._excess(self.spent.plus(bound))}")

    def _excess(self, charge: Charge) -> str:
        """Which limit an amount exceeds, and what is left of it."""
        budget, spent = self.budget, self.spent
        if budget.calls is not None and charge.calls > budget.calls:
            return f"{_counted(budget.calls, 'call')} is spent"
        if budget.tokens is not None and charge.tokens > budget.tokens:
            left, need = budget.tokens - spent.tokens, charge.tokens - spent.tokens
            return f"{_counted(budget.tokens, 'token')} has {left} left, and this call may take {need}"
        left_usd, need_usd = (budget.usd or 0.0) - spent.usd, charge.usd - spent.usd
        return f"${budget.usd:g} has ${left_usd:.6f} left, and this call may cost ${need_usd:.6f}"


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def bound_of(terms: Terms, call: Call) -> Charge:
    """The most that a call can be charged; what nobody knows counts as nothing (see `require_bounded`)."""
    read, written = terms.input_bound(call.messages), terms.output_bound(call.settings) or 0
    usd = 0.0 if terms.free else terms.cost_usd(Usage(read, written)) or 0.0
    return Charge(1, read + written, usd)


def charge_of(terms: Terms, call: Call, reply: Reply) -> Charge:
    """What a reply is charged. A provider that counts no tokens is charged a token per byte of question and reply."""
    usage = reply.usage
    tokens = usage.input_tokens + usage.output_tokens
    if tokens:
        paid = terms.cost_usd(usage) if reply.paid_usd is None else reply.paid_usd
        return Charge(1, tokens, paid or 0.0)
    usage = Usage(terms.input_bound(call.messages), utf8_bytes(reply.text))
    return Charge(1, usage.total_tokens, reply.paid_usd or terms.cost_usd(usage) or 0.0)


def charge_of_failure(failure: WorkerFailure, bound: Charge) -> Charge:
    """What a failed attempt is charged: nothing if it was never sent, a call if the provider refused it, or else all
    of its bound, since nobody knows whether the provider did the work.
    """
    if not failure.sent:
        return Charge()
    refused = failure.status is not None and failure.status >= 400
    return Charge(calls=1) if refused else bound


def charged(ask: Ask, terms: Terms) -> Ask:
    """Let a call through once its upper bound is reserved, and settle afterwards."""

    def paid_or_free(call: Call) -> Awaitable[Reply]:
        ledger = call.run.environment.ledger
        return ask(call) if ledger is None else paid(call, ledger)

    async def paid(call: Call, ledger: Ledger) -> Reply:
        handle: StepCall = call.run
        bound = bound_of(terms, call)
        handle.doing = "waiting for calls in flight to leave enough of the budget"
        await ledger.reserve(bound)
        handle.doing = ASKING
        charge = bound
        try:
            reply = await ask(call)
            charge = charge_of(terms, call, reply)
        except WorkerFailure as failure:
            charge = charge_of_failure(failure, bound)
            raise
        finally:
            await ledger.settle(bound, charge)
            _announce(handle, ledger)
        return reply

    return paid_or_free


def require_bounded(terms: Terms, line: Callable[[int], Line], budget: Budget, settings: Mapping[str, Any]) -> None:
    """Refuse a worker, or one that it falls back on, whose calls have no known upper bound.

    Raises:
        UsageError: its price is not known under a dollar budget, or its longest reply under any token budget.
    """
    if budget.usd is None and budget.tokens is None:
        return
    _require_bounded_worker(terms, budget, settings)
    for other in terms.fallbacks:
        _require_bounded_worker(line(other).terms, budget, settings)


def _require_bounded_worker(terms: Terms, budget: Budget, settings: Mapping[str, Any]) -> None:
    if terms.conductor:
        return  # its calls are bounded one by one
    who = f"worker {terms.ordinal} ({terms.name})"
    if budget.usd is not None and not terms.priced:
        raise UsageError(
            f"{who} has no known price, so a budget in US dollars cannot be kept: "
            "give the worker prices in the pool (0 for a free one), or set another budget"
        )
    if terms.output_bound(settings) is None:
        raise UsageError(f"{who} has no longest reply, so the budget cannot be kept: give it max_tokens in the pool")


def _announce(handle: StepCall, ledger: Ledger) -> None:
    environment = handle.environment
    if environment.listener is None:
        return
    budget, spent = ledger.budget, ledger.spent
    left_s = 0.0 if environment.wall_end is None else environment.wall_end - environment.clock.steady()
    handle.emit(
        BudgetCharged(
            handle.path,
            spent.calls,
            spent.tokens,
            spent.usd,
            0.0 if budget.wall_s is None else budget.wall_s - left_s,
            (budget.calls, budget.tokens, budget.usd, budget.wall_s),
        )
    )
