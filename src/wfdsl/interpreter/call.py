"""Call: everything that happens around one call of a worker, and the state of a step while its worker is asked.

In order: deadline; replay from the journal; then per attempt: concurrency and rate limits, budget, journal entry, the
worker; then retries, then fallback workers. So a reply that is known costs nothing and waits for nothing, and each
attempt waits for its turn, is paid for and is journaled by itself. A Conductor node has only the deadline: the calls
that it makes have pipelines of their own.
"""

from __future__ import annotations

import asyncio
import math
import time
import traceback
from dataclasses import dataclass, replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

from wfdsl.errors import JournalFailure, UsageError
from wfdsl.interpreter.budget import NOTHING_SPENT, BudgetTracker, BudgetUsage
from wfdsl.interpreter.events import BudgetCharged, Delta, FellBack, Listener, Path, Retried, unheard
from wfdsl.interpreter.journal import RunJournal
from wfdsl.interpreter.limits import (
    ConcurrencyLimiter,
    Pace,
    Taking,
    is_usable,
    limits_of,
    require_worth_it,
    unusable,
    wait_before_retry,
)
from wfdsl.interpreter.record import StepRecord
from wfdsl.interpreter.tools import Tools
from wfdsl.interpreter.worker_profile import WorkerProfile, profile_of
from wfdsl.language.diagnostics import WorkflowError
from wfdsl.protocols import Call, Message, Reply, Worker, WorkerFailure, WorkerPool

_ASKING = "waiting for the worker's reply"
_TOO_MANY = 429
_OVERLOADED = {_TOO_MANY, 529}
"""HTTP statuses by which a provider reports an overload; the first one says that a call came too early, no more."""
_LET_OUT = (WorkerFailure, asyncio.CancelledError, UsageError, WorkflowError)
"""What workers let out. Anything else is a mistake in a program, and is not caught."""
_BYTES_PER_TOKEN = 4
"""A usual ratio, for an estimate that is corrected once the reply is there. Our choice."""


class Clock:
    """Wall-clock times that never run backwards: read once, then advanced by the event loop's clock."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.steady = loop.time
        """The event loop's own seconds, in which deadlines are given."""
        self._offset = time.time() - loop.time()

    def now(self) -> float:
        """Seconds since 1970."""
        return self._offset + self.steady()

    def wall(self, steady: float) -> float:
        """Seconds since 1970, for the event loop's own."""
        return self._offset + steady


class Environment(NamedTuple):
    """What all calls of a run share, those of its nested runs included."""

    run_id: str
    longest_wait_s: float
    """How long a call waits at most for another attempt."""
    clock: Clock
    limiters: tuple[ConcurrencyLimiter, ...] = ()
    """What calls pass before they reach a worker: this run's own limiter, and the one that several runs share."""
    budget: BudgetTracker | None = None
    """None: nothing is counted, and there is no journal."""
    journal: RunJournal | None = None
    emit: Listener = unheard
    """Called with each event."""


@dataclass(slots=True, eq=False)
class StepCall:
    """The state of one step's call; `Call.run` holds it. The pipeline writes into its record."""

    environment: Environment
    path: Path
    profile: WorkerProfile
    record: StepRecord
    """What is known of the step so far."""
    began: float
    """When the step became ready, on the event loop's clock."""
    doing: str = _ASKING
    """What the call is waiting for, in words."""
    latest: float | None = None
    """When the run that the step is in has to be over, on the event loop's clock."""
    seconds: float | None = None
    """How many the step has for a worker; None: no limit but `latest`."""
    tools: Tools | None = None
    """The tools that the step's worker may call; None: it has none."""

    def __call__(self, text: str) -> None:
        """Tell the listener of a piece of the response. `Call.on_delta` is the step call itself: each call has one."""
        self.environment.emit(Delta(self.path, text))


