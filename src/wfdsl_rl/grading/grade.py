"""`grade`: whether a reply answers a task rightly. One way for every kind, real or generated."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, assert_never

from wfdsl_rl.grading.choice import judge_choice
from wfdsl_rl.grading.custom import judge_custom
from wfdsl_rl.grading.extraction import final_answer, final_code
from wfdsl_rl.grading.mathematics import judge_math
from wfdsl_rl.grading.text import judge_text
from wfdsl_rl.grading.verdict import Verdict

if TYPE_CHECKING:
    from wfdsl_rl.grading.sandbox import Sandbox
    from wfdsl_rl.tasks.task import Task

_NOTHING_FOUND = Verdict("wrong", None, "no final answer was found")


async def grade(task: Task, text: str, *, sandbox: Sandbox | None = None) -> Verdict:
    """Whether the final answer of `text` is the gold one. A reply without a final answer is wrong.

    Raises:
        UsageError: something that the judging needs is not there, such as math-verify or a custom grader.
    """
    if task.kind == "custom":
        return await judge_custom(task, text)
    if task.kind == "code":
        return await _grade_code(task, text, sandbox)
    answer = final_answer(text, task.kind, choices=task.choices)
    if answer is None:
        return _NOTHING_FOUND
    match task.kind:
        case "math":
            return await judge_math(task.gold, answer)
        case "choice":
            return judge_choice(task.gold, answer, task.choices)
        case "text":
            return judge_text(task.gold, answer)
    assert_never(task.kind)


def grade_sync(task: Task, text: str, *, sandbox: Sandbox | None = None) -> Verdict:
    """`grade`, for code that is not async."""
    return asyncio.run(grade(task, text, sandbox=sandbox))


async def _grade_code(task: Task, text: str, sandbox: Sandbox | None) -> Verdict:
    from wfdsl_rl.grading.code import judge_program  # noqa: PLC0415  (the sandbox is needed for nothing else)

    assert task.tests is not None  # a code task without tests cannot be made
    program = final_code(text, wanted=task.tests.entry_point)
    if program is None:
        return Verdict("wrong", None, "no program was found")
    return await judge_program(program, task.tests, sandbox=sandbox)
