"""The arguments of TRL's GRPO and SFT trainers, from TrainConfig."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_type_hints

import torch
from datasets import disable_progress_bars
from pydantic import TypeAdapter, ValidationError
from transformers.utils import logging as transformers_logging
from trl import GRPOConfig, SFTConfig

from wfdsl.errors import UsageError
from wfdsl.settings import did_you_mean
from wfdsl_rl.training.config import GrpoStage, LoraConfig, SftStage, Stage, TrainConfig, share_of

_LOWEST_RATE: Final = 1e-4
"""Of the learning rate, in the last iteration; about that of a cosine over 200. Our choice."""
LOSSES: Final = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo", "cispo", "sapo", "vespo")
"""Losses of TRL 1.16, which looks at the name only when the first loss is computed."""


def on_cpu() -> bool:
    """Whether there is no accelerator."""
    return not torch.cuda.is_available()


def quiet_libraries() -> None:
    """Let only our own progress write to the terminal."""
    # trl uses names of transformers that are deprecated; a user of wfdsl cannot fix that.
    warnings.filterwarnings("ignore", message=".*_checkpointing.*deprecated", category=FutureWarning)
    warnings.filterwarnings("ignore", message="You are importing from 'trl.experimental'")
    disable_progress_bars()
    transformers_logging.disable_progress_bar()


def grpo_config(stage: GrpoStage, train: TrainConfig, folder: Path, *, evaluate: bool, resumed: bool) -> GRPOConfig:
    """TRL's arguments for a stage; those of [train.trl] cannot change the ones that keys of ours set.

    Raises:
        UsageError: [train.trl] has a key that TRL does not have, or a value that does not fit.
    """
    ours = stage_arguments(stage, train, folder)
    ours |= {
        "num_generations": stage.num_generations,
        "steps_per_generation": ours["gradient_accumulation_steps"],
        "num_iterations": 1,
        "shuffle_dataset": False,
        **schedule(stage),
        "beta": stage.beta,
        "scale_rewards": stage.scale_rewards,
        "max_completion_length": stage.max_completion_length,
        "mask_truncated_completions": False,
        "num_generations_eval": 1,
        "per_device_eval_batch_size": ours["per_device_train_batch_size"],
        "eval_strategy": "steps" if evaluate else "no",
        "eval_steps": stage.eval_steps,
        "eval_on_start": evaluate and not resumed,
        "logging_steps": 1,
        "logging_first_step": True,
        "remove_unused_columns": False,
    }
    paper = {"loss_type": "grpo", "adam_beta2": 0.999, "report_to": "none", "save_total_limit": 3}
    _require_trl(train.trl)
    return GRPOConfig(**{**paper, **_computing(train), **train.trl, **ours})


def schedule(stage: GrpoStage) -> dict[str, Any]:
    """The schedule whose warm-up ends its first step at 1/n of the rate, where that of `cosine` is 0 in it: a whole
    iteration of workflows would teach nothing."""
    if stage.lr_scheduler_type == "constant":
        return {"lr_scheduler_type": "constant", "warmup_steps": stage.warmup_steps}
    lowest = 1.0 if stage.lr_scheduler_type == "constant_with_warmup" else _LOWEST_RATE
    return {
        "lr_scheduler_type": "cosine_warmup_with_min_lr",
        "lr_scheduler_kwargs": {"min_lr_rate": lowest},
        "warmup_steps": stage.warmup_steps,
    }


def _require_trl(table: Mapping[str, Any]) -> None:
    """Refuse keys of [train.trl] that TRL does not have, and values of another type than its own.

    Raises:
        UsageError: there is one.
    """
    types = get_type_hints(GRPOConfig)
    for key, value in table.items():
        if key not in types:
            raise UsageError(f'train.trl has no key "{key}". {did_you_mean(key, types)}')
        try:
            TypeAdapter(types[key]).validate_python(value, strict=True)
        except ValidationError as error:
            raise UsageError(f"train.trl.{key}: {error.errors()[0]['msg']} (got {value!r})") from None
    if (loss := table.get("loss_type", "grpo")) not in LOSSES:
        raise UsageError(f"train.trl.loss_type: there is no loss {loss!r}; TRL has {', '.join(LOSSES)}")


def _computing(train: TrainConfig) -> dict[str, Any]:
    """How passes are computed, where [train.trl] does not say it."""
    return {
        "bf16": not on_cpu(),
        "activation_checkpointing": not on_cpu() if train.fsdp == "off" else not _fsdp_recomputes(train),
    }


def stage_arguments(stage: Stage, train: TrainConfig, folder: Path) -> dict[str, Any]:
    """TRL's arguments that all kinds of stages have.

    Raises:
        UsageError: the processes cannot share the completions of a step evenly.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    share = share_of(stage.batch_size, stage.per_device_train_batch_size or 1, processes)
    micro = min(stage.per_device_train_batch_size or share, share)
    return {
        "output_dir": str(folder),
        "use_cpu": on_cpu(),
        "disable_tqdm": True,
        "run_name": f"{folder.parent.name}-{folder.name}",
        "seed": train.seed,
        "dataloader_pin_memory": not on_cpu(),
        "ddp_find_unused_parameters": False,
        "max_steps": stage.max_steps,
        "per_device_train_batch_size": micro,
        "gradient_accumulation_steps": share // micro,
        "learning_rate": stage.learning_rate,
        "save_strategy": "steps",
        "save_steps": stage.save_steps,
        **_fsdp_arguments(train),
    }


def _fsdp_arguments(train: TrainConfig) -> dict[str, Any]:
    """How weights are divided. FSDP2 keeps 32-bit weights and computes in 16 bits."""
    if train.fsdp == "off":
        return {}
    return {
        "fsdp": True,
        "fsdp_config": {
            "version": 2,
            "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "state_dict_type": "FULL_STATE_DICT",
            "cpu_ram_efficient_loading": True,
            "activation_checkpointing": _fsdp_recomputes(train),
            "cpu_offload": train.fsdp == "offload",
        },
        # Else each process keeps the whole gradient of all weights, undivided, until the last pass of a step. With
        # offload this moves gradients to the machine's memory in each pass, where whole ones would fill the GPU.
        "accelerator_config": {"gradient_accumulation_kwargs": {"sync_each_batch": True}},
    }


def _fsdp_recomputes(train: TrainConfig) -> bool:
    """Whether FSDP recomputes activations, and not transformers.

    Its way is the faster one, but PEFT 0.21 does not find the adapters in layers that FSDP has wrapped for it, and
    saves none.
    """
    return train.fsdp != "off" and train.lora is None


def sft_config(stage: SftStage, train: TrainConfig, folder: Path) -> SFTConfig:
    """TRL's arguments for supervised steps, which read rows in order."""
    return SFTConfig(
        **stage_arguments(stage, train, folder),
        **{**_computing(train), **{name: train.trl[name] for name in _computing(train) if name in train.trl}},
        report_to=train.trl.get("report_to", "none"),
        lr_scheduler_type="cosine",
        warmup_steps=0.05,
        completion_only_loss=True,
        max_length=None,
        packing=False,
        train_sampling_strategy="sequential",
        save_total_limit=3,
        logging_steps=10,
    )


def peft(lora: LoraConfig | None) -> Any:
    """PEFT's arguments; None: all weights are trained."""
    if lora is None:
        return None
    from peft import LoraConfig as Lora  # noqa: PLC0415  (an optional package)

    return Lora(r=lora.r, lora_alpha=lora.lora_alpha, target_modules="all-linear", task_type="CAUSAL_LM")
