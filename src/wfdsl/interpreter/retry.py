"""The layers that ask again: the same worker after a wait, then its fallback worker.

A call that succeeds at once costs one try block. A wait is the longer of what the server asks for and a jittered
back-off; one that would pass the deadline fails at once, since waiting cannot help.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from wfdsl.interpreter.events import FellBack, Retried
from wfdsl.protocols import WorkerFailure

if TYPE_CHECKING:
    from collections.abc import Callable

    from wfdsl.interpreter.environment import Ask, StepCall
    from wfdsl.interpreter.terms import Terms
    from wfdsl.protocols import Call, Reply

_FIRST_BACK_OFF_S = 0.5
_LONGEST_BACK_OFF_S = 60.0
"""Doubling from the first to the longest, each with a random part of up to one half. Our choice."""

_UNUSABLE = {"empty": "the reply was empty", "filtered": "the provider's filter held the reply back"}


def retried(ask: Ask, terms: Terms, *, jitter: Callable[[], float] = random.random) -> Ask:
    """Ask again after failures that may pass, and after replies without content, as often as the worker's entry says.

    `jitter` gives numbers from 0 to 1.
    """

    async def persistent(call: Call) -> Reply:
        try:
            reply = await ask(call)
        except WorkerFailure as failure:
            return await again(call, failure)
        if reply.finish in _UNUSABLE:
            return await again(call, _unusable(reply))
        return reply

    async def again(call: Call, failure: WorkerFailure) -> Reply:
        handle: StepCall = call.run
        clock = handle.environment.clock
        for attempt in range(1, terms.retries + 1):
            wait_s = _wait_s(failure, attempt, jitter)
            _require_worth_waiting(failure, wait_s, call, handle)
            handle.retries += 1
            handle.doing = f"waiting to try again after: {failure}"
            handle.emit(Retried(handle.path, attempt, wait_s, str(failure)))
            await asyncio.sleep(wait_s)
            handle.retry_s = clock.now() - handle.started - handle.queue_s
            try:
                reply = await ask(call)
            except WorkerFailure as next_failure:
                failure = next_failure
                continue
            if reply.finish not in _UNUSABLE:
                return reply
            failure = _unusable(reply)
        if not failure.retryable or not terms.retries:
            raise failure
        raise _given_up(failure, terms.retries + 1) from failure

    return persistent


def with_fallbacks(ask: Ask, others: tuple[tuple[Terms, Ask], ...]) -> Ask:
    """Ask the other workers, in order, once a worker has failed for good."""
    if not others:
        return ask

    async def one_of_them(call: Call) -> Reply:
        try:
            return await ask(call)
        except WorkerFailure as failure:
            return await next_one(call, failure)

    async def next_one(call: Call, failure: WorkerFailure) -> Reply:
        handle: StepCall = call.run
        causes = [str(failure)]
        for terms, other in others:
            handle.emit(FellBack(handle.path, terms.name, str(failure)))
            handle.answered_by = terms.ordinal
            try:
                return await other(call)
            except WorkerFailure as next_failure:
                failure = next_failure
                causes.append(f"fallback worker {terms.ordinal} ({terms.name}): {failure}")
        raise WorkerFailure("; ".join(causes), retryable=failure.retryable, status=failure.status) from failure

    return one_of_them


def _wait_s(failure: WorkerFailure, attempt: int, jitter: Callable[[], float]) -> float:
    back_off_s = min(_FIRST_BACK_OFF_S * 2.0 ** (attempt - 1), _LONGEST_BACK_OFF_S)
    return max(failure.retry_after or 0.0, back_off_s * (0.5 + jitter() / 2))


def _require_worth_waiting(failure: WorkerFailure, wait_s: float, call: Call, handle: StepCall) -> None:
    """Raise the failure instead of waiting, if waiting is of no use or longer than there is time."""
    if not failure.retryable:
        raise failure
    environment = handle.environment
    if wait_s > environment.longest_wait_s:
        raise _too_long(failure, wait_s, f"more than the {environment.longest_wait_s:g} s that a run waits at most")
    if call.deadline is not None and environment.clock.steady() + wait_s >= call.deadline:
        raise _too_long(failure, wait_s, "which would pass the deadline")


def _too_long(failure: WorkerFailure, wait_s: float, why: str) -> WorkerFailure:
    asked = "the server asks to wait" if failure.retry_after == wait_s else "the next attempt would have to wait"
    return WorkerFailure(
        f"{failure}; {asked} {wait_s:g} s, {why}; resume the run after that time, or name a fallback worker",
        retryable=True,
        status=failure.status,
        retry_after=failure.retry_after,
        sent=failure.sent,
    )


def _given_up(failure: WorkerFailure, attempts: int) -> WorkerFailure:
    return WorkerFailure(
        f"{failure} ({attempts} attempts)",
        retryable=True,
        status=failure.status,
        retry_after=failure.retry_after,
        sent=failure.sent,
    )


def _unusable(reply: Reply) -> WorkerFailure:
    return WorkerFailure(_UNUSABLE[reply.finish], retryable=True)
