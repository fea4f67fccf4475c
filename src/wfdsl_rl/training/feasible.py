"""Settings that are well formed and cannot be run: found before anything is started, not hours into a training.

This needs no torch, so that a dry run finds them as well. What only TRL can say is asked in `course`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wfdsl.errors import UsageError
from wfdsl_rl.gym.tiny.synthetic import SHAPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wfdsl.workers.pool import Pool
    from wfdsl_rl.training.config import Grpo, StageName, TrainSettings

LOSSES: Final = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo", "cispo", "sapo", "vespo")
"""Losses by their names in TRL 1.16, which looks at the name only when the first loss is computed."""


def require_feasible(train: TrainSettings, pool: Pool, stages: Sequence[StageName]) -> None:
    """Refuse what cannot be run.

    Raises:
        UsageError: a setting names what is not there, or a stage has no steps.
    """
    for problem in _problems(train, pool, stages):
        raise UsageError(problem)


def _problems(train: TrainSettings, pool: Pool, stages: Sequence[StageName]) -> Iterable[str]:
    if not stages:
        yield "no stage has any steps: set train.base.iterations, or another stage's"
    for name in stages:
        if name not in train.stages():
            key = "steps" if name == "warmup" else "iterations"
            yield f"train.{name}.{key} is 0: the stage {name} has nothing to do; set it to a number"
        if name != "warmup":
            yield from _problems_of_stage(train, name)
    worker = train.ablation.worker
    named = [("ablation.worker", worker)] if worker is not None else []
    if "recursion" in stages:
        named += [("recursion.never_exchanged", ordinal) for ordinal in train.recursion.never_exchanged]
    for key, ordinal in named:
        if ordinal not in pool.ordinals:
            yield f"train.{key}: the pool {pool.name} has no worker {ordinal}; it has 0 to {len(pool) - 1}"
    if "pools" in stages and any(not 0 < count <= len(pool) for count in train.pools.pick):
        yield f"train.pools.pick: of {len(pool)} workers, 1 to {len(pool)} can be offered"
    if "warmup" in stages:
        yield from _problems_of_lengths(train.warmup.lengths)


def _problems_of_stage(train: TrainSettings, name: StageName) -> Iterable[str]:
    stage: Grpo = getattr(train, name)
    if stage.loss not in LOSSES:
        yield f"train.{name}.loss: there is no loss {stage.loss!r}; TRL has {', '.join(LOSSES)}"
    if not train.warmup.steps or train.warmup.thought == "none":
        nothing = "without a warm-up that shows thoughts there is nothing to"
        if stage.refresh.steps:
            yield f"train.{name}.refresh: {nothing} refresh: set steps to 0"
        if stage.give != "nothing":
            yield f'train.{name}.give: {nothing} give: set it to "nothing"'
    elif stage.give == "shape" and train.warmup.thought == "kind":
        yield f'train.{name}.give: train.warmup.thought "kind" has no shape: set it to "sketch" or "places"'
    if stage.refresh.steps and train.lora is not None:
        yield (
            f"train.{name}.refresh: it trains all weights, and train.lora asks for adapters: set steps to 0, or leave "
            "train.lora out"
        )


def _problems_of_lengths(lengths: dict[str, float]) -> Iterable[str]:
    known = {str(length) for length in SHAPES}
    if not lengths or not set(lengths) <= known or min(lengths.values()) < 0 or not sum(lengths.values()) > 0:
        yield f"train.warmup.lengths: give weights by number of steps, {min(known)} to {max(known)}, and not all 0"
