"""What all stages of a training share, and where they keep what they make.

OUT/resolved.json       the experiment, complete, as it was run
OUT/new/                the model of random weights, if it started from one
OUT/alone.json          each worker's accuracy alone, where that costs nothing
OUT/metrics.jsonl       every log entry of every stage
OUT/STAGE/              checkpoints, samples, plots, and `final/`, which loads as a Conductor
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from wfdsl.interpreter.running import RunOptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wfdsl.conductor.prompt import Prompt
    from wfdsl.workers.pool import Pool
    from wfdsl_rl.tasks.task import Task
    from wfdsl_rl.training.config import StageName, TrainSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all stages share."""

    train: TrainSettings
    prompt: Prompt
    max_steps: int
    pool: Pool
    tasks: tuple[Task, ...]
    eval_tasks: tuple[Task, ...]
    out: Path
    options: RunOptions = field(default_factory=RunOptions)
    """How workflows are run: the journal, the budget and the limits that all rollouts share."""
    listeners: tuple[Callable[[dict[str, Any]], None], ...] = ()
    """Called with every log entry."""
    say: Callable[[str], None] = print
    """Tells people something, in a line."""

    @property
    def cpu(self) -> bool:
        """Whether there is no accelerator."""
        return not torch.cuda.is_available()

    @property
    def metrics_file(self) -> Path:
        """Where every log entry of every stage goes."""
        return self.out / "metrics.jsonl"

    @property
    def has_programs(self) -> bool:
        """Whether there are answers that have to be run."""
        return any(task.kind == "code" for task in (*self.tasks, *self.eval_tasks))

    def folder(self, stage: StageName) -> Path:
        """Where a stage keeps what it makes."""
        return self.out / stage


def keep_resolved(setting: Setting, plain: dict[str, Any]) -> None:
    """Write down what is run."""
    setting.out.mkdir(parents=True, exist_ok=True)
    (setting.out / "resolved.json").write_text(json.dumps(plain, indent=2) + "\n", encoding="utf-8")
