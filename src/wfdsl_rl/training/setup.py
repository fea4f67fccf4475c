"""What all stages of a training share.

OUT/resolved.json             the experiment as it was run
OUT/running/                  a file that is locked while a process trains
OUT/metrics.jsonl             every log entry of every stage
OUT/STAGE/                    checkpoints, samples, and `final/`, which loads as a Conductor
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.prompt import Prompt
from wfdsl.errors import UsageError
from wfdsl.interpreter.context import QuestionFor
from wfdsl.interpreter.running import RunOptions
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.processes import ALONE, Processes
from wfdsl_rl.training.config import StageName, TrainConfig

DONE: Final = "done.json"
"""In `STAGE/final`, written last: the stage is complete."""
METRICS: Final = "metrics.jsonl"
RESOLVED: Final = "resolved.json"
RUNNING: Final = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What all stages of a training share."""

    train: TrainConfig
    prompt: Prompt
    max_steps: int
    conductor: ConductorConfig = field(default_factory=ConductorConfig)
    """Its `access` says what an access entry may be, in prompts as in rewards."""
    question_for: QuestionFor = "all"
    """Which steps are shown the question."""
    pool: Pool
    tasks: tuple[Task, ...]
    eval_tasks: tuple[Task, ...]
    stage_tasks: Mapping[StageName, tuple[Task, ...]] = field(default_factory=dict)
    """The training tasks of stages that do not use `tasks`."""
    out: Path
    processes: Processes = ALONE
    options: RunOptions = field(default_factory=RunOptions)
    """How workflows are run: the journal, the budget and the limits that all runs share."""
    listeners: tuple[Callable[[dict[str, Any]], None], ...] = ()
    """Called with every log entry."""
    on_wait: Callable[[int, int], None] | None = None
    """Called while workflows run, with the number that is waited for and with all of them."""
    say: Callable[[str], None] = print
    """Prints a line for people."""

    @property
    def metrics_file(self) -> Path:
        """The log entries of all stages, as JSON lines."""
        return self.out / METRICS

    @property
    def has_programs(self) -> bool:
        """Whether there are answers that are programs, which have to be run."""
        return any(task.kind == "code" for task in self.all_tasks)

    @property
    def all_tasks(self) -> tuple[Task, ...]:
        """The tasks of all stages and of the evaluations."""
        own = (task for tasks in self.stage_tasks.values() for task in tasks)
        return (*self.tasks, *own, *self.eval_tasks)

    def folder(self, stage: StageName) -> Path:
        """The folder of a stage."""
        return self.out / stage


def require_feasible(train: TrainConfig, pool: Pool, stages: Sequence[StageName]) -> None:
    """Refuse options that are well-formed and cannot be run. This needs no torch.

    Raises:
        UsageError: an option names something that does not exist, or a stage has nothing to do.
    """
    for problem in train.problems(pool, stages):
        raise UsageError(problem)
    if "sft" in stages and not (train.sft.candidates or train.sft.rows):
        raise UsageError("train.sft: nothing provides rows; set train.sft.rows or train.sft.candidates")
