"""Gold answers graded against themselves: whether tasks can be graded, and the grader agrees with them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wfdsl.grading.grade import grade
from wfdsl.grading.verdict import Verdict
from wfdsl.tasks.task import Task

_AT_ONCE = 16  # gradings at one time: each waits for a process of its own

Found: TypeAlias = Literal["right", "wrong", "unjudged", "without gold"]


@dataclass(frozen=True, slots=True)
class GoldCheck:
    """The verdicts on the gold answers of tasks."""

    counts: Mapping[Found, int]
    misses: tuple[tuple[Task, Verdict], ...]
    """Every task whose gold answer is not graded as right."""


def check_gold(tasks: Sequence[Task]) -> GoldCheck:
    """Grade the gold answer of each task as if a worker had given it.

    Raises:
        UsageError: something that grading needs is missing.
    """
    return asyncio.run(_check(tasks))


def as_reply(task: Task) -> str:
    """The gold answer in the form in which a worker gives it."""
    if task.kind == "math":
        return f"The answer is \\boxed{{{task.gold}}}."
    if task.kind == "code":
        return f"```python\n{task.gold}\n```"
    return task.gold if task.kind == "custom" else f"Answer: {task.gold}"


async def _check(tasks: Sequence[Task]) -> GoldCheck:
    with_gold = [task for task in tasks if task.gold.strip()]
    room = asyncio.Semaphore(_AT_ONCE)

    async def graded(task: Task) -> Verdict:
        async with room:
            return await grade(task, as_reply(task))

    verdicts = await asyncio.gather(*map(graded, with_gold))  # a UsageError ends all: its cause holds for its kind
    counts: dict[Found, int] = {"right": 0, "wrong": 0, "unjudged": 0, "without gold": len(tasks) - len(with_gold)}
    for verdict in verdicts:
        counts[verdict.outcome] += 1
    pairs = zip(with_gold, verdicts, strict=True)
    return GoldCheck(counts, tuple((task, verdict) for task, verdict in pairs if verdict.outcome != "right"))
