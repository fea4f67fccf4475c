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
from dataclasses import InitVar, dataclass, field, replace

from wfdsl.errors import JournalFailure, UsageError
from wfdsl.interpreter.budget import BudgetTracker, BudgetUsage
from wfdsl.interpreter.config import RunConfig
from wfdsl.interpreter.events import BudgetCharged, Delta, Event, FellBack, Listener, Path, Retried
from wfdsl.interpreter.journal import CallEntry, RunJournal
from wfdsl.interpreter.limits import (
    UNUSABLE,
    ConcurrencyLimiter,
    Pace,
    Taking,
    limits_of,
    require_worth_it,
    unusable,
    wait_before_retry,
)
from wfdsl.interpreter.record import LostCall, StepRecord
from wfdsl.interpreter.tools import Tools, calling, results
from wfdsl.interpreter.worker_profile import WorkerProfile, profile_of
from wfdsl.language.diagnostics import WorkflowError
from wfdsl.protocols import Ask, Call, Message, Reply, WorkerFailure, WorkerPool

_ASKING = "waiting for the worker's reply"
_TOO_MANY = 429
_OVERLOADED = {_TOO_MANY, 529}
"""HTTP statuses by which a provider reports an overload; the first one says that a call came too early, no more."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What all calls of a run share, those of its nested runs included."""

    run_id: str
    sample_id: str
    """Distinguishes this run's calls from the same calls of other runs."""
    config: RunConfig
    clock: Clock
    limiters: tuple[ConcurrencyLimiter, ...] = ()
    """What calls pass before they reach a worker: this run's own limiter, and the one that several runs share."""
    budget: BudgetTracker | None = None
    journal: RunJournal | None = None
    lost: tuple[LostCall, ...] = ()
    """Calls of earlier processes whose result is unknown."""
    listener: Listener | None = None


@dataclass(slots=True, eq=False)
class StepCall:
    """The state of one step's call; `Call.run` holds it. The pipeline writes into its record."""

    environment: Environment
    path: Path
    profile: WorkerProfile
    messages: InitVar[tuple[Message, ...]]
    record: StepRecord = field(init=False)
    """What is known of the step so far."""
    started: float = field(init=False)
    doing: str = _ASKING
    """What the call is waiting for, in words."""
    latest: float | None = None
    """When the run that the step is in has to be over, on the event loop's clock."""
    seconds: float | None = None
    """How many the step has for a worker; None: no limit but `latest`."""
    replies: list[Reply] = field(default_factory=list)
    """All that were paid for, those that could not be used or that called tools included."""
    tools: Tools | None = None
    """The tools that the step's worker may call; None: it has none."""

    def __post_init__(self, messages: tuple[Message, ...]) -> None:
        self.started, profile = self.environment.clock.now(), self.profile
        self.record = StepRecord(self.path[-1], profile.index, profile.name, messages, started=self.started)

    def __call__(self, text: str) -> None:
        """Tell the listener of a piece of the response. `Call.on_delta` is the step call itself: each call has one."""
        self.emit(Delta(self.path, text))

    def emit(self, event: Event) -> None:
        """Tell the listener, if there is one."""
        if self.environment.listener is not None:
            self.environment.listener(event)


class Pipelines:
    """The call pipelines of a pool's workers, by index; each is built when it is first used."""

    def __init__(self, pool: WorkerPool) -> None:
        self.pool = pool
        self._built: dict[int, CallPipeline] = {}

    def __getitem__(self, index: int) -> CallPipeline:
        if index not in self._built:
            self._built[index] = self._pipeline(index)
        return self._built[index]

    def _pipeline(self, index: int) -> CallPipeline:
        pool, worker, profile = self.pool, self.pool.worker(index), profile_of(self.pool, index)
        if getattr(worker, "conductor", False):
            profile = replace(profile, conductor=True)
        chain = () if profile.conductor else profile.fallbacks
        others = [CallPipeline(pool.worker(each), profile_of(pool, each), last=each == chain[-1]) for each in chain]
        return CallPipeline(worker, profile, tuple(others))

    def name_of(self, index: int) -> str:
        """The name of a worker, which need not be built for it."""
        return str(self.pool.entry(index).name)


