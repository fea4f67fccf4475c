"""The stages of GRPO: what each does with a model, and the rows that it reads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from wfdsl_rl.gym.tiny.forced_prefix import begun
from wfdsl_rl.gym.tiny.sft import refresh, warm_up_for_recursion
from wfdsl_rl.gym.tiny.sft_rows import draw_of, given_to
from wfdsl_rl.training.config import Recursion
from wfdsl_rl.training.data import rows_of, with_second_rounds
from wfdsl_rl.training.grpo import grpo_config, grpo_trainer
from wfdsl_rl.training.judging import make_rewarder, programs_between_batches
from wfdsl_rl.training.networks import load, rounds_of, save_model
from wfdsl_rl.training.records import FallingKl, MetricLines, PromptInCheckpoints, drop_lines_after
from wfdsl_rl.training.recursion import RecursionTrainer
from wfdsl_rl.training.recursion_rows import exchanged
from wfdsl_rl.training.watching import Reports, Warnings

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl_rl.training.config import Grpo, StageName
    from wfdsl_rl.training.rewarding import Rewarder
    from wfdsl_rl.training.setting import Setting


def reinforce(setting: Setting, name: StageName, model: str, *, checkpoint: Path | None = None) -> Path:
    """A stage of GRPO, from its beginning or from one of its checkpoints; the folder of the model that comes out."""
    stage: Grpo = getattr(setting.train, name)
    if name == "recursion":
        model = warm_up_for_recursion(setting, model)
    tokenizer, network = load(model)
    reports, rewarder = Reports(setting, setting.folder(name)), make_rewarder(setting, setting.folder(name))
    trainer = _trainer(setting, name, (tokenizer, network), reports, rewarder, resumed=checkpoint is not None)
    if checkpoint is not None:
        drop_lines_after(setting.metrics_file, name, int(checkpoint.name.rpartition("-")[2]))
    with programs_between_batches(setting, rewarder, trainer.async_loop):
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        if not stage.refresh.steps:
            return save_model(setting, name, trainer.model, tokenizer)
        before = save_model(setting, name, trainer.model, tokenizer, folder="before-refresh")
        final = refresh(setting, name, before)
        if setting.eval_tasks:
            _evaluate_once_more(trainer, final)
            reports.write(trainer.state.global_step)
    return final


def _trainer(
    setting: Setting,
    name: StageName,
    model: tuple[Any, Any],
    reports: Reports,
    rewarder: Rewarder,
    *,
    resumed: bool,
) -> Any:
    """The trainer of a stage with all that listens to it."""
    stage: Grpo = getattr(setting.train, name)
    tokenizer, network = model
    folder, warnings = setting.folder(name), Warnings(setting.say)
    rewarder.executions, rewarder.common_random_numbers = stage.executions, stage.common_random_numbers
    rewarder.listeners.append(warnings.hear_samples)
    begin = partial(_begun, setting, stage, tokenizer)
    falling = FallingKl(stage.beta, stage.beta_free)
    evaluated = eval_rows(setting, name)
    trainer = grpo_trainer(
        network,
        tokenizer,
        grpo_config(stage, setting.train, folder, cpu=setting.cpu, evaluate=bool(evaluated), resumed=resumed),
        [begin(row) for row in stage_rows(setting, name)],
        rewarder,
        eval_rows=evaluated,
        lora=setting.train.lora,
        callbacks=[
            PromptInCheckpoints(setting.prompt, setting.max_steps, rounds_of(name)),
            MetricLines(setting.metrics_file, name, (*setting.listeners, warnings.hear_entry)),
            reports,
            *([falling] if stage.beta else []),
        ],
        kind=RecursionTrainer if isinstance(stage, Recursion) else None,
        share=stage.share_prompts,
    )
    falling.trainer = trainer
    if isinstance(trainer, RecursionTrainer) and isinstance(stage, Recursion):
        trainer.rewarder, trainer.prompt, trainer.max_steps_of_workflow = rewarder, setting.prompt, setting.max_steps
        trainer.balanced, trainer.begin = stage.balanced, begin
        trainer.exchange = partial(exchanged, setting)
    return trainer


def _evaluate_once_more(trainer: Any, model: Path) -> None:
    """The evaluation of what came of a stage's model behind the stage; it counts as a step more."""
    trainer.accelerator.unwrap_model(trainer.model).load_state_dict(load(str(model))[1].state_dict())
    trainer.state.global_step += 1
    trainer.evaluate()


def _begun(setting: Setting, stage: Grpo, tokenizer: Any, row: dict[str, Any]) -> dict[str, Any]:
    """The row with what its completions begin with, if the stage gives anything."""
    given = given_to(setting, stage, row)
    return begun(row, given, tokenizer) if given else row


def stage_rows(setting: Setting, name: StageName) -> list[dict[str, Any]]:
    """The rows of a stage: as many as it reads, so that it reads each once."""
    stage: Grpo = getattr(setting.train, name)
    rows = rows_of(
        setting.tasks,
        setting.pool,
        setting.prompt,
        count=stage.iterations * stage.questions,
        max_steps=setting.max_steps,
        draw=draw_of(setting, name),
    )
    if isinstance(stage, Recursion):
        return with_second_rounds(rows, share=stage.forced, discount=stage.discount)
    return rows


def eval_rows(setting: Setting, name: StageName) -> list[dict[str, Any]]:
    """The rows of an evaluation during a stage; if it is about second rounds, every question has one."""
    if not setting.eval_tasks:
        return []
    rows = rows_of(
        setting.eval_tasks,
        setting.pool,
        setting.prompt,
        count=len(setting.eval_tasks),
        max_steps=setting.max_steps,
        draw=draw_of(setting, name, more=1, unseen=True),
        split="eval",
    )
    stage: Grpo = getattr(setting.train, name)
    return with_second_rounds(rows, share=1.0, discount=1.0) if isinstance(stage, Recursion) and stage.forced else rows
