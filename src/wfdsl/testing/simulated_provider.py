"""A provider for tests: a model with a rate limit, latencies, failures and lies, whose purchases are counted."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Literal, TypeAlias

from wfdsl.interpreter.budget import NOTHING_SPENT, BudgetUsage
from wfdsl.protocols import Call, Reply, Usage, Worker, WorkerFailure
from wfdsl.workers.entry import Prices

Trouble: TypeAlias = Literal[
    "unreachable", "unavailable", "hang-up", "silent", "filtered", "empty", "only_thinking", "length"
]
"""How a call ends that is not refused. `silent` is a reply that never comes, the last four are endings of replies."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a provider behaves."""

    latencies_s: tuple[float, ...] = (0.1,)
    """Each call takes one of these, in seconds."""
    rate: float | None = None
    """Calls a second; None: no limit."""
    burst: int = 1
    """How many of them may come at once after a pause."""
    status: int = 429
    """The status of refusals."""
    retry_after: float | None = None
    """The part of the time to wait that refusals ask for: 1 is the truth, other numbers are lies; None: nothing."""
    troubles: tuple[Trouble, ...] = ()
    trouble_share: float = 0.0
    """The share of calls that have one of the troubles."""


CALM = Manner()


async def digest(call: Call) -> Reply:
    """A reply that depends on what is asked only, and on all of it."""
    text = "\n".join(message["content"] for message in call.messages)
    return Reply(hashlib.sha256(text.encode()).hexdigest()[:12])


class SimulatedProvider:
    """A worker whose replies are those of another one, at the price of the list."""

    def __init__(self, prices: Prices, rng: Random, on_call: Callable[[Call, str], None], answer: Worker) -> None:
        """`on_call` is told of each call, and how it ends."""
        self.manner = CALM
        self.bought: dict[str, BudgetUsage] = {}
        """What has been charged, by the calls' sample ids."""
        self.in_flight = 0
        self._prices, self._rng, self._on_call, self._answer = prices, rng, on_call, answer
        self._room = self._room_at = 0.0

    async def __call__(self, call: Call) -> Reply:
        """Answer once, as the manner says."""
        manner, rng = self.manner, self._rng
        trouble = rng.choice(manner.troubles) if rng.random() < manner.trouble_share else None
        wait_s = 0.0 if trouble == "unreachable" else self._wait_s()
        self._on_call(call, "refused" if wait_s else trouble or "answered")
        if trouble == "unreachable":
            raise WorkerFailure("the server cannot be reached", retryable=True, sent=False)
        self._charge(call, BudgetUsage(calls=1))
        if wait_s:
            asked_s = None if manner.retry_after is None else wait_s * manner.retry_after
            raise WorkerFailure("too many calls", retryable=True, status=manner.status, retry_after=asked_s)
        if trouble == "unavailable":
            raise WorkerFailure("the server is busy", retryable=True, status=503)
        usage = Usage(sum(len(message["content"]) for message in call.messages) // 4 + 1, rng.randint(1, 16))
        self._charge(call, BudgetUsage(0, usage.total_tokens, self._prices.usd(usage)))
        latency_s = rng.choice(manner.latencies_s)
        self.in_flight += 1
        try:
            await (asyncio.get_running_loop().create_future() if trouble == "silent" else asyncio.sleep(latency_s))
            reply = replace(await self._answer(call), usage=usage)
        finally:
            self.in_flight -= 1
        if trouble == "hang-up":
            raise WorkerFailure("the connection was lost", retryable=True)
        if trouble in ("filtered", "empty", "only_thinking"):
            return replace(reply, text="", finish=trouble)
        return replace(reply, finish="length") if trouble == "length" else reply

    def _charge(self, call: Call, amount: BudgetUsage) -> None:
        self.bought[call.sample_id] = self.bought.get(call.sample_id, NOTHING_SPENT).plus(amount)

    def _wait_s(self) -> float:
        """Seconds until there is room for a call; 0: there was, and it has been taken."""
        manner, now = self.manner, asyncio.get_running_loop().time()
        if manner.rate is None:
            return 0.0
        self._room = min(self._room + (now - self._room_at) * manner.rate, manner.burst)
        self._room_at = now
        if self._room < 1:
            return (1 - self._room) / manner.rate
        self._room -= 1
        return 0.0