class Pipelines(dict[int, "CallPipeline"]):
    """The call pipelines of a pool's workers, by index; each is built when it is first used.

    They are kept with the event loop, as limits are, for as long as the pool has the same workers.
    """

    def __init__(self, pool: WorkerPool) -> None:
        super().__init__()
        self.pool = pool
        known = vars(asyncio.get_running_loop()).setdefault("_wfdsl_pipelines", WeakKeyDictionary())
        self._kept: dict[int, CallPipeline] = known.setdefault(pool, {})

    def __missing__(self, index: int) -> CallPipeline:
        pool, worker, kept = self.pool, self.pool.worker(index), self._kept.get(index)
        if kept is None or kept.worker is not worker:
            profile = profile_of(pool, index)
            if getattr(worker, "conductor", False):
                profile = replace(profile, conductor=True)
            chain = () if profile.conductor else profile.fallbacks
            others = [CallPipeline(pool.worker(each), profile_of(pool, each), last=each == chain[-1]) for each in chain]
            kept = self._kept[index] = CallPipeline(worker, profile, tuple(others))
        self[index] = kept
        return kept


class CallPipeline:
    """How one worker is called."""

    def __init__(
        self, worker: Worker, profile: WorkerProfile, fallbacks: tuple[CallPipeline, ...] = (), *, last: bool = True
    ) -> None:
        """`fallbacks` are asked, in order, once the worker has failed for good; `last`: no other worker is asked then.

        The last worker is waited for while its provider refuses calls as too many; that uses up no attempt.
        """
        self.profile = profile
        self.worker = worker
        self._fallbacks = fallbacks
        self._limits = limits_of(profile, worker)
        self._patient = last and not fallbacks and profile.entry.retries > 0

    @property
    def profiles(self) -> tuple[WorkerProfile, ...]:
        """The profiles of the worker and of its fallback workers."""
        return (self.profile, *(each.profile for each in self._fallbacks))

    async def ask(self, call: Call) -> Reply:
        """The reply to a step's call: the journal's, the worker's, or that of a fallback worker.

        A fallback worker has the time that is left; after one that has used it all up, as much time again.

        Raises:
            WorkerFailure: no attempt gave a usable reply in time.
            BudgetSpent: the budget does not cover the call.
            JournalFailure: the call cannot be journaled.
            UsageError: the journal has its reply, but to another request.
        """
        handle: StepCall = call.run
        journal, clock = handle.environment.journal, handle.environment.clock
        if journal is not None and not self.profile.conductor:
            known = await self._known(call, journal)
            if known is not None:
                return known
        causes: list[str] = []
        failure: WorkerFailure | None = None
        for asked in (self, *self._fallbacks):
            profile = asked.profile
            if failure is not None:
                handle.environment.emit(FellBack(handle.path, profile.name, str(failure)))
                handle.record.answered_by = profile.index
            limit = asyncio.timeout_at(call.deadline)
            try:
                async with limit:
                    return await (asked.worker(call) if profile.conductor else asked._persist(call))
            except _LET_OUT as error:
                failure = asked._failure_of(error)
                if failure is None:
                    raise
            except TimeoutError as error:
                if not limit.expired():
                    raise
                failure = WorkerFailure(f"timed out while {handle.doing}; increase the timeout", retryable=True)
                failure.__cause__ = error
            who = f"fallback worker {profile.index} ({profile.name}): " if causes else ""
            causes.append(f"{who}{failure}")
            if limit.expired():
                now = clock.steady()
                if handle.seconds is None or (handle.latest is not None and now >= handle.latest):
                    break
                call = call._replace(deadline=min(now + handle.seconds, handle.latest or math.inf))
        assert failure is not None  # the loop ends only after one
        if len(causes) == 1:
            raise failure
        raise WorkerFailure("; ".join(causes), retryable=failure.retryable, status=failure.status) from failure

    async def _known(self, call: Call, journal: RunJournal) -> Reply | None:
        """The reply that the journal has, of the worker or of a fallback worker."""
        handle: StepCall = call.run
        for each in (self, *self._fallbacks):
            reply = await journal.find(each.profile.key(call), call)
            if reply is not None:
                handle.record.replayed = True
                handle.record.answered_by = None if each is self else each.profile.index
                return reply
        journal.require_fit(call, self.profile.name)
        return None

    async def _persist(self, call: Call) -> Reply:
        """Ask the worker, and ask it again."""
        handle: StepCall = call.run
        clock, made, counted = handle.environment.clock, 0, 0
        while True:
            try:
                return await self._attempt(call)
            except WorkerFailure as error:
                failure = error
            made += 1
            if self._patient and failure.status == _TOO_MANY:
                wait_s = self._wait_for_provider(call, failure)
            elif counted < self.profile.entry.retries:
                counted += 1
                wait_s = wait_before_retry(failure, counted, *_limits_of_wait(call))
            elif not failure.retryable or made == 1:
                raise failure
            else:
                raise failure.saying(f"{failure} ({made} attempts)") from failure
            handle.record.retries += 1
            handle.doing = f"waiting to try again after: {failure}"
            handle.environment.emit(Retried(handle.path, made, wait_s, str(failure)))
            await asyncio.sleep(wait_s)
            handle.record.retry_s = clock.steady() - handle.began - handle.record.queue_s

    def _wait_for_provider(self, call: Call, failure: WorkerFailure) -> float:
        """Seconds until the worker is asked again, after its provider refused a call as one too many.

        Raises:
            WorkerFailure: the failure, if the wait cannot help or would be too long.
        """
        if not failure.retryable:
            raise failure
        wait, pace = _limits_of_wait(call), self._limits.pace
        wait_s = pace.held_s()
        for each_s in (failure.retry_after or 0.0, wait_s):
            require_worth_it(failure, each_s, *wait)
        refused_s = pace.refused_s()
        if refused_s > wait[0]:
            raise failure.saying(
                f"{failure}; the provider has refused every call for {refused_s:.0f} s, and a run waits {wait[0]:g} s "
                "at most; resume the run later, or name a fallback worker"
            ) from failure
        return wait_s

    async def _attempt(self, call: Call) -> Reply:
        """Ask the worker once, when its limits allow it, the budget has reserved the call's upper bound and the journal
        has noted the attempt. Its reply is kept before anything uses it.
        """
        handle: StepCall = call.run
        environment, profile, limits, now = handle.environment, self.profile, self._limits, handle.environment.clock.now
        budget, journal, key, row = environment.budget, environment.journal, "", None
        taken: list[Taking] = []
        limiters = (*environment.limiters, *limits.concurrency)
        waits_first = not (limits.pace.is_open or limits.per_minute)
        await _queue_for(limiters, limits.pace if waits_first else None, handle)
        try:
            if limits.per_minute:
                taken = await self._wait_for_rate(call, handle)
            bound = NOTHING_SPENT if budget is None else profile.usage_bound(call)
            if budget is not None:
                handle.doing = "waiting for calls in flight to leave enough of the budget"
                await budget.reserve(bound)
                handle.doing = _ASKING
            used, began = bound, environment.clock.steady()  # the bound stays charged until it is known what was used
            for each in taken:
                each.at = began  # it leaves only now
            try:
                if journal is not None:
                    key = profile.key(call)
                    row = await journal.begin(key, call, profile.name, profile.charge(bound), now())
                reply = profile.with_price(await self.worker(call))
                actual = bound if budget is None else profile.usage_of_reply(call, reply)
                if journal is not None and row is not None:
                    begun, row = row, None  # the call is over, and not lost if this is cancelled
                    charge = profile.charge(actual, paid_usd=reply.paid_usd)
                    usable = is_usable(reply, call)
                    reply = await journal.finish(begun, key, call, reply, charge, at=now(), usable=usable)
                used = actual
            except _LET_OUT as error:
                used = self._used_without_reply(call, self._failure_of(error), row, bound, began)
                raise
            finally:
                if budget is not None:
                    budget.settle(bound, used)
                    environment.emit(BudgetCharged(handle.path, *budget.spent, budget.limits))
        finally:
            for limiter in limiters:
                limiter.release()
        limits.pace.succeeded(began)
        if limits.tokens is not None:
            taken[-1].amount = reply.usage.total_tokens
        if not is_usable(reply, call):
            handle.record.count(reply)
            raise unusable(reply)
        return reply

    def _used_without_reply(
        self, call: Call, failure: WorkerFailure | None, row: int | None, bound: BudgetUsage, began: float
    ) -> BudgetUsage:
        """What an attempt that failed or was cancelled has used, as the journal keeps it.

        A reply that was paid for is kept, and a worker whose provider is overloaded rests.
        """
        handle: StepCall = call.run
        environment, used, status, said = handle.environment, bound, "lost", ""
        if failure is not None:
            used, status, said = self.profile.usage_of_failure(call, failure, bound), "failed", str(failure)
            if failure.rejected is not None:
                handle.record.count(failure.rejected)
            if failure.status in _OVERLOADED:
                asked_s = failure.retry_after or 0.0  # nothing is held back for a wait that no run makes
                self._limits.pace.refused(began, asked_s if asked_s <= environment.longest_wait_s else None)
        if environment.journal is not None and row is not None:
            environment.journal.fail(row, status, self.profile.charge(used), environment.clock.now(), said)
        return used

    def _failure_of(self, error: BaseException) -> WorkerFailure | None:
        """What an error that the worker let out is for its step; None: it ends the run."""
        if isinstance(error, WorkerFailure):
            return error
        if isinstance(error, asyncio.CancelledError):
            # The caller, a failed step or a deadline asks for a cancel. Of one that the worker lets out by itself, a
            # task group would take the step for one that has ended.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                return None
            said = "something that the worker waited for was cancelled, but not by the run"
        elif isinstance(error, JournalFailure) or (self.profile.conductor and self.profile.index < 0):
            return None
        else:  # the worker cannot be used, and the run has been paid for
            is_plain = type(error).__str__ is BaseException.__str__
            said = str(error) if is_plain else traceback.format_exception_only(error)[-1].strip()  # never raises
        failure = WorkerFailure(said, retryable=False)
        failure.__cause__ = error
        return failure

    async def _wait_for_rate(self, call: Call, handle: StepCall) -> list[Taking]:
        clock = handle.environment.clock
        since, handle.doing = clock.steady(), "waiting for the worker's limit per minute"
        output = self.profile.output_bound(call.settings)
        taken = await self._limits.take(self.profile.input_bound(call.messages) / _BYTES_PER_TOKEN + output)
        if not self._limits.pace.is_open:
            await self._limits.pace.turn()
        handle.record.queue_s += clock.steady() - since
        handle.doing = _ASKING
        return taken


