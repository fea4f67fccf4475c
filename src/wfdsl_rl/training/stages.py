"""Train one stage with TRL's trainers: SFT, or GRPO, from its beginning or from a checkpoint; and their arguments.

What is learned is decided by data, one reward function and callbacks. Each batch is generated, used once and
discarded, and rows are read once and in order. So an interrupted run continues with the same samples.
"""

from __future__ import annotations

import atexit
import json
import logging
import math
import os
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, get_type_hints

from datasets import Dataset, disable_progress_bars
from peft import LoraConfig as Lora
from pydantic import TypeAdapter, ValidationError
from transformers import PrinterCallback, TrainerCallback
from transformers.utils import logging as transformers_logging
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from wfdsl.errors import UsageError, WfdslError
from wfdsl.files import write_whole
from wfdsl.settings import did_you_mean
from wfdsl_rl.reward import Listener
from wfdsl_rl.training.checkpoints import ADAPTER, device, ends_of, has_bfloat16, load_merged, load_model, write_prompt
from wfdsl_rl.training.config import GrpoStage, LoraConfig, SftStage, Stage, TrainConfig, share_of
from wfdsl_rl.training.data import FirstRounds, read_rows, rejection_sampled, stage_rows
from wfdsl_rl.training.plan import METRICS, Setup
from wfdsl_rl.training.prefix_cache import share_prompts
from wfdsl_rl.training.samples import HealthChecks, SampleFiles

LOSSES: Final = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo", "cispo", "sapo", "vespo")
"""Losses of TRL 1.16, which looks at the name only when the first loss is computed."""


class Diverged(WfdslError):  # noqa: N818  (what it says)
    """The loss or the gradient is not a finite number."""


