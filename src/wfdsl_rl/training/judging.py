"""What judges the completions of a training."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wfdsl_rl.scoring import Ablation, RewardValues, Scorer
from wfdsl_rl.training.records import SampleFiles
from wfdsl_rl.training.rewarding import Rewarder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from wfdsl_rl.training.rewarding import Sample
    from wfdsl_rl.training.setting import Setting


def make_rewarder(setting: Setting, folder: Path, *, grades: bool = True) -> Rewarder:
    """What judges the completions of a stage, or only runs them."""
    train = setting.train
    ablation = Ablation(**train.ablation.model_dump())
    return Rewarder(
        {task.id: task for task in (*setting.tasks, *setting.eval_tasks)},
        setting.pool,
        Scorer(
            max_steps=setting.max_steps,
            options=setting.options,
            values=RewardValues(**train.reward.model_dump()),
            ablation=ablation,
            grades=grades,
        ),
        train.seed,
        train.concurrency,
        [SampleFiles(folder / "samples")],
        stage=folder.name,
        thought=train.warmup.thought if "warmup" in train.stages() and train.warmup.thought != "none" else None,
    )


@contextmanager
def programs_between_batches(setting: Setting, rewarder: Rewarder, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Processes of the sandbox are started when a batch has been judged, for the next one: one core idles then.

    `loop` is the one in which batches are judged, in another thread.
    """
    if not setting.has_programs:
        yield
        return
    from wfdsl_rl.grading.code import shared_sandbox  # noqa: PLC0415  (only programs need it)

    sandbox = shared_sandbox()

    def prepare(_: Sequence[Sample]) -> None:
        sandbox.warm_up()

    rewarder.listeners.append(prepare)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(sandbox.cool_down(), loop).result()
