"""Call pipeline: everything that happens around one call of a worker.

In order: deadline; replay from the journal; then per attempt: concurrency and rate limits, budget, journal entry, the
worker; then retries, then fallback workers. So a reply that is known costs nothing and waits for nothing, and each
attempt waits for its turn, is paid for and is journaled by itself. A Conductor node has only the deadline: the calls
that it makes have pipelines of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextvars import Context
from dataclasses import replace
from types import CoroutineType, coroutine
from typing import Any, TypedDict

from wfdsl.interpreter.budget import BudgetSpent, BudgetTracker, BudgetUsage
from wfdsl.interpreter.events import BudgetCharged, FellBack, Retried
from wfdsl.interpreter.journal import CallEntry, Key, RunJournal
from wfdsl.interpreter.limits import AdaptiveLimiter, ConcurrencyLimiter, Taken, limits_of
from wfdsl.interpreter.retry import (
    UNUSABLE,
    given_up,
    refused_too_long,
    require_worth_it,
    unusable,
    wait_before_retry,
)
from wfdsl.interpreter.step_call import ASKING, Environment, StepCall
from wfdsl.interpreter.worker_profile import WorkerProfile
from wfdsl.protocols import Ask, Call, Reply, WorkerFailure

_TOO_MANY = 429
_OVERLOADED = {_TOO_MANY, 529}
"""HTTP statuses by which a provider reports an overload; the first one says that a call came too early, no more."""
_BYTES_PER_TOKEN = 4
"""A usual ratio, for an estimate that is corrected once the reply is there. Our choice."""


class CallPipeline:
    """How one worker is called. One coroutine per call and one per attempt: each more would cost every step."""

    __slots__ = ("_adds_cost", "_fallbacks", "_limits", "_patient", "_worker", "profile")

    def __init__(
        self, worker: Ask, profile: WorkerProfile, fallbacks: tuple[CallPipeline, ...] = (), *, last: bool = True
    ) -> None:
        """`fallbacks` are asked, in order, once the worker has failed for good; `last`: no other worker is asked then.

        The last worker is waited for while its provider refuses calls as too many; that uses up no attempt.
        """
        self.profile = profile
        self._worker = worker
        self._fallbacks = fallbacks
        self._limits = limits_of(profile, worker)
        self._adds_cost = profile.priced and not profile.free
        self._patient = last and not fallbacks and profile.retries > 0

    @property
    def profiles(self) -> tuple[WorkerProfile, ...]:
        """The profiles of the worker and of its fallback workers."""
        return (self.profile, *(each.profile for each in self._fallbacks))

    async def ask(self, call: Call) -> Reply:
        """The reply to a step's call.

        Raises:
            WorkerFailure: no attempt gave a usable reply in time.
            BudgetSpent: the budget does not cover the call, or its wall time is over.
            JournalFailure: the call cannot be journaled.
            UsageError: the journal has its reply, but to another request.
        """
        handle: StepCall = call.run
        environment = handle.environment
        deadline = None if call.deadline is None else environment.timer.start(call.deadline)
        try:
            if self.profile.conductor:
                return await _in_context(handle.context, self._worker, call)
            if environment.journal is not None:
                known = await self._known(call, environment.journal)
                if known is not None:
                    return known
            try:
                return await self._attempt(call)
            except WorkerFailure as failure:
                return await self._after_failure(call, failure)
        except asyncio.CancelledError as error:
            _require_requested(error)  # a Conductor's; `_attempt` has checked those of other workers
            if deadline is None or not deadline.take_back():
                raise
            timeout = _timed_out(handle)
            later = None if isinstance(timeout, BudgetSpent) else self._after_timeout(handle)
            if later is None or isinstance(timeout, BudgetSpent):
                raise timeout from error
            return await later._instead(call, timeout)
        except WorkerFailure as failure:
            if deadline is not None and handle.wall_time_is_over():
                raise _timed_out(handle) from failure
            raise
        finally:
            if deadline is not None:
                environment.timer.stop(deadline)

    async def _attempt(self, call: Call) -> Reply:
        """Ask the worker once: when its limits allow it, and once the budget has reserved the call's upper bound."""
        handle: StepCall = call.run
        environment, limits = handle.environment, self._limits
        limiters = (*environment.limiters, limits.concurrency)
        if not _try_acquire(limiters):
            await _queue_for(limiters, limits.concurrency, handle)
        taken: Taken | None = None
        bound: BudgetUsage | None = None
        used: BudgetUsage | None = None
        began = 0.0
        try:
            if self._limits.per_minute:
                taken = await self._wait_for_rate(call, handle)
            if environment.budget is not None:
                needed = self.profile.usage_bound(call)
                if not environment.budget.try_reserve(needed):
                    await _wait_for_budget(needed, environment.budget, handle)
                    limits.leaves(taken)
                bound = needed
            began = environment.clock.steady()
            reply = await (
                _in_context(handle.context, self._worker, call)
                if environment.journal is None
                else self._journaled(call)
            )
            if self._adds_cost:
                reply = self._with_cost(reply)
            used = None if bound is None else self.profile.usage_of_reply(call, reply)
        except WorkerFailure as failure:
            used = None if bound is None else self.profile.usage_of_failure(call, failure, bound)
            self._note_failure(handle, failure, began)
            raise
        except asyncio.CancelledError as error:
            _require_requested(error)  # what the call has used is unknown: the bound stays charged
            raise
        finally:
            if bound is not None:
                _settle(handle, bound, bound if used is None else used)
            for limiter in limiters:
                limiter.release()
        limits.concurrency.succeeded(began)
        if taken is not None:
            limits.correct(taken, reply.usage.total_tokens)
        if reply.finish in UNUSABLE and not (reply.tool_calls and call.settings.get("tools")):
            raise _rejected(handle, reply)
        return reply

    def _note_failure(self, handle: StepCall, failure: WorkerFailure, began: float) -> None:
        """Keep a reply that was paid for, and let the worker rest if its provider is overloaded."""
        if failure.rejected is not None:
            handle.earlier = (*handle.earlier, failure.rejected)
        if failure.status in _OVERLOADED:
            asked_s = failure.retry_after or 0.0
            longest_s = handle.environment.config.longest_wait_s  # nothing is held back for a wait that no run makes
            self._limits.concurrency.refused(began, asked_s if asked_s <= longest_s else None)

    async def _after_failure(self, call: Call, failure: WorkerFailure) -> Reply:
        """Ask again, then the fallback workers."""
        try:
            return await self._retry(call, failure)
        except WorkerFailure as final:
            if not self._fallbacks:
                raise
            return await self._fall_back(call, final)

    async def _retry(self, call: Call, failure: WorkerFailure) -> Reply:
        handle: StepCall = call.run
        clock = handle.environment.clock
        attempts, made, counted = self.profile.retries + 1, 1, 1
        while True:
            if self._patient and failure.status == _TOO_MANY:
                wait_s = self._wait_for_provider(call, failure)
            elif counted < attempts:
                wait_s = wait_before_retry(failure, counted, **_limits_of_wait(call))
                counted += 1
            elif not failure.retryable or made == 1:
                raise failure
            else:
                raise given_up(failure, made) from failure
            handle.retries += 1
            handle.doing = f"waiting to try again after: {failure}"
            handle.emit(Retried(handle.path, made, wait_s, str(failure)))
            await asyncio.sleep(wait_s)
            handle.retry_s = clock.now() - handle.started - handle.queue_s
            try:
                return await self._attempt(call)
            except WorkerFailure as next_failure:
                failure = next_failure
            made += 1

    def _wait_for_provider(self, call: Call, failure: WorkerFailure) -> float:
        """Seconds until the worker is asked again, after its provider refused a call as one too many.

        Raises:
            WorkerFailure: the failure, if the wait cannot help or would be too long.
        """
        if not failure.retryable:
            raise failure
        wait, environment = _limits_of_wait(call), call.run.environment
        limiter, now = self._limits.concurrency, environment.clock.steady()
        wait_s = limiter.held_s(now)
        for each_s in (failure.retry_after or 0.0, wait_s):
            require_worth_it(failure, each_s, **wait)
        refused_s = limiter.refused_s(now)
        if refused_s > wait["longest_wait_s"]:
            raise refused_too_long(failure, refused_s, wait["longest_wait_s"]) from failure
        return wait_s

    async def _fall_back(self, call: Call, failure: WorkerFailure) -> Reply:
        """Ask the fallback workers, in order."""
        handle: StepCall = call.run
        causes = [str(failure)]
        for other in self._fallbacks:
            profile = other.profile
            handle.emit(FellBack(handle.path, profile.name, str(failure)))
            handle.answered_by = profile.index
            try:
                return await other._persist(call)
            except WorkerFailure as next_failure:
                failure = next_failure
                causes.append(f"fallback worker {profile.index} ({profile.name}): {failure}")
        raise WorkerFailure("; ".join(causes), retryable=failure.retryable, status=failure.status) from failure

    def _after_timeout(self, handle: StepCall) -> CallPipeline | None:
        """The fallback workers that have not been asked, if the run has time left for them."""
        known = [self.profile.index, *(each.profile.index for each in self._fallbacks)]
        asked = 0 if handle.answered_by is None else known.index(handle.answered_by)
        left = self._fallbacks[asked:]
        over = handle.latest is not None and handle.environment.clock.steady() >= handle.latest
        if not left or over or handle.seconds is None:
            return None
        return CallPipeline(left[0]._worker, left[0].profile, left[1:])

    async def _instead(self, call: Call, failure: WorkerFailure) -> Reply:
        """Ask this worker, after the one before it has used up its time, for as many seconds."""
        handle: StepCall = call.run
        assert handle.seconds is not None  # that was the time
        handle.emit(FellBack(handle.path, self.profile.name, str(failure)))
        handle.answered_by = self.profile.index
        end = handle.environment.clock.steady() + handle.seconds
        try:
            return await self.ask(
                call._replace(deadline=end if handle.latest is None else min(end, handle.latest)),
            )
        except WorkerFailure as final:
            who = f"fallback worker {self.profile.index} ({self.profile.name})"
            raise WorkerFailure(f"{failure}; {who}: {final}", retryable=final.retryable, status=final.status) from final

    async def _persist(self, call: Call) -> Reply:
        """Ask, and ask again; without deadline, journal lookup and fallbacks."""
        try:
            return await self._attempt(call)
        except WorkerFailure as failure:
            return await self._retry(call, failure)

    async def _known(self, call: Call, journal: RunJournal) -> Reply | None:
        """The reply that the journal has, of the worker or of a fallback worker."""
        handle: StepCall = call.run
        for each in (self, *self._fallbacks):
            reply = await journal.find(each._key(call), call)
            if reply is not None:
                handle.replayed = True
                handle.answered_by = None if each is self else each.profile.index
                return reply
        journal.require_fit(call, self.profile.name)
        return None

    def _key(self, call: Call) -> Key:
        """The journal's key of a call of this worker, computed once where there is no fallback worker."""
        handle: StepCall = call.run
        if handle.key is None or handle.key[0] is not self.profile:
            handle.key = (self.profile, self.profile.key(call))
        return handle.key[1]

    async def _journaled(self, call: Call) -> Reply:
        """Note the attempt before it is made, and keep its reply before anything uses it."""
        environment: Environment = call.run.environment
        journal, now, profile = environment.journal, environment.clock.now, self.profile
        assert journal is not None  # callers have checked it
        store = journal.journal
        bound = profile.usage_bound(call)
        entry = CallEntry(journal.run_id, self._key(call), call, profile.name, bound)
        row = await store.begin(entry, now())
        try:
            reply = await _in_context(call.run.context, self._worker, call)
        except WorkerFailure as failure:
            store.fail(row, str(failure), profile.usage_of_failure(call, failure, bound), now())
            raise
        except asyncio.CancelledError:
            store.lose(row, now())
            raise
        if self._adds_cost:
            reply = self._with_cost(reply)
        return await store.finish(row, entry, reply, usage=profile.usage_of_reply(call, reply), at=now())

    def _with_cost(self, reply: Reply) -> Reply:
        """The reply with the price list's cost, if it counts tokens but claims to be free, though the list does not."""
        if reply.paid_usd != 0 or reply.list_usd != 0 or not reply.usage.total_tokens:
            return reply
        cost = self.profile.cost_usd(reply.usage)
        return replace(reply, paid_usd=cost, list_usd=cost)

    async def _wait_for_rate(self, call: Call, handle: StepCall) -> Taken:
        clock = handle.environment.clock
        since, handle.doing = clock.steady(), "waiting for the worker's limit per minute"
        output = self.profile.output_bound(call.settings) or 0
        taken = await self._limits.take(self.profile.input_bound(call.messages) / _BYTES_PER_TOKEN + output)
        await self._limits.concurrency.resumed()
        self._limits.leaves(taken)
        handle.queue_s += clock.steady() - since
        handle.doing = ASKING
        return taken


