"""TRL's trainers, built from our settings: the only module that imports trl.

Everything that decides what is learned is data, one reward function and callbacks. Generation and optimisation are
aligned (a batch is generated, used once and forgotten) and rows are read once and in order: that is what makes an
interrupted run go on with the same samples.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Final

import torch
from datasets import Dataset, concatenate_datasets, disable_progress_bars
from transformers import PrinterCallback, Trainer
from transformers.utils import logging as transformers_logging
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from wfdsl.errors import UsageError
from wfdsl_rl.gym.tiny.prefix_cache import share_prompts
from wfdsl_rl.gym.tiny.small_vocabulary import IGNORED, learned_columns, parts_of_a_length, tokenized
from wfdsl_rl.training.rewarding import reward_function

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wfdsl_rl.training.config import Grpo, Lora, Supervised, TrainSettings
    from wfdsl_rl.training.rewarding import Rewarder


_SMALL_VOCABULARY: Final = 4096
"""Up to so many tokens, the logits of a batch are small beside the rest. Our choice."""

_TOGETHER: Final = 2048
"""So many rows are tokenized at once. Our choice."""


_PARTS: Final = 4
"""So many parts of a batch are computed one after the other. Our choice: those of `gym-tiny` fit into a core's cache,
and 8 % of them are padding, where a quarter of a whole batch is."""


class SmallVocabularyTrainer(SFTTrainer):  # type: ignore[misc,unused-ignore]
    """Supervised steps with the model's own loss, of the columns in which anything is learned, and hardly any padding.

    TRL's fused head never holds the logits of a batch, which saves memory where vocabularies are large; off the GPU it
    goes over every position of the prompts too, and takes a quarter of a small model's step.
    """

    def compute_loss(self, model: Any, inputs: dict[str, Any], *_: Any, num_items_in_batch: Any = None) -> Any:
        """The mean loss of a batch of training, to which its parts add up: the same gradient as that of the whole."""
        count = (inputs["labels"] != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
        return torch.stack([self._loss_of(model, part, count) for part in parts_of_a_length(inputs, _PARTS)]).sum()

    def _loss_of(self, model: Any, part: dict[str, Any], count: Any) -> Any:
        columns, labels = learned_columns(part["labels"])
        shown = {**part, "logits_to_keep": columns, "shift_labels": labels}
        return Trainer.compute_loss(self, model, shown, num_items_in_batch=count)


def quiet_libraries() -> None:
    """Let nothing but our own progress write to the terminal."""
    # trl uses names of transformers that will change: nothing that a user of wfdsl could mend.
    warnings.filterwarnings("ignore", message=".*_checkpointing.*deprecated", category=FutureWarning)
    disable_progress_bars()
    transformers_logging.disable_progress_bar()


def grpo_config(
    stage: Grpo, train: TrainSettings, folder: Path, *, cpu: bool, evaluate: bool, resumed: bool
) -> GRPOConfig:
    """TRL's arguments for a stage."""
    share = completions_of_a_process(stage.batch, stage.micro_batch or 1)
    micro = min(stage.micro_batch or share, share)
    arguments: dict[str, Any] = {
        "output_dir": str(folder),
        "max_steps": stage.iterations,
        "num_generations": stage.rollouts,
        "per_device_train_batch_size": micro,
        "gradient_accumulation_steps": share // micro,
        "steps_per_generation": share // micro,
        "num_iterations": 1,
        "shuffle_dataset": False,
        "learning_rate": stage.learning_rate,
        "lr_scheduler_type": stage.schedule,
        "warmup_steps": stage.warmup_ratio,
        "adam_beta1": 0.9,
        "adam_beta2": stage.adam_beta2,
        "max_grad_norm": stage.max_grad_norm,
        "epsilon": stage.epsilon,
        "beta": stage.beta,
        "loss_type": stage.loss,
        "scale_rewards": stage.scale_rewards,
        "entropy_coef": stage.entropy_coefficient,
        "temperature": stage.temperature,
        "max_completion_length": stage.max_completion_tokens,
        "mask_truncated_completions": False,
        "bf16": not cpu,
        "use_cpu": cpu,
        "activation_checkpointing": not cpu and not stage.share_prompts,
        "num_generations_eval": 1,
        "per_device_eval_batch_size": micro,
        "eval_strategy": "steps" if evaluate else "no",
        "eval_steps": stage.evaluate_every,
        "eval_on_start": evaluate and not resumed,
        "save_strategy": "steps",
        "save_steps": stage.save_every,
        "save_total_limit": 3,
        "logging_steps": 1,
        "logging_first_step": True,
        "disable_tqdm": True,
        "report_to": list(train.report_to) or "none",
        "remove_unused_columns": False,
        "seed": train.seed,
        "dataloader_pin_memory": not cpu,
    }
    return GRPOConfig(**{**arguments, **train.extra})


