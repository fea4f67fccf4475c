"""Custom graders, as users write them."""

from __future__ import annotations

from wfdsl.grading.verdict import Verdict
from wfdsl.tasks.task import Task

NOT_A_FUNCTION = 5


def says_yes(task: Task, text: str) -> bool:
    return "yes" in text


async def waits(task: Task, text: str) -> Verdict:
    return Verdict("wrong", text, "asynchronous")


def breaks(task: Task, text: str) -> bool:
    raise KeyError("no such row")


def returns_a_text(task: Task, text: str) -> str:
    return "well"


def half(task: Task, text: str) -> float:
    return {"half": 0.5, "all": 1.0}.get(text, 2.0)
