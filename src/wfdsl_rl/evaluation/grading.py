"""Grading within an evaluation: many policies give the same final answer to a task, and it is judged once.

A verdict depends on the final answer alone, not on the words around it. So it is remembered under the answer that is
found in a text, as long as cells of its task are being worked on.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wfdsl_rl.grading.verdict import Verdict
    from wfdsl_rl.tasks.task import Task

Judge: TypeAlias = "Callable[[Task, str], Awaitable[Verdict]]"


class Grading:
    """Judges answers, the same final answer to the same task once."""

    def __init__(self, group: asyncio.TaskGroup, judge: Judge | None = None) -> None:
        """`group` holds what is being judged, so that nothing is left running; `judge` replaces `wfdsl_rl.grade`."""
        self._group = group
        self._judge = judge
        self._verdicts: dict[tuple[str, str | None], asyncio.Task[Verdict]] = {}

    async def verdict(self, name: str, task: Task, text: str) -> Verdict:
        """What the judge says; `name` is the task's within the evaluation."""
        key = (name, final_part(task, text) if self._judge is None else text)
        found = self._verdicts.get(key)
        if found is None:
            found = self._verdicts[key] = self._group.create_task(self._judged(task, text))
        return await asyncio.shield(found)

    def forget(self, name: str) -> None:
        """Drop what is remembered of a task."""
        for key in [key for key, verdict in self._verdicts.items() if key[0] == name and verdict.done()]:
            del self._verdicts[key]

    async def _judged(self, task: Task, text: str) -> Verdict:
        if self._judge is not None:
            return await self._judge(task, text)
        from wfdsl_rl.grading.grade import grade  # noqa: PLC0415  (graders are large; tests of policies bring their own)

        return await grade(task, text)


def final_part(task: Task, text: str) -> str | None:
    """What a verdict on a text depends on: the program or final answer in it; of custom graders, all of it."""
    from wfdsl_rl.grading.extraction import final_answer, final_code  # noqa: PLC0415  (as above)

    if task.kind == "custom":
        return text
    if task.kind == "code":
        return final_code(text, wanted=task.tests.entry_point if task.tests is not None else "")
    return final_answer(text, task.kind, choices=task.choices)