class CallPipeline:
    """How one worker is called."""

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
                handle.emit(FellBack(handle.path, profile.name, str(failure)))
                handle.record.answered_by = profile.index
            limit = asyncio.timeout_at(call.deadline)
            try:
                async with limit:
                    return await (asked._reply(call) if profile.conductor else asked._persist(call))
            except WorkerFailure as error:
                failure = error
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
            handle.emit(Retried(handle.path, made, wait_s, str(failure)))
            await asyncio.sleep(wait_s)
            handle.record.retry_s = clock.now() - handle.started - handle.record.queue_s

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
        """Ask the worker once: when its limits allow it, and once the budget has reserved the call's upper bound."""
        handle: StepCall = call.run
        environment, profile, limits = handle.environment, self.profile, self._limits
        limiters = (*environment.limiters, *limits.concurrency)
        waits_first = not (limits.pace.is_open or limits.per_minute)
        await _queue_for(limiters, limits.pace if waits_first else None, handle)
        taken: list[Taking] = []
        bound: BudgetUsage | None = None
        used: BudgetUsage | None = None  # until it is known, the bound stays charged
        began = 0.0
        try:
            if limits.per_minute:
                taken = await self._wait_for_rate(call, handle)
            if environment.budget is not None:
                needed = profile.usage_bound(call)
                if not environment.budget.try_reserve(needed):
                    handle.doing = "waiting for calls in flight to leave enough of the budget"
                    await environment.budget.reserve(needed)
                    handle.doing = _ASKING
                    _leave_now(taken, handle)
                bound = needed
            began = environment.clock.steady()
            journal = environment.journal
            reply = await (self._reply(call) if journal is None else self._journaled(call, journal))
            used = None if bound is None else profile.usage_of_reply(call, reply)
        except WorkerFailure as failure:
            used = None if bound is None else profile.usage_of_failure(call, failure, bound)
            self._note_failure(handle, failure, began)
            raise
        finally:
            if bound is not None:
                _settle(handle, bound, bound if used is None else used)
            for limiter in limiters:
                limiter.release()
        limits.pace.succeeded(began)
        if limits.tokens is not None:
            taken[-1].amount = reply.usage.total_tokens
        if reply.finish in UNUSABLE and not (reply.tool_calls and call.settings.get("tools")):
            handle.replies.append(reply)
            raise unusable(reply)
        return reply

    def _note_failure(self, handle: StepCall, failure: WorkerFailure, began: float) -> None:
        """Keep a reply that was paid for, and let the worker rest if its provider is overloaded."""
        if failure.rejected is not None:
            handle.replies.append(failure.rejected)
        if failure.status in _OVERLOADED:
            asked_s = failure.retry_after or 0.0
            longest_s = handle.environment.config.longest_wait_s  # nothing is held back for a wait that no run makes
            self._limits.pace.refused(began, asked_s if asked_s <= longest_s else None)

    async def _reply(self, call: Call) -> Reply:
        """The worker's reply, with the price list's cost if it counts tokens but claims to be free."""
        try:
            reply = await _asked(self._worker, call)
        except (UsageError, WorkflowError) as error:  # the worker cannot be used, and the run has been paid for
            is_root = self.profile.conductor and self.profile.index < 0
            if isinstance(error, JournalFailure) or is_root:
                raise
            is_plain = type(error).__str__ is BaseException.__str__
            said = str(error) if is_plain else traceback.format_exception_only(error)[-1].strip()  # never raises
            raise WorkerFailure(said, retryable=False) from error
        cost = self.profile.cost_usd(reply.usage)
        return replace(reply, paid_usd=cost, list_usd=cost) if cost and reply.paid_usd == reply.list_usd == 0 else reply

    async def _journaled(self, call: Call, journal: RunJournal) -> Reply:
        """Note the attempt before it is made, and keep its reply before anything uses it."""
        store, now, profile = journal.journal, call.run.environment.clock.now, self.profile
        bound = profile.usage_bound(call)
        entry = CallEntry(journal.run_id, profile.key(call), call, profile.name, bound, profile.priced)
        row = await store.begin(entry, now())
        try:
            reply = await self._reply(call)
        except WorkerFailure as failure:
            store.fail(row, entry, str(failure), profile.usage_of_failure(call, failure, bound), now())
            raise
        except asyncio.CancelledError:
            store.lose(row, now())
            raise
        return await store.finish(row, entry, reply, usage=profile.usage_of_reply(call, reply), at=now())

    async def _wait_for_rate(self, call: Call, handle: StepCall) -> list[Taking]:
        clock = handle.environment.clock
        since, handle.doing = clock.steady(), "waiting for the worker's limit per minute"
        output = self.profile.output_bound(call.settings)
        taken = await self._limits.take(self.profile.input_bound(call.messages) / _BYTES_PER_TOKEN + output)
        if not self._limits.pace.is_open:
            await self._limits.pace.turn()
        _leave_now(taken, handle)
        handle.record.queue_s += clock.steady() - since
        handle.doing = _ASKING
        return taken


