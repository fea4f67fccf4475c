"""Retry policy: whether a failed call is worth another attempt, and how long to wait before it.

A wait is the longer of what the server asks for and a back-off with jitter. A wait that would pass the deadline fails
at once, since it cannot help.
"""

from __future__ import annotations

import random

from wfdsl.protocols import Reply, WorkerFailure

FIRST_BACK_OFF_S = 0.5
LONGEST_BACK_OFF_S = 60.0
"""Doubling from the first to the longest, of each a random part of at least one half. Our choice."""

UNUSABLE = {
    "empty": "the reply was empty",
    "filtered": "the provider's filter withheld the reply",
    "only_thinking": "the reply holds only thinking, and no text",
    "tool_calls": "the reply has no text: the model asked for a tool, and workers have none",
    "out_of_tokens": "the reply reached its token limit before any text, as when all of it went into thinking; "
    "raise max_tokens, or let the model think less",
}
"""Replies that count as failures, by how they finished."""


class UnusableReply(WorkerFailure):
    """The worker answered, with nothing that can be used."""


def wait_before_retry(
    failure: WorkerFailure, attempt: int, *, longest_wait_s: float, seconds_left: float | None
) -> float:
    """Seconds to wait after the failure of an attempt, counted from 1.

    Raises:
        WorkerFailure: the failure again, if another attempt cannot help or the wait would be too long.
    """
    if not failure.retryable:
        raise failure
    back_off_s = part_of(min(FIRST_BACK_OFF_S * 2.0 ** (attempt - 1), LONGEST_BACK_OFF_S))
    require_worth_it(
        failure, max(failure.retry_after or 0.0, back_off_s), longest_wait_s=longest_wait_s, seconds_left=seconds_left
    )
    return max(jittered(failure.retry_after or 0.0), back_off_s)


def require_worth_it(
    failure: WorkerFailure, wait_s: float, *, longest_wait_s: float, seconds_left: float | None
) -> None:
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
    return UnusableReply(UNUSABLE[reply.finish], retryable=reply.finish != "out_of_tokens", rejected=reply)


def given_up(failure: WorkerFailure, attempts: int) -> WorkerFailure:
    """The failure of the last attempt, with the number of attempts."""
    return _like(failure, f"{failure} ({attempts} attempts)")


def refused_too_long(failure: WorkerFailure, refused_s: float, longest_wait_s: float) -> WorkerFailure:
    """The failure of a call whose worker has been refusing everything."""
    return _like(
        failure,
        f"{failure}; the provider has refused every call for {refused_s:.0f} s, and a run waits {longest_wait_s:g} s "
        "at most; resume the run later, or name a fallback worker",
    )


def _too_long(failure: WorkerFailure, wait_s: float, why: str) -> WorkerFailure:
    asked = "the server asks to wait" if failure.retry_after == wait_s else "the next attempt would have to wait"
    return _like(
        failure, f"{failure}; {asked} {wait_s:g} s, {why}; resume the run after that time, or name a fallback worker"
    )


def _like(failure: WorkerFailure, message: str) -> WorkerFailure:
    return type(failure)(
        message,
        retryable=True,
        status=failure.status,
        retry_after=failure.retry_after,
        sent=failure.sent,
        rejected=failure.rejected,
    )
