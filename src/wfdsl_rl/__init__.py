"""wfdsl_rl: tasks with gold answers, honest grading, a gym of simulated workers, evaluation and training.

The public names. Each is imported when it is first used, so that `import wfdsl_rl` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wfdsl_rl.tasks.task import CodeTests as CodeTests
    from wfdsl_rl.tasks.task import Task as Task

_HOMES = {
    "CodeTests": "tasks.task",
    "Task": "tasks.task",
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
