"""The line to a worker: the worker with its layers around it.

From the outside in: the deadline; what the journal knows; fallback workers; retries; the limits; the budget; the
journal's note of the attempt; the worker. So a reply that is known costs nothing and waits for nobody, and each
attempt waits for its turn, is paid for and is kept by itself. A Conductor node has none of them but the deadline: the
calls that it makes have their own.

A layer that has nothing to do for a call is a plain function that hands on the next one's awaitable, so that it costs
no coroutine.
"""

from __future__ import annotations

import asyncio
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from wfdsl.interpreter.budget import charged
from wfdsl.interpreter.deadline import in_time
from wfdsl.interpreter.journaling import journaled, replayed
from wfdsl.interpreter.limits import limited, limits_of
from wfdsl.interpreter.retry import retried, with_fallbacks
from wfdsl.interpreter.terms import terms_of

if TYPE_CHECKING:
    from types import TracebackType

    from wfdsl.interpreter.environment import Ask, WorkerPool
    from wfdsl.interpreter.terms import Terms
    from wfdsl.protocols import Call, Reply


class Line(NamedTuple):
    """How to ask a worker, and what is known of it."""

    ask: Ask
    terms: Terms


class Lines:
    """The lines to a pool's workers, by ordinal; each is built when it is first used."""

    __slots__ = ("_built", "_in_use", "_known", "_users", "pool")

    def __init__(
        self,
        pool: WorkerPool,
        known: dict[int, tuple[list[Ask], Line]] | None = None,
        in_use: dict[int, Lines] | None = None,
    ) -> None:
        self.pool = pool
        self._built: dict[int, Line] = {}
        self._known = {} if known is None else known
        """Lines of earlier runs, with the workers that they lead to: right as long as the pool gives the same ones."""
        self._in_use = {} if in_use is None else in_use
        self._users = 0

    def __enter__(self) -> Lines:
        self._users += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._users -= 1
        if not self._users:
            self._in_use.pop(id(self.pool), None)

    def __call__(self, ordinal: int) -> Line:
        """The line to a worker."""
        line = self._built.get(ordinal)
        if line is None:
            line = self._built[ordinal] = self._known_line(ordinal) or self._new_line(ordinal)
        return line

    def _known_line(self, ordinal: int) -> Line | None:
        known = self._known.get(ordinal)
        if known is None:
            return None
        workers, line = known
        ordinals = (ordinal, *line.terms.fallbacks)
        same = all(_itself(self.pool.worker(each)) is worker for each, worker in zip(ordinals, workers, strict=True))
        return line if same else None

    def _new_line(self, ordinal: int) -> Line:
        line = line_to(self.pool, ordinal)
        workers = [_itself(self.pool.worker(each)) for each in (ordinal, *line.terms.fallbacks)]
        self._known[ordinal] = (workers, line)
        return line


def lines_to(pool: WorkerPool) -> Lines:
    """The lines that all runs on a pool in this event loop share, to be used in a `with` block.

    While one of them runs, the pool's workers stay what they are.
    """
    loop = asyncio.get_running_loop()
    in_use = _IN_USE.get(loop)
    if in_use is None:
        in_use = _IN_USE[loop] = {}
    lines = in_use.get(id(pool))
    if lines is None:
        lines = in_use[id(pool)] = Lines(pool, _known_lines(pool, loop), in_use)
    return lines


_IN_USE: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, Lines]] = weakref.WeakKeyDictionary()
_Known: TypeAlias = "weakref.WeakKeyDictionary[WorkerPool, dict[int, tuple[list[Ask], Line]]]"
_KNOWN: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Known] = weakref.WeakKeyDictionary()


def _known_lines(pool: WorkerPool, loop: asyncio.AbstractEventLoop) -> dict[int, tuple[list[Ask], Line]]:
    """What this event loop's earlier runs on a pool have built; nothing for a pool that cannot be looked up."""
    known = _KNOWN.get(loop)
    if known is None:
        known = _KNOWN[loop] = weakref.WeakKeyDictionary()
    try:
        return known.setdefault(pool, {})
    except TypeError:
        return {}


def _itself(worker: Any) -> Ask:
    """The worker under what its pool has put around it."""
    itself: Ask = getattr(worker, "worker", worker)
    return itself


def line_to(pool: WorkerPool, ordinal: int) -> Line:
    """The line to one worker of a pool."""
    terms, worker = terms_of(pool, ordinal), pool.worker(ordinal)
    if terms.conductor or getattr(worker, "conductor", False):
        return Line(in_time(worker), replace(terms, conductor=True))
    others = tuple(terms_of(pool, other) for other in terms.fallbacks)
    asked = with_fallbacks(
        attempts(worker, terms), tuple((other, attempts(pool.worker(other.ordinal), other)) for other in others)
    )
    return Line(in_time(replayed(asked, (terms, *others))), terms)


def line_for(worker: Ask, terms: Terms) -> Ask:
    """The line to a worker that is in no pool, such as the model behind a Conductor node."""
    return in_time(replayed(attempts(worker, terms), (terms,)))


def attempts(worker: Ask, terms: Terms) -> Ask:
    """A worker with what belongs to each attempt around it, and further attempts."""
    return retried(
        limited(charged(journaled(priced(worker, terms), terms), terms), terms, limits_of(terms, worker)), terms
    )


def priced(worker: Ask, terms: Terms) -> Ask:
    """Put the price list's cost on replies that count tokens but say that they were free, though the list does not."""
    if terms.free or not terms.priced:
        return worker

    async def with_cost(call: Call) -> Reply:
        reply = await worker(call)
        if reply.paid_usd != 0 or reply.list_usd != 0 or not reply.usage.total_tokens:
            return reply
        cost = terms.cost_usd(reply.usage)
        return replace(reply, paid_usd=cost, list_usd=cost)

    return with_cost
