"""The layer that makes a call wait for its turn: in its run, among all runs, and at its worker.

A worker's limits hold for all runs in an event loop together. Its concurrency halves when the provider says that it is
asked too much, and grows by one with each round of calls that went well, up to the configured limit.
"""

from __future__ import annotations

import asyncio
import math
import weakref
from typing import TYPE_CHECKING, Any, TypeAlias

from wfdsl.interpreter.environment import ASKING
from wfdsl.interpreter.gate import Gate
from wfdsl.interpreter.rates import Taking, Window
from wfdsl.protocols import WorkerFailure

if TYPE_CHECKING:
    from collections.abc import Hashable

    from wfdsl.interpreter.environment import Ask, StepCall
    from wfdsl.interpreter.terms import Terms
    from wfdsl.protocols import Call, Reply

_TOO_MUCH = {429, 529}
"""HTTP statuses that say that the provider is asked too much."""
_BYTES_PER_TOKEN = 4
"""A usual ratio, for an estimate that is corrected once the reply is there. Our choice."""


class AdaptiveGate(Gate):
    """A gate that narrows when there is too much, and widens again."""

    __slots__ = ("_ceiling", "_narrowed_at")

    def __init__(self, ceiling: float = math.inf) -> None:
        super().__init__(ceiling)
        self._ceiling = ceiling
        self._narrowed_at = -math.inf

    def too_much(self, began: float, now: float) -> None:
        """Halve the limit, once for all the calls that were inside together when it became too much."""
        if began < self._narrowed_at:
            return
        self._narrowed_at = now
        self.limit = max(1.0, min(self.limit, self.inside) / 2)

    def went_well(self) -> None:
        """Widen by one for each round of calls as wide as the gate."""
        if self.limit < self._ceiling:
            self.limit = min(self.limit + 1 / self.limit, self._ceiling)
            self.let_in()


class WorkerLimits:
    """What holds a worker back, shared by all runs of an event loop."""

    __slots__ = ("gate", "requests", "tokens")

    def __init__(self, terms: Terms, loop: asyncio.AbstractEventLoop) -> None:
        self.gate = AdaptiveGate(math.inf if terms.concurrency is None else terms.concurrency)
        self.requests = _window(terms.requests_per_minute, loop)
        self.tokens = _window(terms.tokens_per_minute, loop)


def limits_of(terms: Terms, worker: Ask) -> WorkerLimits:
    """The limits of a worker in the running event loop.

    A model at a server is known by what its entry says, since pools come and go while the provider keeps counting;
    anything else by the worker itself.
    """
    loop = asyncio.get_running_loop()
    known = _LIMITS.setdefault(loop, {})
    itself = getattr(worker, "worker", worker)
    key: Hashable = terms.place or id(itself)
    if key not in known:
        held = None if terms.place else _reference(itself, known)
        known[key] = (held, WorkerLimits(terms, loop))
    return known[key][1]


def limited(ask: Ask, terms: Terms, limits: WorkerLimits) -> Ask:
    """Let a call through when its run, all runs together and its worker have room."""
    gate = limits.gate
    per_minute = limits.requests is not None or limits.tokens is not None

    async def in_turn(call: Call) -> Reply:
        handle: StepCall = call.run
        clock = handle.environment.clock
        entered: list[Gate] = []
        try:
            for each in (*handle.environment.gates, gate):
                if not each.try_enter():
                    await _wait_at(each, handle)
                entered.append(each)
            taken = await _take(limits, terms, call, handle) if per_minute else None
            handle.doing, began = ASKING, clock.steady()
            reply = await ask(call)
        except WorkerFailure as failure:
            if failure.status in _TOO_MUCH:
                gate.too_much(began, clock.steady())
            raise
        finally:
            for each in entered:
                each.leave()
        gate.went_well()
        if taken is not None and limits.tokens is not None:
            limits.tokens.correct(taken, reply.usage.total_tokens)
        return reply

    return in_turn


async def _wait_at(gate: Gate, handle: StepCall) -> None:
    clock = handle.environment.clock
    since, handle.doing = clock.steady(), "waiting for its turn"
    await gate.enter()
    handle.queue_s += clock.steady() - since


async def _take(limits: WorkerLimits, terms: Terms, call: Call, handle: StepCall) -> Taking | None:
    clock = handle.environment.clock
    since, handle.doing = clock.steady(), "waiting for the worker's limit per minute"
    if limits.requests is not None:
        await limits.requests.take(1)
    taken = None
    if limits.tokens is not None:
        output = terms.output_bound(call.settings) or 0
        taken = await limits.tokens.take(terms.input_bound(call.messages) / _BYTES_PER_TOKEN + output)
    handle.queue_s += clock.steady() - since
    return taken


_Known: TypeAlias = "dict[Hashable, tuple[Any, WorkerLimits]]"
_LIMITS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Known] = weakref.WeakKeyDictionary()


def _reference(worker: Ask, known: _Known) -> Any:
    """Something that keeps the worker's id its own: a weak reference that clears up, or else the worker itself."""
    key = id(worker)
    try:
        return weakref.ref(worker, lambda _: known.pop(key, None))
    except TypeError:
        return worker


def _window(limit: int | None, loop: asyncio.AbstractEventLoop) -> Window | None:
    return None if limit is None else Window(limit, loop.time)
