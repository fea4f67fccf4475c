"""Budgets: the most that a tree of runs may spend, and a tracker that never lets calls in flight exceed it together.

Before a call its upper bound is reserved. Afterwards the true amount is charged instead; a call whose outcome is
unknown stays charged at its bound. A call that does not fit now, but may fit once others are settled, waits for them.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import NamedTuple

from wfdsl.errors import WfdslError
from wfdsl.render.text import counted
from wfdsl.settings import Table, option


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget(Table):
    """The most that a run may spend, its nested runs and earlier processes included: the table [budget]."""

    calls: int | None = option(None, "most calls, attempts that failed included", "--budget-calls", ge=0)
    tokens: int | None = option(None, "most tokens, input and output", ge=0)
    usd: float | None = option(None, "most US dollars", "--budget-usd", ge=0)


UNLIMITED = Budget()


class BudgetUsage(NamedTuple):
    """An amount of a budget."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def plus(self, other: BudgetUsage) -> BudgetUsage:
        """Both together."""
        return BudgetUsage(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)

    def replaced(self, before: BudgetUsage, after: BudgetUsage) -> BudgetUsage:
        """This amount with another one in the place of a part of it."""
        calls, tokens, usd = after
        return BudgetUsage(
            self.calls + calls - before.calls, self.tokens + tokens - before.tokens, self.usd + usd - before.usd
        )

    def is_within(self, most: BudgetUsage) -> bool:
        """Whether no part is larger."""
        return self.calls <= most.calls and self.tokens <= most.tokens and self.usd <= most.usd


NOTHING_SPENT = BudgetUsage()


class BudgetSpent(WfdslError):  # noqa: N818  (an event, like StopIteration: the run turns it into its own error)
    """A call does not fit into what is left."""


_ROUNDING = 1e-12
"""Sums of dollars are floating-point numbers, so the last call that fits exactly needs a little room."""
_TEMPLATE_TOKENS = 256
"""What a server's chat template may add to the input tokens of a call before its bound counts as broken. Our choice."""


class BudgetTracker:
    """What has been spent of a budget; one for a whole tree of runs, or for several runs that share a budget.

    Invariant: what is spent or reserved never exceeds the budget by more than replies exceed their bounds. The first
    reply that does ends it: nothing more can be reserved, since the other bounds are as little worth.
    """

    def __init__(
        self, budget: Budget, spent: BudgetUsage = NOTHING_SPENT, *, within: BudgetTracker | None = None
    ) -> None:
        """`within` tracks a larger budget, which has to cover every amount, too."""
        self.budget = budget
        self.limits = (budget.calls, budget.tokens, budget.usd)
        self.spent = self._taken = spent
        """What has been settled; and what has been settled or is reserved."""
        self._most = BudgetUsage(
            math.inf if budget.calls is None else budget.calls,  # type: ignore[arg-type]  # no limit is more than any
            math.inf if budget.tokens is None else budget.tokens,  # type: ignore[arg-type]
            math.inf if budget.usd is None else budget.usd * (1 + _ROUNDING),
        )
        self._broken = ""
        """Which reply has taken more than its bound, in words."""
        self._waiting: list[asyncio.Future[None]] = []
        self._within = within

    async def reserve(self, bound: BudgetUsage) -> None:
        """Reserve an amount, or wait until calls in flight have made room for it.

        Raises:
            BudgetSpent: it does not fit, however the calls in flight end.
        """
        while self._broken or not (taken := self._taken.plus(bound)).is_within(self._most):
            self._require_possible(bound)
            settled = asyncio.get_running_loop().create_future()
            self._waiting.append(settled)
            await settled
        self._taken = taken
        if self._within is not None:
            try:
                await self._within.reserve(bound)
            except BaseException:
                self._settle(bound, NOTHING_SPENT)
                raise

    def settle(self, bound: BudgetUsage, actual: BudgetUsage) -> None:
        """Charge an amount instead of the one that was reserved; one above its bound ends the budget."""
        if self._within is not None:
            self._within.settle(bound, actual)
        self._settle(bound, actual)

    def _settle(self, bound: BudgetUsage, actual: BudgetUsage) -> None:
        self.spent = self.spent.plus(actual)
        self._taken = self._taken.replaced(bound, actual)
        if not actual.is_within(bound):
            self._broken = _excess_of(self.budget, bound, actual) or self._broken
        waiting, self._waiting = self._waiting, []
        for settled in waiting:
            if not settled.done():
                settled.set_result(None)

    def _require_possible(self, bound: BudgetUsage) -> None:
        if self._broken:
            raise BudgetSpent(
                f"the budget cannot be enforced any more: {self._broken}; no further calls are made; "
                "check the worker's max_tokens and prices, then resume"
            )
        needed = self.spent.plus(bound)
        if not needed.is_within(self._most):
            raise BudgetSpent(f"the budget of {self._excess(needed)}")

    def _excess(self, needed: BudgetUsage) -> str:
        """Which limit an amount exceeds, and what is left of it."""
        budget, spent = self.budget, self.spent
        if budget.calls is not None and needed.calls > budget.calls:
            return f"{counted(budget.calls, 'call')} is spent"
        if budget.tokens is not None and needed.tokens > budget.tokens:
            left, bound = budget.tokens - spent.tokens, needed.tokens - spent.tokens
            return f"{counted(budget.tokens, 'token')} has {left} left, and this call may take {bound}"
        left_usd, bound_usd = (budget.usd or 0.0) - spent.usd, needed.usd - spent.usd
        return f"${budget.usd:g} has ${left_usd:.6f} left, and this call may cost ${bound_usd:.6f}"


def _excess_of(budget: Budget, bound: BudgetUsage, actual: BudgetUsage) -> str:
    """How an amount is above its bound, in words, as far as a budget has limits; empty: it is not."""
    if budget.tokens is not None and actual.tokens > bound.tokens + _TEMPLATE_TOKENS:
        return f"a reply took {actual.tokens} tokens, where at most {bound.tokens} were reserved"
    tokens_fit = bound.tokens < actual.tokens <= bound.tokens + _TEMPLATE_TOKENS  # what they cost is forgiven, too
    if budget.usd is not None and actual.usd > bound.usd * (1 + _ROUNDING) and not tokens_fit:
        return f"a reply cost ${actual.usd:.6f}, where at most ${bound.usd:.6f} were reserved"
    return ""
