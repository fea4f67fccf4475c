"""Limits: concurrency, requests and tokens per minute, pace, and how long a failed call waits for another attempt.

A worker's limits hold for all runs in an event loop together. When its provider refuses a call as one too many, the
worker is held back for as long as the server asks, and then asked at a pace. A wait is the longer of what the server
asks for and a back-off with jitter. A wait that would pass the deadline fails at once.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

from wfdsl.interpreter.worker_profile import WorkerProfile
from wfdsl.protocols import Call, Reply, Worker, WorkerFailure

WINDOW_S = 60.0 + 2.0
"""A minute, and a margin for requests that leave later than they were counted, as the first ones of a client do. Our
choice."""
FIRST_BACK_OFF_S = 0.5
LONGEST_BACK_OFF_S = 60.0
"""Doubling from the first to the longest, of each a random part of at least one half. Our choice."""
_ROUND_S = 0.5
_LATENESS_S = 0.01
"""How late a timer may be without slowing a pace down. Our choice, as is the length of a round."""
_INCREASE, _DECREASE = 0.1, 0.7
"""How a pace changes: in each round, and with a refusal. The decrease is CUBIC's (RFC 9438), the others our choice."""


class ConcurrencyLimiter:
    """Lets a number of calls through at a time, first come, first served. Unlike a semaphore it belongs to no loop."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._waiting: deque[asyncio.Future[None]] | None = None
        """Made for the first call that waits, since an empty one takes 600 bytes of each run."""

    async def acquire(self) -> None:
        """Take a place, once there is one."""
        if self._free and not self._waiting:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting = self._waiting or deque()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the turn came before the cancel: pass it on
                self.release()
            raise

    def release(self) -> None:
        """Give the place back, to the next call that waits."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class Pace:
    """When calls leave for a provider that has refused some: one after the other, so many a second.

    Additive increase, multiplicative decrease, as TCP has it for the size of its window (RFC 5681): a refusal lowers
    the rate and remembers it. From then on the rate doubles in each round until it is back there, once a call has
    succeeded, and then grows by a part of it in each round. A round is half a second, or the time between two calls
    where that is longer. Before the first refusal there is no pace.
    """

    def __init__(self) -> None:
        self.rate = math.inf
        """Calls a second."""
        self._threshold = math.inf
        """Up to where the rate doubles."""
        self._left = 0
        """How many have left since the last refusal that counted."""
        self._next_at = self._left_at = self._refused_at = -math.inf
        """When the next call may leave, the last one left, and the last refusal that counted came."""
        self._refused_since: float | None = None
        """When the refusals began, if no call has succeeded since."""
        self._served, self._counted_from = 0, _now()
        """Calls that have succeeded since a time."""
        self._door = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        """Whether calls need not wait, since the provider has never refused one."""
        return self.rate == math.inf

    async def turn(self) -> None:
        """Wait until a call may leave, first come, first served."""
        async with self._door:
            while (held_s := self.held_s()) > 0:  # noqa: ASYNC110  (time is what is waited for)
                await asyncio.sleep(min(held_s, _ROUND_S))  # a success may shorten it
            now = _now()
            if self._left:
                self._grow(min((now - self._left_at) / _ROUND_S, 1.0))
            self._left += 1
            self._left_at, self._next_at = now, max(self._next_at, now - _LATENESS_S) + 1 / self.rate

    def _grow(self, rounds: float) -> None:
        if self.rate >= self._threshold:
            self.rate += self._threshold * _INCREASE * rounds
        elif self._refused_since is None:
            self.rate *= 2**rounds

    def refused(self, began: float, retry_after: float | None = None) -> None:
        """Slow down, after a call that began at a time of the loop's clock was refused as one too many.

        Once for all calls that were under way together. Nothing leaves for as long as the server asks.
        """
        now = _now()
        if began > self._refused_at:
            if self.is_open:
                self.rate = 1 / FIRST_BACK_OFF_S
            elif self._left > 1:
                self.rate = self._threshold = self.rate * _DECREASE
            else:  # not even one has been served since
                self.rate = max(self.rate / 2, 1 / LONGEST_BACK_OFF_S)
            self._refused_since = now if self._refused_since is None else self._refused_since
            self._refused_at, self._left = now, 0
        self._next_at = max(self._next_at, now + max(jittered(retry_after or 0.0), part_of(1 / self.rate)))

    def succeeded(self, began: float) -> None:
        """Note that a call that began at a time of the loop's clock was served.

        After refusals the pace is at least the rate at which calls were served since those before.
        """
        self._served += 1
        if self._refused_since is not None and began > self._refused_at:
            now = _now()
            self.rate = max(self.rate, self._served / max(now - self._counted_from, _ROUND_S))
            self._next_at = min(self._next_at, now + 1 / self.rate)
            self._refused_since, self._served, self._counted_from = None, 0, now

    def held_s(self) -> float:
        """Seconds for which nothing will leave."""
        return max(0.0, self._next_at - _now())

    def refused_s(self) -> float:
        """For how many seconds every call has been refused; 0 once one has succeeded."""
        return 0.0 if self._refused_since is None else _now() - self._refused_since


@dataclass(slots=True, eq=False)
class Taking:
    """What one call has taken of a limit per minute; its amount is corrected once the true one is known."""

    amount: float
    at: float


