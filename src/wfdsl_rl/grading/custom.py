"""Graders that live elsewhere: `module:function`, called as `function(task, text) -> bool | Verdict`, async or not."""

from __future__ import annotations

import asyncio
import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wfdsl.errors import UsageError
from wfdsl_rl.grading.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from wfdsl_rl.tasks.task import Task


async def judge_custom(task: Task, text: str) -> Verdict:
    """What the task's own grader says. If it fails, or says neither yes nor no, the answer is unjudged.

    Raises:
        UsageError: there is no such grader.
    """
    grader = load_grader(task.grader)
    try:
        said = (
            await grader(task, text)
            if inspect.iscoroutinefunction(grader)
            else await asyncio.to_thread(grader, task, text)
        )
    except Exception as error:  # noqa: BLE001  (foreign code: whatever it raises, it has not judged)
        return Verdict("unjudged", reason=f"the grader {task.grader} failed: {type(error).__name__}: {error}")
    if isinstance(said, Verdict):
        return said
    if not isinstance(said, bool):
        return Verdict(
            "unjudged", reason=f"the grader {task.grader} returned {type(said).__name__}, not bool or Verdict"
        )
    return Verdict("right" if said else "wrong", reason=f"{task.grader} says so")


def load_grader(name: str) -> Callable[[Task, str], Any]:
    """The function that `module:function` names.

    Raises:
        UsageError: there is none, or it cannot be imported.
    """
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name:
        raise UsageError(f'grader {name!r}: write it as "module:function"')
    try:
        found: Any = import_module(module_name)
        for part in function_name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"grader {name!r}: {error}. Is its folder on PYTHONPATH?") from error
    if not callable(found):
        raise UsageError(f"grader {name!r}: {function_name} is no function")
    return found  # type: ignore[no-any-return]  # what it returns is checked when it is called
