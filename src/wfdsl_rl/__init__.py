"""wfdsl_rl: tasks with gold answers, honest grading, a gym of simulated workers, evaluation and training.

The public names. Each is imported when it is first used, so that `import wfdsl_rl` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wfdsl_rl.evaluation.evaluate import evaluate as evaluate
    from wfdsl_rl.evaluation.report import read_report as read_report
    from wfdsl_rl.evaluation.summary import summarise as summarise
    from wfdsl_rl.evaluation.trials import Evaluation as Evaluation
    from wfdsl_rl.evaluation.trials import Trial as Trial
    from wfdsl_rl.grading.code import grade_program as grade_program
    from wfdsl_rl.grading.extraction import final_answer as final_answer
    from wfdsl_rl.grading.extraction import final_code as final_code
    from wfdsl_rl.grading.grade import grade as grade
    from wfdsl_rl.grading.grade import grade_sync as grade_sync
    from wfdsl_rl.grading.sandbox.isolation import SandboxLimits as SandboxLimits
    from wfdsl_rl.grading.sandbox.isolation import SandboxMissing as SandboxMissing
    from wfdsl_rl.grading.sandbox.sandbox import Sandbox as Sandbox
    from wfdsl_rl.grading.verdict import Verdict as Verdict
    from wfdsl_rl.reward import Reward as Reward
    from wfdsl_rl.reward import make_reward as make_reward
    from wfdsl_rl.scoring import Ablation as Ablation
    from wfdsl_rl.scoring import NoScore as NoScore
    from wfdsl_rl.scoring import RewardValues as RewardValues
    from wfdsl_rl.scoring import Rollout as Rollout
    from wfdsl_rl.scoring import Scored as Scored
    from wfdsl_rl.scoring import Scorer as Scorer
    from wfdsl_rl.tasks.loading import load_tasks as load_tasks
    from wfdsl_rl.tasks.task import CodeTests as CodeTests
    from wfdsl_rl.tasks.task import Task as Task
    from wfdsl_rl.tasks.task import save_tasks as save_tasks
    from wfdsl_rl.workflow_statistics import WorkflowStatistics as WorkflowStatistics
    from wfdsl_rl.workflow_statistics import statistics_of as statistics_of

_HOMES = {
    "Ablation": "scoring",
    "CodeTests": "tasks.task",
    "Evaluation": "evaluation.trials",
    "NoScore": "scoring",
    "Reward": "reward",
    "RewardValues": "scoring",
    "Rollout": "scoring",
    "Sandbox": "grading.sandbox",
    "SandboxLimits": "grading.sandbox",
    "SandboxMissing": "grading.sandbox",
    "Scored": "scoring",
    "Scorer": "scoring",
    "Task": "tasks.task",
    "Trial": "evaluation.trials",
    "Verdict": "grading.verdict",
    "WorkflowStatistics": "workflow_statistics",
    "evaluate": "evaluation.evaluate",
    "final_answer": "grading.extraction",
    "final_code": "grading.extraction",
    "grade": "grading.grade",
    "grade_sync": "grading.grade",
    "grade_program": "grading.code",
    "load_tasks": "tasks.loading",
    "make_reward": "reward",
    "read_report": "evaluation.report",
    "save_tasks": "tasks.task",
    "statistics_of": "workflow_statistics",
    "summarise": "evaluation.summary",
}
_PACKAGES = ("gym",)
"""Used as they are, such as `wfdsl_rl.gym.make`."""

__all__ = sorted([*_HOMES, *_PACKAGES])  # noqa: PLE0605  (names of this very table)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"wfdsl_rl.{name}")  # which makes it an attribute
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'wfdsl_rl' has no attribute {name!r}")
    value = getattr(import_module(f"wfdsl_rl.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