@coroutine
def _in_context(context: Context, worker: Ask, call: Call) -> Generator[Any, Any, Reply]:
    """A worker's reply, awaited inside a context. A task with that context would cost several times as much."""
    awaited = context.run(worker, call)
    reply: Any = awaited if type(awaited) is CoroutineType else awaited.__await__()
    try:
        waits_for = context.run(reply.send, None)
        while True:
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001  (it is handed on)
                waits_for = context.run(reply.throw, error)
            else:
                waits_for = context.run(reply.send, None)
    except StopIteration as over:
        result: Reply = over.value
        return result


class _WaitLimits(TypedDict):
    """How long a call may wait for another attempt."""

    longest_wait_s: float
    seconds_left: float | None


def _limits_of_wait(call: Call) -> _WaitLimits:
    environment: Environment = call.run.environment
    left = None if call.deadline is None else call.deadline - environment.clock.steady()
    return {"longest_wait_s": environment.config.longest_wait_s, "seconds_left": left}


def _rejected(handle: StepCall, reply: Reply) -> WorkerFailure:
    handle.earlier = (*handle.earlier, reply)
    return unusable(reply)


def _try_acquire(limiters: tuple[ConcurrencyLimiter, ...]) -> bool:
    """Take a place in all limiters, or in none."""
    for count, limiter in enumerate(limiters):
        if not limiter.try_acquire():
            for earlier in limiters[:count]:
                earlier.release()
            return False
    return True


