"""Which steps run, and when each may start: a pass over a workflow that is done once per run.

A step may start when every step that it sees has finished. Steps whose response can reach the last step by no path
are dead: they cannot change the answer and are left out unless they are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wfdsl.language.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Schedule:
    """What the executor needs to know about a workflow."""

    first: tuple[int, ...]
    """The steps that may start at once, ascending."""
    missing: tuple[int, ...]
    """For each step, how many steps that it sees have to finish before it may start; -1 for a step that never runs."""
    seen_by: tuple[tuple[int, ...], ...]
    """For each step, the steps to run that see it, ascending."""
    pruned: tuple[int, ...]
    """The dead steps that are left out."""
    workers: tuple[int | str, ...]
    """The workers of the steps to run, each once."""


@lru_cache(maxsize=256)
def schedule_of(workflow: Workflow, *, run_dead_steps: bool = False) -> Schedule:
    """The schedule of a workflow; `run_dead_steps` keeps the steps that cannot change the answer.

    Workflows that run many times, in training and serving, are worked out once.
    """
    count = len(workflow.steps)
    seen = [workflow.sees(step) for step in range(count)]
    live = [True] * count if run_dead_steps else _live(seen)
    seen_by: list[list[int]] = [[] for _ in seen]
    for step, earlier in enumerate(seen):
        if live[step]:
            for other in earlier:
                seen_by[other].append(step)
    return Schedule(
        first=tuple(step for step in range(count) if live[step] and not seen[step]),
        missing=tuple(len(seen[step]) if live[step] else -1 for step in range(count)),
        seen_by=tuple(map(tuple, seen_by)),
        pruned=tuple(step for step in range(count) if not live[step]),
        workers=tuple(dict.fromkeys(step.worker for index, step in enumerate(workflow) if live[index])),
    )


def _live(seen: list[tuple[int, ...]]) -> list[bool]:
    """Whether each step's response reaches the last step; one pass backwards, since steps see earlier ones only."""
    live = [False] * len(seen)
    if live:
        live[-1] = True
    for step in range(len(seen) - 1, -1, -1):
        if live[step]:
            for other in seen[step]:
                live[other] = True
    return live
