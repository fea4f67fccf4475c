"""The rows that a trainer is given: one per question and offer, built by the one prompt builder.

A row is what TRL hands on to the reward function: besides the messages only plain values, so that it can be kept in a
data set. `task` is the task's id, `row` the row's number, `shown` and `true` the ordinals of the offer and those of the
pool behind them; `answering` are those of the workers who answer, which are the same unless two were exchanged.
`weight` is what the reward is multiplied with, `forced` asks for a second round, and `previous` is the final pair of
the round before, in a second one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.listing import WorkerListing, offered_workers, shuffled_numbers
from wfdsl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wfdsl.conductor.prompt import Prompt
    from wfdsl.workers.pool import Pool
    from wfdsl_rl.tasks.task import Task


_ATTEMPTS = 1000


def is_held_out(ordinals: Sequence[int], share: float) -> bool:
    """Whether a subset is one of those that are kept from training: for all seeds the same."""
    named = ",".join(map(str, sorted(ordinals)))
    return random.Random(f"held out:{named}").random() < share


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What is drawn for each row, besides its question."""

    pick: tuple[int, ...] = ()
    """How many workers are offered: one of these numbers; none: all of them."""
    shuffle: bool = False
    """Whether the ordinals of a subset are dealt out anew for each row; the whole pool keeps its own."""
    held_out: float = 0.0
    """The part of the subsets that is kept from training; the whole pool never is."""
    unseen: bool = False
    """Whether only those that are held out are offered, rather than only the others."""
    seed: int = 0

    def offer(self, pool: Pool, row: int) -> WorkerListing:
        """The offer of a row.

        Raises:
            UsageError: no subset of these sizes is on the wanted side of those that are held out.
        """
        for attempt in range(_ATTEMPTS):
            key = str(row) if attempt == 0 else f"{row}:{attempt}"
            count = self._count(key)
            subset = count is not None and count < len(pool)
            config = ConductorConfig(pick=count, shuffle=self.shuffle and subset, seed=self.seed)
            chosen = offered_workers(config, pool, key)
            if self._wanted(chosen, len(pool)):
                return WorkerListing.of(chosen, shuffled_numbers(config, chosen, key))
        side = "only" if self.unseen else "none"
        raise UsageError(
            f"of the subsets of {self.pick} workers, {side} of those held out may be offered: widen `pick`"
        )

    def _count(self, key: str) -> int | None:
        return random.Random(f"count:{self.seed}:{key}").choice(self.pick) if self.pick else None

    def _wanted(self, chosen: Pool, size: int) -> bool:
        if not self.pick or not self.held_out:
            return True
        return self.unseen == (len(chosen) < size and is_held_out(chosen.ordinals, self.held_out))


def rows_of(
    tasks: Sequence[Task], pool: Pool, prompt: Prompt, *, count: int, max_steps: int, draw: Draw, split: str = "train"
) -> list[dict[str, Any]]:
    """`count` rows, which go through the tasks in a shuffled order, again and again.

    Each pass has an order of its own, drawn from the seed: a trainer that reads the rows once, in order, reads the same
    ones after it was interrupted.
    """
    return [
        _row(number, tasks[at], draw.offer(pool, number), prompt, max_steps=max_steps, split=split)
        for number, at in enumerate(_order(len(tasks), count, draw.seed))
    ]


def with_second_rounds(rows: Sequence[dict[str, Any]], *, share: float, discount: float) -> list[dict[str, Any]]:
    """The rows with a second round forced in a share of each stretch of them; the others count for `discount`."""
    return [
        {**row, "forced": True} if falls_into(share, at) else {**row, "weight": discount} for at, row in enumerate(rows)
    ]


def falls_into(share: float, at: int) -> bool:
    """Whether the row in a place is one of a share of them, evenly spread, so that every stretch has its part."""
    return int((at + 1) * share) > int(at * share)


def offer_of(row: dict[str, Any], pool: Pool) -> WorkerListing:
    """The offer that a row was built with."""
    return WorkerListing.of(pool.subset(sorted(row["true"])), dict(zip(row["shown"], row["true"], strict=True)))


def answering(row: Mapping[str, Any], offer: WorkerListing) -> WorkerListing:
    """The offer of a row with the workers who answer behind its ordinals."""
    return replace(offer, indices=dict(zip(row["shown"], row["answering"], strict=True)))


def _row(
    number: int, task: Task, offer: WorkerListing, prompt: Prompt, *, max_steps: int, split: str
) -> dict[str, Any]:
    return {
        "prompt": [dict(message) for message in prompt.ask(task.question, offer, max_steps=max_steps)],
        "row": number,
        "task": task.id,
        "kind": task.kind,
        "split": split,
        "shown": list(offer.ordinals),
        "true": [offer.indices[ordinal] for ordinal in offer.ordinals],
        "answering": [offer.indices[ordinal] for ordinal in offer.ordinals],
        "forced": False,
        "weight": 1.0,
        "previous": None,
        "begun": "",
        "asked": None,
    }


def _order(size: int, count: int, seed: int) -> list[int]:
    order: list[int] = []
    while len(order) < count:
        passed = list(range(size))
        random.Random(f"order:{seed}:{len(order)}").shuffle(passed)
        order += passed
    return order[:count]
