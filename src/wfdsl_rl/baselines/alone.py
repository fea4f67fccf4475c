"""What all baselines share: whom they ask, what a worker alone is asked, and where there are tasks to learn on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wfdsl.errors import UsageError
from wfdsl.language.workflow import Step, Workflow

if TYPE_CHECKING:
    from wfdsl.workers.pool import Pool

SOLVE: Final = "Solve the task and give the final answer."
"""What a worker is asked that solves the task by itself, in every baseline; our choice."""

_GYM: Final = "gym"


def alone(worker: int) -> Workflow:
    """The workflow of one call."""
    return Workflow((Step(worker, SOLVE),))


def workers_of(pool: Pool) -> tuple[int, ...]:
    """The ordinals that baselines ask: all but the Conductors, which would bring workflows of their own.

    Raises:
        UsageError: the pool has Conductors only.
    """
    found = tuple(ordinal for ordinal in pool.ordinals if ordinal not in pool.conductors)
    if not found:
        raise UsageError(f"pool {pool.name!r} has Conductors only: a baseline asks plain workers, so give it one")
    return found


def own_tasks(pool: Pool) -> str | None:
    """The name of the training tasks that a pool of simulated workers brings along; None for all other pools."""
    presets = [entry.options.get("preset") for entry in pool if entry.provider == _GYM]
    return f"{presets[0]}@train" if presets else None
