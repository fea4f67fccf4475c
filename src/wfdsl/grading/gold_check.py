"""Gold answers, and wrong ones, graded: whether tasks can be graded, and tell right answers from wrong ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Literal, TypeAlias

from wfdsl.grading.grade import grade
from wfdsl.grading.verdict import Verdict
from wfdsl.tasks.task import Task, gold_letters

_AT_ONCE = 16  # gradings at one time: each waits for a process of its own

Found: TypeAlias = Literal["right", "wrong", "unjudged", "without gold", "accepts a wrong answer"]


@dataclass(frozen=True, slots=True)
class GoldCheck:
    """The verdicts on the gold answers of tasks."""

    counts: Mapping[Found, int]
    misses: tuple[tuple[Task, Found, Verdict], ...]
    """Every task whose gold answer is not graded as right, or for which a wrong answer is."""


def check_gold(tasks: Sequence[Task]) -> GoldCheck:
    """Grade the gold answer of each task as if a worker had given it, and then a wrong answer.

    Raises:
        UsageError: something that grading needs is missing.
    """
    return asyncio.run(_check(tasks))


def as_reply(task: Task, answer: str) -> str:
    """An answer in the form in which a worker gives it."""
    if task.kind == "math":
        return f"The answer is \\boxed{{{answer}}}."
    if task.kind == "code":
        return f"```python\n{answer}\n```"
    return answer if task.kind == "custom" else f"Answer: {answer}"


def wrong_answer(task: Task) -> str:
    """An answer that no task has as its gold one."""
    if task.kind == "choice":
        letters = gold_letters(task.gold, task.choices)
        return next(letter for letter in ascii_uppercase if letter not in letters)
    return {"math": "-7919.5", "code": "pass"}.get(task.kind, "zqx vwk")


async def _check(tasks: Sequence[Task]) -> GoldCheck:
    room = asyncio.Semaphore(_AT_ONCE)

    async def graded(task: Task) -> tuple[Found, Verdict]:
        async with room:
            verdict = await grade(task, as_reply(task, task.gold)) if task.gold.strip() else Verdict("right")
            if verdict.outcome != "right":
                return verdict.outcome, verdict
            other = await grade(task, as_reply(task, wrong_answer(task)))
            if other.outcome == "right":
                return "accepts a wrong answer", other
            return ("right" if task.gold.strip() else "without gold"), verdict

    found = await asyncio.gather(*map(graded, tasks))  # a UsageError ends all: its cause holds for its kind
    counts: dict[Found, int] = {"right": 0, "wrong": 0, "unjudged": 0, "without gold": 0, "accepts a wrong answer": 0}
    for what, _ in found:
        counts[what] += 1
    fine = ("right", "without gold")
    pairs = zip(tasks, found, strict=True)
    return GoldCheck(counts, tuple((task, what, verdict) for task, (what, verdict) in pairs if what not in fine))