class StageFiles(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Writes the log entries of a stage, as its checkpoints have them, to a file, and stops it if its loss is not
    finite. Puts the prompt into each checkpoint once that is complete, so that its folder can be loaded as a Conductor.
    """

    def __init__(self, setup: Setup, stage: str) -> None:
        self._setup, self._stage = setup, stage

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Write the prompt."""
        write_prompt(self._setup, self._stage, Path(args.output_dir) / f"checkpoint-{state.global_step}")

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:  # noqa: ARG002
        """Write the entries.

        Raises:
            Diverged: the loss or the gradient is not a finite number.
        """
        entry = {"stage": self._stage, "step": state.global_step, **(logs or {})}
        write_whole(Path(args.output_dir) / METRICS, "".join(json.dumps(each) + "\n" for each in state.log_history))
        for name in ("loss", "grad_norm"):
            value = entry.get(name)
            if isinstance(value, float) and not math.isfinite(value):
                raise Diverged(
                    f"step {state.global_step}: {name} is {value}, and no checkpoint of this step is kept; use a "
                    f"smaller learning rate for the stage {self._stage}, and start again"
                )
        for listener in self._setup.listeners:
            listener(entry)


class StageTrainer(GRPOTrainer):  # type: ignore[misc,unused-ignore]
    """GRPO in which the weight of the KL term falls linearly, to 0 at the end. Some groups may revise first rounds."""

    first_rounds: FirstRounds | None = None  # set before training, if groups do

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        """One pass of an iteration."""
        self.beta = self.args.beta * (1.0 - self.state.global_step / self.args.max_steps)
        if self.first_rounds is not None:
            inputs = self.first_rounds.revised(inputs, self.state.global_step)
        return super().training_step(model, inputs, num_items_in_batch)


def train_sft(setup: Setup, stage: str, model: str, *, checkpoint: Path | None = None) -> Path:
    """Train a stage of SFT, which reads its rows again from the first where there are too few; its model's folder.

    The rows of all steps are one epoch: transformers would train a resumed stage beyond its last step, if that is in
    the middle of another one.
    """
    sft: SftStage = setup.train.stages[stage]
    tokenizer, network = load_model(model)
    sampled = partial(rejection_sampled, setup, stage, (tokenizer, network))
    count = sft.max_steps * sft.batch_size
    rows = setup.processes.on_first(sampled if sft.samples else partial(read_rows, Path(sft.rows)))[:count]
    trainer = SFTTrainer(
        model=network,
        processing_class=tokenizer,
        args=sft_config(sft, setup.train, setup.folder(stage)),
        train_dataset=Dataset.from_list(rows),
        peft_config=peft(setup.train.lora),
    )
    trainer.train_dataset = trainer.train_dataset.select([at % len(rows) for at in range(count)])
    return run_trainer(setup, stage, trainer, checkpoint)


def train_grpo(setup: Setup, stage: str, model: str, *, checkpoint: Path | None = None) -> Path:
    """Train a GRPO stage; the folder of its model."""
    config, folder = setup.train.stages[stage], setup.folder(stage)
    arguments = grpo_config(config, setup.train, folder)
    tokenizer, network = load_model(model)  # after the arguments, which say how weights are spread
    listeners: list[Listener] = [SampleFiles(folder / "samples"), HealthChecks(setup.say)]
    trainer = StageTrainer(
        model=network,
        processing_class=tokenizer,
        args=arguments,
        train_dataset=Dataset.from_list(stage_rows(setup, stage)),
        reward_funcs=setup.reward(stage, end_of_text=ends_of(tokenizer, network), listeners=listeners).trl,
        peft_config=peft(setup.train.lora),
    )
    trainer.first_rounds = FirstRounds(setup, stage) if config.forced else None
    final = run_trainer(setup, stage, trainer, checkpoint)
    # The connection over which a vLLM server gets weights: TRL 1.16 keeps it until Python exits, and the next stage's
    # trainer needs its port. Only the first process has one.
    client = getattr(getattr(trainer, "vllm_generation", None), "vllm_client", None)
    if client is not None:
        client.close_communicator()
        atexit.unregister(client.close_communicator)
    return final


def run_trainer(setup: Setup, stage: str, trainer: Any, checkpoint: Path | None) -> Path:
    """Train, from a checkpoint if there is one; the folder of the model, whose weights may be spread over processes.

    Adapters are merged in 32 bits: the next stage trains adapters of its own.
    """
    final = setup.folder(stage) / "final"
    if setup.train.prefix_cache:
        for each in filter(None, (trainer.model, getattr(trainer, "ref_model", None))):  # only KL terms need another
            share_prompts(each)
    trainer.remove_callback(PrinterCallback)  # our callbacks show progress
    if setup.processes.is_first:
        trainer.add_callback(StageFiles(setup, stage))
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    trainer.save_model(str(final))

    def complete() -> None:
        (final / "training_args.bin").unlink()
        if (final / ADAPTER).is_file():
            load_merged(final).save_pretrained(final)
            for path in (*final.glob("adapter_*"), *final.glob("README.md")):  # PEFT's card
                path.unlink()
        write_prompt(setup, stage, final)

    setup.processes.on_first(complete)
    return final


def quiet_libraries() -> None:
    """Let only our own progress write to the terminal."""
    # trl uses names of transformers that are deprecated; a user of wfdsl cannot fix that.
    warnings.filterwarnings("ignore", message=".*_checkpointing.*deprecated", category=FutureWarning)
    warnings.filterwarnings("ignore", message="You are importing from 'trl.experimental'")
    disable_progress_bars()
    transformers_logging.disable_progress_bar()
    # Completions without a score are counted and reported by us.
    logging.getLogger("trl.trainer.grpo_trainer").addFilter(lambda said: "returned None" not in said.getMessage())


def grpo_config(stage: GrpoStage, train: TrainConfig, folder: Path) -> GRPOConfig:
    """TRL's arguments for a stage; those of [train.trl] cannot change the ones that keys of ours set.

    Raises:
        UsageError: [train.trl] has a key that TRL does not have, or a value that does not fit.
    """
    require_trl(train.trl, GRPOConfig)
    more = {"shuffle_dataset": False, "beta": stage.beta, "scale_rewards": stage.scale_rewards}
    ours = {**grpo_arguments(stage, train, folder), **more}
    return GRPOConfig(**{"loss_type": "grpo", "save_total_limit": 3, **computing(train), **train.trl, **ours})


def grpo_arguments(stage: GrpoStage, train: TrainConfig, folder: Path) -> dict[str, Any]:
    """The arguments that both of TRL's trainers of GRPO have.

    The warm-up ends its first step at 1/n of the rate, where that of `cosine` is 0 in it: a whole iteration of
    workflows would teach nothing.
    """
    lowest = 1e-4 if stage.lr_scheduler_type == "cosine" else 1.0  # about that of a cosine over 200; our choice
    return {
        **_stage_arguments(stage, train, folder),
        "num_generations": stage.num_generations,
        "max_completion_length": stage.max_completion_length,
        "logging_steps": 1,
        "lr_scheduler_type": "cosine_warmup_with_min_lr",
        "lr_scheduler_kwargs": {"min_lr_rate": lowest},
        "warmup_steps": 0.0 if stage.lr_scheduler_type == "constant" else stage.warmup_steps,
    }


def require_trl(table: Mapping[str, Any], config: type) -> None:
    """Refuse keys of [train.trl] that TRL's class of arguments does not have, and values of another type than its own.

    Raises:
        UsageError: there is one.
    """
    types = get_type_hints(config)
    for key, value in table.items():
        if key not in types:
            raise UsageError(f'train.trl: {config.__name__} has no key "{key}". {did_you_mean(key, types)}')
        try:
            TypeAdapter(types[key]).validate_python(value, strict=True)
        except ValidationError as error:
            raise UsageError(f"train.trl.{key}: {error.errors()[0]['msg']} (got {value!r})") from None
    if (loss := table.get("loss_type", "grpo")) not in LOSSES:
        raise UsageError(f"train.trl.loss_type: there is no loss {loss!r}; TRL has {', '.join(LOSSES)}")


def computing(train: TrainConfig) -> dict[str, Any]:
    """How passes are computed, where [train.trl] does not say it.

    Where weights are divided, FSDP's way to recompute activations is the faster one. But PEFT 0.21 does not find the
    adapters in layers that FSDP has wrapped for it, and saves none. The prefix cache has nothing to recompute from.
    """
    recomputes = device() != "cpu" and not train.prefix_cache if train.fsdp == "off" else train.lora is not None
    return {"bf16": has_bfloat16(device()), "activation_checkpointing": recomputes}


def _stage_arguments(stage: Stage, train: TrainConfig, folder: Path) -> dict[str, Any]:
    """TRL's arguments that all kinds of stages have.

    Raises:
        UsageError: the processes cannot share the completions of a step evenly.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    share = share_of(stage.batch_size, stage.per_device_train_batch_size or 1, processes)
    micro = min(stage.per_device_train_batch_size or share, share)
    return {
        "output_dir": str(folder),
        "use_cpu": device() == "cpu",
        "disable_tqdm": True,
        "run_name": f"{folder.parent.name}-{folder.name}",
        "seed": train.seed,
        "dataloader_pin_memory": device() != "cpu",
        "ddp_find_unused_parameters": False,
        "max_steps": stage.max_steps,
        "per_device_train_batch_size": micro,
        "gradient_accumulation_steps": share // micro,
        "learning_rate": stage.learning_rate,
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
            "activation_checkpointing": train.lora is None,
            "cpu_offload": train.fsdp == "offload",
        },
        # Else each process keeps the whole gradient of all weights, undivided, until the last pass of a step. With
        # offload this moves gradients to the machine's memory in each pass, where whole ones would fill the GPU.
        "accelerator_config": {"gradient_accumulation_kwargs": {"sync_each_batch": True}},
    }


def sft_config(stage: SftStage, train: TrainConfig, folder: Path) -> SFTConfig:
    """TRL's arguments for supervised steps, which read rows in order."""
    usual = computing(train)
    return SFTConfig(
        **_stage_arguments(stage, train, folder),
        **{**usual, **{name: value for name, value in train.trl.items() if name in (*usual, "report_to")}},
        lr_scheduler_type="cosine",
        warmup_steps=0.05,
        max_length=None,
        train_sampling_strategy="sequential",
        save_total_limit=3,
    )


def peft(lora: LoraConfig | None) -> Any:
    """PEFT's arguments; None: all weights are trained."""
    about = {"target_modules": "all-linear", "task_type": "CAUSAL_LM"}
    return None if lora is None else Lora(r=lora.r, lora_alpha=lora.lora_alpha, **about)
