"""Train one stage: SFT, or GRPO from its beginning or from a checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl_rl.reward import Listener, Reward
from wfdsl_rl.scoring import Sample
from wfdsl_rl.training.callbacks import KlSchedule, MetricLines, PromptInCheckpoints
from wfdsl_rl.training.checkpoints import ends_of, load_model, lost_updates, revisions_of, save_trained
from wfdsl_rl.training.config import SftStage
from wfdsl_rl.training.data import eval_rows, read_rows, stage_rows
from wfdsl_rl.training.grpo import RecursionTrainer, grpo_config, grpo_trainer, leave_server, on_cpu, sft_trainer
from wfdsl_rl.training.health import HealthChecks
from wfdsl_rl.training.plan import Setup
from wfdsl_rl.training.prefix_cache import share_prompts
from wfdsl_rl.training.recursion import FirstRounds
from wfdsl_rl.training.rejection import rejection_sampled
from wfdsl_rl.training.samples import SampleFiles, figures_of

_MOST_LOST_UPDATES: Final = 0.5
"""Fraction of the trained weights; our choice. In float32 next to none is lost at any usual learning rate."""


def train_sft(setup: Setup, stage: str, model: str, *, checkpoint: Path | None = None) -> Path:
    """Train a stage of SFT, from its beginning or from a checkpoint; the folder of its model."""
    sft, lora, folder = setup.train.stages[stage], setup.train.lora, setup.folder(stage)
    assert isinstance(sft, SftStage)  # the caller looked
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer, network = load_model(model, half=setup.train.half_frozen(on_cpu=on_cpu()))

    def rows() -> list[dict[str, Any]]:
        return rejection_sampled(setup, stage, (tokenizer, network)) if sft.samples else read_rows(Path(sft.rows))

    learned = setup.processes.on_first(rows)
    callbacks = [MetricLines(setup.metrics_file, stage, setup.listeners)] if setup.processes.is_first else []
    trainer = sft_trainer(
        network, tokenizer, learned, folder, sft=sft, train=setup.train, lora=lora, callbacks=callbacks
    )
    if setup.train.prefix_cache:
        share_prompts(trainer.model)
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    return save_trained(setup, stage, trainer, folder / "final")


def train_grpo(setup: Setup, stage: str, model: str, *, checkpoint: Path | None = None) -> Path:
    """Train a GRPO stage; the folder of its model."""
    config, folder, first = setup.train.grpo(stage), setup.folder(stage), setup.processes.is_first
    health, kl = HealthChecks(setup.say), KlSchedule(config.beta)
    held_out, resumed = eval_rows(setup, stage), checkpoint is not None
    arguments = grpo_config(config, setup.train, folder, evaluate=bool(held_out), resumed=resumed)
    half = setup.train.half_frozen(on_cpu=on_cpu())
    tokenizer, network = load_model(model, half=half)  # after the arguments, which say how weights are spread
    listeners: list[Listener] = [SampleFiles(folder / "samples"), health.on_samples, figures_of]
    reward = setup.reward(stage, end_of_text=ends_of(tokenizer, network), listeners=listeners)
    writers = [
        PromptInCheckpoints(setup.prompt, setup.max_steps, revisions_of(setup, stage)),
        MetricLines(setup.metrics_file, stage, (*setup.listeners, health.on_metrics)),
    ]
    trainer = grpo_trainer(
        network,
        tokenizer,
        arguments,
        stage_rows(setup, stage),
        reward,
        evaluated=held_out,
        lora=setup.train.lora,
        callbacks=[*(writers if first else []), *([kl] if config.beta else [])],
        recursion=config.forced > 0,
    )
    setup.processes.on_first(lambda: _require_updates(trainer, stage, config.learning_rate))
    kl.trainer = trainer
    if isinstance(trainer, RecursionTrainer):
        trainer.first_rounds = FirstRounds(setup, config, folder / "samples")
    if setup.train.prefix_cache:
        for each in filter(None, (trainer.model, trainer.ref_model)):  # without a KL term there is no reference
            share_prompts(each)
    with programs_between_batches(setup, reward, trainer.async_loop):
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        final = save_trained(setup, stage, trainer, folder / "final")
    leave_server(trainer)
    return final


@contextmanager
def programs_between_batches(setup: Setup, reward: Reward, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Start processes of the sandbox for the next batch once one is scored, while a core is idle.

    `loop` is the one in which batches are scored, in another thread.
    """
    if not setup.has_programs:
        yield
        return
    from wfdsl.grading.code import shared_sandbox  # noqa: PLC0415  (only programs need it)

    sandbox = shared_sandbox()

    def warm_up(_: Sequence[Sample]) -> None:
        sandbox.warm_up()

    reward.listeners.append(warm_up)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(sandbox.cool_down(), loop).result()


def _require_updates(trainer: Any, stage: str, learning_rate: float) -> None:
    """Refuse weights that the stage would not change."""
    lost = lost_updates(trainer.model, learning_rate)
    if lost > _MOST_LOST_UPDATES:
        types = ", ".join(sorted({str(each.dtype).removeprefix("torch.") for each in trainer.model.parameters()}))
        raise UsageError(
            f"train.stages.{stage}.learning_rate: steps of {learning_rate:g} leave {lost:.0%} of the trained weights "
            f"as they are, because {types} has no number so near; load the model in float32, or train adapters "
            "(train.lora)"
        )
