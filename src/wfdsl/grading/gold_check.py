"""Gold answers, and wrong ones, graded: whether tasks can be graded, and tell right answers from wrong ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Literal, TypeAlias, get_args

from wfdsl.grading.grade import grade
from wfdsl.grading.verdict import Verdict
from wfdsl.tasks.task import Task, gold_letters

_AT_ONCE = 16  # gradings at one time: each waits for a process of its own

Found: TypeAlias = Literal["right", "wrong", "unjudged", "without gold", "accepts a wrong answer"]


def check_gold(tasks: Sequence[Task]) -> tuple[Mapping[Found, int], list[tuple[Task, Found, Verdict]]]:
    """Grade the gold answer of each task as if a worker had given it, and then a wrong answer.

    Returns how many tasks are found to be what, and all whose gold answer is not right, or for which a wrong one is.

    Raises:
        UsageError: something that grading needs is missing.
    """
    found = asyncio.run(_checked(tasks))
    counts = {what: sum(what == each for _, each, _ in found) for what in get_args(Found)}
    return counts, [one for one in found if one[1] not in ("right", "without gold")]


def _replies(task: Task) -> tuple[str, str]:
    """The gold answer, and one that no task has, in the form in which a worker gives them."""
    forms = {"math": ("The answer is \\boxed{%s}.", "-7919.5"), "code": ("```python\n%s\n```", "pass")}
    form, other = forms.get(task.kind, ("%s" if task.kind == "custom" else "Answer: %s", "zqx vwk"))
    if task.kind == "choice":
        other = next(letter for letter in ascii_uppercase if letter not in gold_letters(task.gold, task.choices))
    return form % task.gold, form % other


async def _checked(tasks: Sequence[Task]) -> list[tuple[Task, Found, Verdict]]:
    room = asyncio.Semaphore(_AT_ONCE)

    async def checked(task: Task) -> tuple[Task, Found, Verdict]:
        gold, other = _replies(task)
        async with room:
            verdict = await grade(task, gold) if task.gold.strip() else Verdict("right")
            if verdict.outcome != "right":
                return task, verdict.outcome, verdict
            accepted = await grade(task, other)
        if accepted.outcome == "right":
            return task, "accepts a wrong answer", accepted
        return task, "right" if task.gold.strip() else "without gold", verdict

    return await asyncio.gather(*map(checked, tasks))  # a UsageError ends all: its cause holds for its kind