class StepSuspended(Exception):  # noqa: N818  (nothing has failed)
    """A worker has called tools whose results are not known."""


async def ask_with_tools(pipeline: CallPipeline, call: Call, tools: Tools) -> Reply:
    """The reply that calls no tools: the worker is asked again with the results of those that it has called.

    What was said until then is in the messages of the step's call.

    Raises:
        StepSuspended: a result is not known.
        WorkerFailure, BudgetSpent, JournalFailure, UsageError: as `CallPipeline.ask` does.
    """
    handle: StepCall = call.run
    journal = handle.environment.journal
    assert journal is not None  # `run` has checked it
    rounds, known = 0, journal.tool_calls.get(call.path, ())
    while True:
        reply = await pipeline.ask(call._replace(settings={**call.settings, **tools.settings(rounds)}))
        if not reply.tool_calls:
            return reply
        handle.record.count(reply)
        count = len(reply.tool_calls)
        issued, known = known[:count], known[count:]
        if not issued:
            issued = await journal.issue(call.path, reply.tool_calls, handle.environment.clock.now())
        named = [own._replace(id=each.id)._asdict() for own, each in zip(reply.tool_calls, issued, strict=True)]
        said: list[Message] = [{"role": "assistant", "content": reply.text, "tool_calls": named}]
        for each in issued:
            if each.result is None:
                handle.record.messages = (*call.messages, said[0])
                raise StepSuspended
            said.append({"role": "tool", "content": each.result, "tool_call_id": each.id})
        rounds += 1
        handle.record.messages = (*call.messages, *said)
        handle.record.replayed, handle.record.answered_by = False, None
        call = call._replace(messages=handle.record.messages)


def _limits_of_wait(call: Call) -> tuple[float, float | None]:
    """How long a call may wait for another attempt, and the seconds that it has left."""
    environment: Environment = call.run.environment
    left = None if call.deadline is None else call.deadline - environment.clock.steady()
    return environment.longest_wait_s, left


async def _queue_for(limiters: tuple[ConcurrencyLimiter, ...], pace: Pace | None, handle: StepCall) -> None:
    """Wait for a place in each limiter, one after the other.

    While the worker is held back, its calls keep no places of the run, which calls of other workers can use.
    """
    clock = handle.environment.clock
    since, handle.doing = clock.steady(), "queued"
    if pace is not None:
        await pace.turn()
    for before, limiter in enumerate(limiters):
        try:
            await limiter.acquire()
        except asyncio.CancelledError:
            for each in limiters[:before]:
                each.release()
            raise
    handle.record.queue_s += clock.steady() - since
    handle.doing = _ASKING
