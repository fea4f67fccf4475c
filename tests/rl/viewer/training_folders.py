"""Folders of trainings as `wfdsl-train` leaves them: real options, runs and rewards, and log entries like TRL's."""

from __future__ import annotations

import asyncio
import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wfdsl.tasks.task import Task
from wfdsl_rl.reward import make_reward
from wfdsl_rl.scoring import metrics_of
from wfdsl_rl.training.data import Draw, make_rows
from wfdsl_rl.training.plan import JOURNAL, read_plan
from wfdsl_rl.training.rewarding import Rewarder
from wfdsl_rl.training.samples import Sample, SampleFiles
from wfdsl_rl.training.setup import METRICS, RESOLVED

ONE = 'I solve it.\nmodel_id = [{0}]\nsubtasks = ["Solve the problem."]\naccess_list = [[]]'
TWO = 'model_id = [0, {0}]\nsubtasks = ["Solve the problem.", "Check the answer."]\naccess_list = [[], [0]]'
WRONG = 'model_id = [{0}]\nsubtasks = ["Solve it."]\naccess_list = [[7]]'
QUESTIONS, GROUP, HELD_OUT = 4, 3, 6
"""Questions of an iteration, completions of each, and questions of an evaluation."""


class TrainingWriter:
    """Writes the folder of a training of `gym-tiny`'s stage `base`, iteration by iteration."""

    def __init__(
        self,
        folder: Path,
        *,
        iterations: int = 6,
        tasks: Callable[[Task], Task] = lambda task: task,
        journal: bool = False,
    ) -> None:
        self.folder = folder
        base = {"iterations": iterations, "prompts_per_step": QUESTIONS, "kl_free_steps": 0}
        plan = read_plan("gym-tiny", [f"train.base.{key}={value}" for key, value in base.items()])
        folder.mkdir(parents=True, exist_ok=True)
        resolved = {**plan.resolved(), "processes": 1, "command": {"settings": [], "stage": "base"}}
        (folder / RESOLVED).write_text(json.dumps(resolved), "utf-8")
        found = [tasks(task) for task in plan.tasks()[:40]]
        count = QUESTIONS * iterations
        shared: dict[str, Any] = {"max_steps": 5, "draw": Draw()}
        self._rows = make_rows(found, plan.pool, plan.prompt, count=count, **shared)
        self._held_out = make_rows(found, plan.pool, plan.prompt, count=HELD_OUT, split="eval", **shared)
        files = SampleFiles(folder / "base" / "samples")
        self._reward = make_reward(plan.pool, found, name="base", journal=folder / JOURNAL if journal else None)
        self._rewarder = Rewarder(self._reward, listeners=[files])

    def close(self) -> None:
        """Close the journal."""
        self._reward.close()

    def iteration(self, step: int, forms: Sequence[str] = (ONE, TWO, WRONG)) -> None:
        """One iteration, counted from 0, with its log entry."""
        rows = self._rows[step * QUESTIONS : (step + 1) * QUESTIONS]
        every = [row for row in rows for _ in range(GROUP)]
        texts = [forms[at % len(forms)].replace("{0}", str((at + step) % 7)) for at in range(len(every))]
        samples = asyncio.run(self._rewarder.batch(every, texts, step))
        self.log(step + 1, **entry_of(samples), step_time=0.5)

    def evaluation(self, step: int) -> None:
        """An evaluation after a number of iterations."""
        samples = asyncio.run(self._rewarder.batch(self._held_out, [ONE.replace("{0}", "0")] * HELD_OUT, step))
        entry = {f"eval_{name}": value for name, value in entry_of(samples).items()}
        self.log(step, **entry, eval_runtime=2.0, eval_samples_per_second=HELD_OUT / 2)

    def log(self, step: int, **entry: float) -> None:
        """A log entry."""
        with (self.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"stage": "base", "step": step, **entry}) + "\n")


def entry_of(samples: Sequence[Sample]) -> dict[str, float]:
    """The metrics of a batch under the names that TRL gives them."""
    rewards = [sample.reward for sample in samples if sample.reward is not None]
    return {
        "reward": statistics.fmean(rewards),
        "rewards/workflow_reward/std": statistics.stdev(rewards),
        "completions/mean_length": statistics.fmean(len(sample.completion) / 4 for sample in samples),
        **metrics_of([sample.scored for sample in samples]),
    }


def write_training(folder: Path, *, iterations: int = 6, **options: Any) -> TrainingWriter:
    """A training whose iterations are all there, with an evaluation before the first and after the last."""
    found = TrainingWriter(folder, iterations=iterations, **options)
    found.evaluation(0)
    for step in range(iterations):
        found.iteration(step)
    found.evaluation(iterations)
    return found


def finish(folder: Path, stage: str = "base") -> None:
    """Mark a stage as complete, as the pipeline does last."""
    (folder / stage / "final").mkdir(parents=True, exist_ok=True)
    (folder / stage / "final" / "done.json").write_text(json.dumps({"stage": stage, "from": "new"}), "utf-8")