class RateWindow:
    """At most `limit` in any minute, counted in a sliding window as providers do.

    A token bucket that starts full would let twice the limit through in the first minute. A single amount above the
    limit passes when the window is empty.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._taken: deque[Taking] = deque()
        self._door = asyncio.Lock()

    async def take(self, amount: float) -> Taking:
        """Wait until there is room for an amount, first come, first served, and take it."""
        async with self._door:
            while (wait_s := self._wait_s(amount)) > 0:  # noqa: ASYNC110  (time is what is waited for)
                await asyncio.sleep(wait_s)
            self._taken.append(Taking(amount, _now()))
            return self._taken[-1]

    def _wait_s(self, amount: float) -> float:
        """Seconds until the window has to be looked at again; 0: there is room."""
        horizon = _now() - WINDOW_S
        while self._taken and self._taken[0].at <= horizon:
            self._taken.popleft()
        if not self._taken or sum(taking.amount for taking in self._taken) + amount <= self._limit:
            return 0.0
        # A correction may make room earlier, so long waits are cut into seconds.
        return min(max(self._taken[0].at - horizon, 0.001), 1.0)


class WorkerLimits:
    """The limits of one worker, shared by all runs of an event loop."""

    def __init__(self, profile: WorkerProfile) -> None:
        limits = profile.entry.limits
        self.concurrency = () if limits.concurrency is None else (ConcurrencyLimiter(limits.concurrency),)
        self.pace = Pace()
        self.requests = None if limits.requests_per_minute is None else RateWindow(limits.requests_per_minute)
        self.tokens = None if limits.tokens_per_minute is None else RateWindow(limits.tokens_per_minute)
        self.per_minute = self.requests is not None or self.tokens is not None
        """Whether there is a limit per minute."""

    async def take(self, tokens: float) -> list[Taking]:
        """Wait for a request of so many tokens to fit into a minute; gives what it has taken, tokens last."""
        taken: list[Taking] = []
        try:
            for window, amount in ((self.requests, 1.0), (self.tokens, tokens)):
                if window is not None:
                    taken.append(await window.take(amount))
        except BaseException:
            for each in taken:
                each.amount = 0  # the request was not made
            raise
        return taken


def _now() -> float:
    return asyncio.get_running_loop().time()


def limits_of(profile: WorkerProfile, worker: Worker) -> WorkerLimits:
    """The limits of a worker in the running event loop.

    A model at a server is identified by its entry, since pools come and go while the provider keeps counting; any
    other worker by itself.
    """
    # Kept with the loop, with the workers that are identified by themselves: a table of ours would keep loops for ever,
    # since workers may refer to them.
    loop = asyncio.get_running_loop()
    known: dict[Hashable, tuple[Worker | None, WorkerLimits]] = vars(loop).setdefault("_wfdsl_limits", {})
    inner = getattr(worker, "worker", worker)
    key: Hashable = profile.endpoint or id(inner)
    if key not in known:
        known[key] = (None if profile.endpoint else inner, WorkerLimits(profile))
    return known[key][1]


UNUSABLE = {
    "empty": "the reply was empty",
    "filtered": "the provider's filter withheld the reply",
    "broken_off": "the provider broke the reply off",
    "only_thinking": "the reply holds only thinking, and no text",
    "tool_calls": "the reply has no text: the model asked for a tool, and workers have none",
    "out_of_tokens": "the reply reached its token limit before any text, as when all of it went into thinking; "
    "raise max_tokens or the server's context, or let the model think less",
}
"""Replies that count as failures, by how they finished."""


def is_usable(reply: Reply, call: Call) -> bool:
    """Whether a reply is an answer, or calls tools that it was offered."""
    return reply.finish not in UNUSABLE or bool(reply.tool_calls and call.settings.get("tools"))


class UnusableReply(WorkerFailure):
    """The worker answered, with nothing that can be used."""


def wait_before_retry(failure: WorkerFailure, attempt: int, longest_wait_s: float, seconds_left: float | None) -> float:
    """Seconds to wait after the failure of an attempt, counted from 1.

    Raises:
        WorkerFailure: the failure again, if another attempt cannot help or the wait would be too long.
    """
    if not failure.retryable:
        raise failure
    back_off_s = part_of(min(FIRST_BACK_OFF_S * 2.0 ** (attempt - 1), LONGEST_BACK_OFF_S))
    require_worth_it(failure, max(failure.retry_after or 0.0, back_off_s), longest_wait_s, seconds_left)
    return max(jittered(failure.retry_after or 0.0), back_off_s)


def require_worth_it(failure: WorkerFailure, wait_s: float, longest_wait_s: float, seconds_left: float | None) -> None:
    """Refuse a wait that is too long or cannot help.

    Raises:
        WorkerFailure: the failure, with the reason.
    """
    if wait_s > longest_wait_s:
        raise _too_long(failure, wait_s, f"more than the {longest_wait_s:g} s that a run waits at most")
    if seconds_left is not None and wait_s >= seconds_left:
        raise _too_long(failure, wait_s, "which would pass the deadline")


def jittered(wait_s: float) -> float:
    """A wait that a server asked for, and up to a tenth more, so that not all come back at the same moment."""
    return wait_s * (1 + random.random() / 10)


def part_of(back_off_s: float) -> float:
    """A random part of a back-off, at least half."""
    return back_off_s * (0.5 + random.random() / 2)


def unusable(reply: Reply) -> UnusableReply:
    """The failure that an empty or filtered reply is. One that ran out of tokens would do so again."""
    word = f" ({reply.ending})" if reply.ending else ""
    return UnusableReply(f"{UNUSABLE[reply.finish]}{word}", retryable=reply.finish != "out_of_tokens", rejected=reply)


def _too_long(failure: WorkerFailure, wait_s: float, why: str) -> WorkerFailure:
    asked = "the server asks to wait" if failure.retry_after == wait_s else "the next attempt would have to wait"
    return failure.saying(
        f"{failure}; {asked} {wait_s:g} s, {why}; resume the run after that time, or name a fallback worker"
    )