async def _queue_for(limiters: tuple[ConcurrencyLimiter, ...], worker: AdaptiveLimiter, handle: StepCall) -> None:
    """Wait for a place in each limiter, one after the other.

    While the worker is held back, its calls keep no places of the run, which calls of other workers can use.
    """
    clock = handle.environment.clock
    since, handle.doing = clock.steady(), "queued"
    await worker.resumed()
    acquired: list[ConcurrencyLimiter] = []
    try:
        for limiter in limiters:
            await limiter.acquire()
            acquired.append(limiter)
    except asyncio.CancelledError:
        for limiter in acquired:
            limiter.release()
        raise
    handle.queue_s += clock.steady() - since
    handle.doing = ASKING


async def _wait_for_budget(bound: BudgetUsage, budget: BudgetTracker, handle: StepCall) -> None:
    handle.doing = "waiting for calls in flight to leave enough of the budget"
    await budget.reserve(bound)
    handle.doing = ASKING


def _settle(handle: StepCall, bound: BudgetUsage, used: BudgetUsage) -> None:
    """Charge what an attempt has used, and tell the listener."""
    environment = handle.environment
    tracker, listener = environment.budget, environment.listener
    assert tracker is not None  # the bound was reserved there
    tracker.settle(bound, used)
    if listener is None:
        return
    budget, wall_s = tracker.budget, 0.0
    if budget.seconds is not None and environment.wall_end is not None:
        wall_s = budget.seconds - (environment.wall_end - environment.clock.steady())
    listener(BudgetCharged(handle.path, tracker.calls, tracker.tokens, tracker.usd, wall_s, tracker.limits))


def _require_requested(error: asyncio.CancelledError) -> None:
    """Make a CancelledError that a worker let out by itself a failure; the caller, a failed step or a deadline ask.

    A task group would take the step for one that has ended.
    """
    task = asyncio.current_task()
    if task is not None and not task.cancelling():
        message = "something that the worker waited for was cancelled, but not by the run"
        raise WorkerFailure(message, retryable=False) from error


def _timed_out(handle: StepCall) -> WorkerFailure | BudgetSpent:
    if handle.wall_time_is_over():
        return BudgetSpent(f"the budget's wall time is over, while {handle.doing}")
    return WorkerFailure(f"timed out while {handle.doing}; increase the timeout", retryable=True)
