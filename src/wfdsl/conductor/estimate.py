"""Estimate of a question that a Conductor answers: what it would be sent first, and the most calls and dollars.

Each completion is counted at its longest, each round with the most steps, each step at the dearest worker that is
offered and as if it saw all earlier replies, and text at its UTF-8 bytes. So the bound is far above what is usual.
"""

from __future__ import annotations

from dataclasses import dataclass

from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.listing import list_workers
from wfdsl.conductor.prompt import question_text
from wfdsl.interpreter.context import Question, QuestionFor
from wfdsl.interpreter.worker_profile import utf8_bytes
from wfdsl.protocols import Message
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool

_REASK_TOKENS = 2000
"""More than a message with five problems of 300 characters each can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveEstimate:
    """What a question may take at most, without retries and the calls of Conductor nodes."""

    messages: tuple[Message, ...]
    """What the Conductor would be sent first."""
    rounds: int
    """The most rounds that are counted."""
    steps: int
    """The most steps of a round's workflow."""
    completions: int
    """The most completions of a round, re-asks included."""
    usd: float | None
    """US dollars at most; None if a price is not known."""
    price_not_known: tuple[str, ...]
    """The names of the models without a price."""

    @property
    def calls(self) -> int:
        """Calls of Conductor and workers together."""
        return self.rounds * (self.steps + self.completions)


def estimate_solve(
    conductor: Conductor, question: Question, pool: Pool, *, question_for: QuestionFor = "all", first_round: int = 0
) -> SolveEstimate:
    """Work out what answering a question could take; rounds before `first_round` have been paid for."""
    settings, listing = conductor.settings, list_workers(conductor.config, pool, question_text(question))
    messages = settings.prompt.ask(
        question,
        listing,
        max_steps=settings.max_steps,
        question_for=question_for,
        access=settings.config.access,
        effort=settings.config.effort,
    )
    workers = [pool.entry(index) for index in listing.pool_indices.values()]
    rounds = range(first_round, settings.max_rounds + 1)
    completions = settings.config.reasks + 1
    unknown = dict.fromkeys(entry.name for entry in (conductor.entry, *workers) if entry.prices is None)
    usd = None
    if not unknown:
        asked = sum(utf8_bytes(message["content"]) for message in messages)
        shown, written = settings.config.max_response_chars, conductor.entry.output_limit
        usd = len(rounds) * max(_steps_usd(entry, asked, settings.max_steps) for entry in workers)
        for before in rounds:
            for reasks in range(completions):
                read = asked + before * (written + shown) + reasks * (written + _REASK_TOKENS)
                usd += conductor.entry.most_usd(read, written) or 0.0
    return SolveEstimate(
        messages=messages,
        rounds=len(rounds),
        steps=settings.max_steps,
        completions=completions,
        usd=usd,
        price_not_known=tuple(unknown),
    )


def _steps_usd(entry: WorkerEntry, asked: int, steps: int) -> float:
    written = entry.output_limit
    return sum(entry.most_usd(asked + step * written, written) or 0.0 for step in range(1, steps + 1))
