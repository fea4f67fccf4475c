"""`grade`: whether a reply answers a task, for every kind of task; custom graders included."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import cast

from wfdsl.errors import UsageError
from wfdsl.grading.code import grade_program
from wfdsl.grading.extraction import final_code
from wfdsl.grading.mathematics import grade_math
from wfdsl.grading.normal_forms import Words, read
from wfdsl.grading.sandbox import Sandbox
from wfdsl.grading.statements import AnswerKind, Asked, final_statement
from wfdsl.grading.text import grade_text
from wfdsl.grading.verdict import Outcome, Verdict
from wfdsl.own_code import load_function
from wfdsl.tasks.task import Task, gold_letters


async def grade(task: Task, text: str, *, sandbox: Sandbox | None = None) -> Verdict:
    """Whether the final answer of `text` is the gold one. A reply without a final answer is wrong.

    A grader that fails has not graded: the verdict is unjudged, and its reason names the exception.

    Raises:
        UsageError: something that grading needs is missing, such as math-verify or a custom grader.
    """
    if not text.strip():
        return Verdict("wrong", None, "the reply is empty")
    if task.kind == "custom":
        return await _grade_custom(task, text)
    try:
        return await _grade_built_in(task, text, sandbox)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  (what a model wrote must not end an evaluation)
        return Verdict("unjudged", reason=f"the {task.kind} grader failed: {type(error).__name__}: {error}")


def grade_sync(task: Task, text: str, *, sandbox: Sandbox | None = None) -> Verdict:
    """`grade`, for code that is not async."""
    return asyncio.run(grade(task, text, sandbox=sandbox))


async def _grade_built_in(task: Task, text: str, sandbox: Sandbox | None) -> Verdict:
    if task.kind == "code":
        assert task.tests is not None  # a code task without tests cannot be made
        program = final_code(text, wanted=task.tests.entry_point, reads_input=task.tests.style == "stdin")
        if program is None:
            return Verdict("wrong", None, "no program was found")
        return await grade_program(program, task.tests, sandbox=sandbox)
    is_words = task.kind == "math" and all(isinstance(read(gold), Words) for gold in task.golds)
    kind = "text" if is_words else cast("AnswerKind", task.kind)
    found = final_statement(text, Asked(kind, task.question, task.choices))
    if found is None:
        return Verdict("wrong", None, "the reply states no answer")
    verdict = Verdict("wrong")
    for gold, value in product(task.golds, found.values):
        if kind == "math":
            verdict = await grade_math(gold, value, question=task.question)
        elif kind == "choice":
            verdict = grade_choice(gold, value, task.choices)
        else:
            is_only = len(task.golds) == 1
            verdict = grade_text(gold, value, task.question, is_claim=found.is_claim, is_only_gold=is_only)
        if verdict.outcome == "right":
            break
    return replace(verdict, statement=found.text)


def grade_choice(gold: str, answer: str, choices: Sequence[str] = ()) -> Verdict:
    """Whether the letters of an answer are the gold ones, all of them. A gold option in full is its letter."""
    wanted = gold_letters(gold, choices)
    if not wanted:
        return Verdict("unjudged", answer, f"the gold answer {gold!r} is not one of the options", rule="letters")
    is_right = set(re.findall(r"[A-Z]", answer)) == wanted
    reason = f"{answer} is {'' if is_right else 'not '}{', '.join(sorted(wanted))}"
    return Verdict("right" if is_right else "wrong", answer, reason, rule="letters")


async def _grade_custom(task: Task, text: str) -> Verdict:
    """The verdict of the task's own grader; unjudged if it fails or returns something else."""
    grader = load_function(task.grader)
    try:
        is_async = inspect.iscoroutinefunction(grader)
        said = await (grader(task, text) if is_async else asyncio.to_thread(grader, task, text))
    except Exception as error:  # noqa: BLE001  (foreign code: whatever it raises, it has not graded)
        return Verdict("unjudged", reason=f"the grader {task.grader} failed: {type(error).__name__}: {error}")
    if isinstance(said, Verdict):
        return said
    score = float(said) if isinstance(said, (int, float)) else -1.0
    if not 0 <= score <= 1:
        given = repr(said)[:60]
        return Verdict("unjudged", reason=f"the grader {task.grader} returned {given}, not a bool, a Verdict or 0 to 1")
    outcome: Outcome = "right" if score == 1 else "wrong"
    return Verdict(outcome, text, f"{task.grader} gives {score:g}", rule="custom", score=score)