def completions_of_a_process(batch: int, micro: int) -> int:
    """How many of an iteration's completions each process of `accelerate launch` sees, `micro` at a time.

    Raises:
        UsageError: they cannot be shared evenly.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if batch % (processes * min(micro, batch // processes)):
        raise UsageError(
            f"{processes} processes cannot share {batch} completions evenly, {micro} at a time: change questions, "
            "rollouts or micro_batch"
        )
    return batch // processes


def grpo_trainer(
    model: Any,
    tokenizer: Any,
    config: GRPOConfig,
    rows: Sequence[dict[str, Any]],
    rewarder: Rewarder,
    *,
    eval_rows: Sequence[dict[str, Any]] = (),
    lora: Lora | None = None,
    callbacks: Sequence[Any] = (),
    kind: type[GRPOTrainer] | None = None,
    share: bool = False,
) -> GRPOTrainer:
    """The trainer of a stage; `share`: prompts are computed once for all of their completions."""
    trainer = (kind or GRPOTrainer)(
        model=model,
        processing_class=tokenizer,
        args=config,
        train_dataset=Dataset.from_list(list(rows)),
        eval_dataset=Dataset.from_list(list(eval_rows)) if eval_rows else None,
        reward_funcs=reward_function(rewarder),
        callbacks=list(callbacks),
        peft_config=None if lora is None else _peft(lora),
    )
    trainer.remove_callback(PrinterCallback)  # what is shown is our callbacks' business
    for network in (trainer.model, trainer.ref_model) if share else ():
        if network is not None:  # no model of its own to compare with: without a KL term, or with adapters
            share_prompts(network.get_base_model() if lora is not None else network)
    return trainer


def warmup_trainer(
    model: Any,
    tokenizer: Any,
    rows: Sequence[dict[str, Any]],
    folder: Path,
    *,
    warmup: Supervised,
    train: TrainSettings,
    cpu: bool,
    callbacks: Sequence[Any] = (),
) -> SFTTrainer:
    """The trainer of a warm-up; rows have `prompt` and `completion`, both as messages, and are read in order."""
    config = SFTConfig(
        output_dir=str(folder),
        max_steps=warmup.steps,
        per_device_train_batch_size=warmup.batch,
        learning_rate=warmup.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=0.05,
        completion_only_loss=True,
        max_length=None,
        packing=False,
        bf16=not cpu,
        use_cpu=cpu,
        activation_checkpointing=False,
        train_sampling_strategy="sequential",
        save_strategy="no",
        logging_steps=10,
        disable_tqdm=True,
        report_to=list(train.report_to) or "none",
        seed=train.seed,
        dataloader_pin_memory=not cpu,
    )
    kind = SmallVocabularyTrainer if len(tokenizer) <= _SMALL_VOCABULARY else SFTTrainer
    trainer = kind(
        model=model,
        processing_class=tokenizer,
        args=config,
        train_dataset=_tokenized(tokenizer, rows),
        callbacks=list(callbacks),
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _tokenized(tokenizer: Any, rows: Sequence[dict[str, Any]]) -> Dataset:
    """Rows as tokens, some at a time, because lists of numbers take many times the memory of a data set."""
    parts = [rows[at : at + _TOGETHER] for at in range(0, len(rows), _TOGETHER)]
    return concatenate_datasets([Dataset.from_dict(tokenized(tokenizer, part)) for part in parts])


def _peft(lora: Lora) -> Any:
    from peft import LoraConfig  # noqa: PLC0415  (an optional package)

    return LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
