"""The layers that keep calls in a journal, and that answer from it in place of a worker."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wfdsl.interpreter.budget import bound_of, charge_of, charge_of_failure
from wfdsl.interpreter.journal import Attempt
from wfdsl.protocols import WorkerFailure

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from wfdsl.interpreter.environment import Ask, StepCall
    from wfdsl.interpreter.journal import Journal, Key
    from wfdsl.interpreter.terms import Terms
    from wfdsl.protocols import Call, Reply


@dataclass(frozen=True, slots=True)
class RunJournal:
    """A journal as one run uses it."""

    journal: Journal
    run_id: str
    replies: dict[Key, Reply]
    """What this run's earlier processes were answered."""
    shared_sample: bool = False
    """Whether other runs may have the same sample, so that the journal has to be asked."""
    reuse: bool = False
    """Whether replies of other runs may be used again."""

    async def find(self, key: Key, sample: str) -> Reply | None:
        """A reply that this run, or with `reuse` any run, has for a key."""
        reply = self.replies.get(key)
        if reply is None and self.shared_sample:
            reply = await self.journal.find(key, sample)
        if reply is None and self.reuse:
            reply = await self.journal.find(key, None)
            return None if reply is None else replace(reply, paid_usd=0.0)
        return reply


def key_of(fingerprint: str, call: Call) -> Key:
    """What makes two calls the same, the sample apart."""
    parts = [fingerprint, dict(call.settings), call.messages, call.path]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def replayed(ask: Ask, terms: tuple[Terms, ...]) -> Ask:
    """Answer from the journal what the worker, or a fallback worker in its place, has answered already."""

    def known_or_asked(call: Call) -> Awaitable[Reply]:
        journal = call.run.environment.journal
        return ask(call) if journal is None else known(call, journal)

    async def known(call: Call, journal: RunJournal) -> Reply:
        handle: StepCall = call.run
        for each in terms:
            reply = await journal.find(key_of(each.fingerprint, call), call.sample)
            if reply is not None:
                handle.replayed = True
                handle.answered_by = None if each is terms[0] else each.ordinal
                return reply
        return await ask(call)

    return known_or_asked


def journaled(ask: Ask, terms: Terms) -> Ask:
    """Note each attempt before it is made, and keep its reply before anything uses it."""

    def kept_or_not(call: Call) -> Awaitable[Reply]:
        journal = call.run.environment.journal
        return ask(call) if journal is None else kept(call, journal)

    async def kept(call: Call, journal: RunJournal) -> Reply:
        handle: StepCall = call.run
        clock, store = handle.environment.clock, journal.journal
        attempt = Attempt(journal.run_id, key_of(terms.fingerprint, call), call, terms.name, bound_of(terms, call))
        row = await store.begin(attempt, clock.now())
        try:
            reply = await ask(call)
        except WorkerFailure as failure:
            store.fail(row, str(failure), charge_of_failure(failure, attempt.bound), clock.now())
            raise
        except asyncio.CancelledError:
            store.lose(row, clock.now())
            raise
        return await store.finish(row, attempt, reply, charge=charge_of(terms, call, reply), at=clock.now())

    return kept_or_not