async def _asked(worker: Ask, call: Call) -> Reply:
    """A worker's reply. A CancelledError that it lets out by itself is a failure.

    The caller, a failed step or a deadline asks for a cancel; of another one, a task group would take the step for one
    that has ended.
    """
    try:
        return await worker(call)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and not task.cancelling():
            message = "something that the worker waited for was cancelled, but not by the run"
            raise WorkerFailure(message, retryable=False) from error
        raise


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
        handle.replies.append(reply)
        count = len(reply.tool_calls)
        issued, known = known[:count], known[count:]
        if not issued:
            issued = await journal.journal.issue(
                journal.run_id, call.path, reply.tool_calls, handle.environment.clock.now()
            )
        handle.record.messages = (*call.messages, calling(reply.text, reply.tool_calls, issued))
        if any(each.result is None for each in issued):
            raise StepSuspended
        rounds += 1
        handle.record.messages = (*handle.record.messages, *results(issued))
        handle.record.replayed, handle.record.answered_by = False, None
        call = call._replace(messages=handle.record.messages)


def _leave_now(taken: list[Taking], handle: StepCall) -> None:
    """Count a request from now on, since it leaves only now."""
    for each in taken:
        each.at = handle.environment.clock.steady()


def _limits_of_wait(call: Call) -> tuple[float, float | None]:
    """How long a call may wait for another attempt, and the seconds that it has left."""
    environment: Environment = call.run.environment
    left = None if call.deadline is None else call.deadline - environment.clock.steady()
    return environment.config.longest_wait_s, left


async def _queue_for(limiters: tuple[ConcurrencyLimiter, ...], pace: Pace | None, handle: StepCall) -> None:
    """Wait for a place in each limiter, one after the other.

    While the worker is held back, its calls keep no places of the run, which calls of other workers can use.
    """
    clock = handle.environment.clock
    since, handle.doing = clock.steady(), "queued"
    if pace is not None:
        await pace.turn()
    acquired: list[ConcurrencyLimiter] = []
    try:
        for limiter in limiters:
            await limiter.acquire()
            acquired.append(limiter)
    except asyncio.CancelledError:
        for limiter in acquired:
            limiter.release()
        raise
    handle.record.queue_s += clock.steady() - since
    handle.doing = _ASKING


def _settle(handle: StepCall, bound: BudgetUsage, used: BudgetUsage) -> None:
    """Charge what an attempt has used, and tell the listener."""
    environment = handle.environment
    tracker, listener = environment.budget, environment.listener
    assert tracker is not None  # the bound was reserved there
    tracker.settle(bound, used)
    if listener is not None:
        budget = tracker.budget
        listener(BudgetCharged(handle.path, *tracker.spent, (budget.calls, budget.tokens, budget.usd)))
