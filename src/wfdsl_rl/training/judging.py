"""What judges the completions of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wfdsl_rl.judge import Ablation, Judge
from wfdsl_rl.reward import Rewards
from wfdsl_rl.training.records import SampleFiles
from wfdsl_rl.training.rewarding import Rewarder

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl_rl.training.setting import Setting


def make_rewarder(setting: Setting, folder: Path, *, grades: bool = True) -> Rewarder:
    """What judges the completions of a stage, or only runs them."""
    train = setting.train
    ablation = Ablation(**train.ablation.model_dump())
    return Rewarder(
        {task.id: task for task in (*setting.tasks, *setting.eval_tasks)},
        setting.pool,
        Judge(max_steps=setting.max_steps, options=setting.options, ablation=ablation, grades=grades),
        Rewards(**train.reward.model_dump()),
        train.seed,
        train.concurrency,
        [SampleFiles(folder / "samples")],
        stage=folder.name,
        thought=train.warmup.thought if "warmup" in train.stages() and train.warmup.thought != "none" else None,
    )
