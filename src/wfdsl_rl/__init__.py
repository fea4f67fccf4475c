"""wfdsl_rl: tasks with gold answers, honest grading, a gym of simulated workers, evaluation and training.

The public names. Each is imported when it is first used, so that `import wfdsl_rl` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wfdsl_rl.grading.grade import grade as grade
    from wfdsl_rl.grading.grade import grade_sync as grade_sync
    from wfdsl_rl.grading.verdict import Verdict as Verdict
    from wfdsl_rl.judge import Judge as Judge
    from wfdsl_rl.judge import Judged as Judged
    from wfdsl_rl.reward import Rewards as Rewards
    from wfdsl_rl.tasks.loading import load_tasks as load_tasks
    from wfdsl_rl.tasks.task import CodeTests as CodeTests
    from wfdsl_rl.tasks.task import Task as Task
    from wfdsl_rl.tasks.task_file import save_tasks as save_tasks

_HOMES = {
    "CodeTests": "tasks.task",
    "Judge": "judge",
    "Judged": "judge",
    "Rewards": "reward",
    "Task": "tasks.task",
    "Verdict": "grading.verdict",
    "grade": "grading.grade",
    "grade_sync": "grading.grade",
    "load_tasks": "tasks.loading",
    "save_tasks": "tasks.task_file",
}

__all__ = [*_HOMES]  # noqa: PLE0604  (names of this very table)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'wfdsl_rl' has no attribute {name!r}")
    value = getattr(import_module(f"wfdsl_rl.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
