"""Gold answers, and wrong ones, graded: whether tasks can be graded, and tell right answers from wrong ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Literal, TypeAlias, get_args

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


def _replies(task: Task) -> tuple[str, str]:
    """The gold answer, and one that no task has, in the form in which a worker gives them."""
    if task.kind == "choice":
        letters = gold_letters(task.gold, task.choices)
        other = next(letter for letter in ascii_uppercase if letter not in letters)
    else:
        other = {"math": "-7919.5", "code": "pass"}.get(task.kind, "zqx vwk")
    forms = {"math": "The answer is \\boxed{%s}.", "code": "```python\n%s\n```", "custom": "%s"}
    form = forms.get(task.kind, "Answer: %s")
    return form % task.gold, form % other


async def _check(tasks: Sequence[Task]) -> GoldCheck:
    room = asyncio.Semaphore(_AT_ONCE)

    async def graded(task: Task) -> tuple[Found, Verdict]:
        gold, other = _replies(task)
        async with room:
            verdict = await grade(task, gold) if task.gold.strip() else Verdict("right")
            if verdict.outcome != "right":
                return verdict.outcome, verdict
            accepted = await grade(task, other)
        if accepted.outcome == "right":
            return "accepts a wrong answer", accepted
        return ("right" if task.gold.strip() else "without gold"), verdict

    found = await asyncio.gather(*map(graded, tasks))  # a UsageError ends all: its cause holds for its kind
    counts = {what: sum(what == each for each, _ in found) for what in get_args(Found)}
    pairs = zip(tasks, found, strict=True)
    fine = ("right", "without gold")
    return GoldCheck(counts, tuple((task, what, verdict) for task, (what, verdict) in pairs if what not in fine))
