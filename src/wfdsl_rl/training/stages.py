"""Train one stage with TRL's trainers: SFT, or GRPO, from its beginning or from a checkpoint.

What is learned is decided by data, one reward function and callbacks. Each batch is generated, used once and
discarded, and rows are read once and in order. So an interrupted run continues with the same samples.
"""

from __future__ import annotations

import atexit
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOTrainer, SFTTrainer

from wfdsl.errors import WfdslError
from wfdsl.files import write_whole
from wfdsl_rl.reward import Listener
from wfdsl_rl.training.checkpoints import ends_of, load_model, save_trained, write_prompt
from wfdsl_rl.training.config import SftStage
from wfdsl_rl.training.data import FirstRounds, eval_rows, read_rows, stage_rows
from wfdsl_rl.training.grpo import grpo_config, peft, sft_config
from wfdsl_rl.training.plan import Setup
from wfdsl_rl.training.prefix_cache import share_prompts
from wfdsl_rl.training.rejection import rejection_sampled
from wfdsl_rl.training.samples import HealthChecks, SampleFiles


class Diverged(WfdslError):  # noqa: N818  (what it says)
    """The loss or the gradient is not a finite number."""


class StageFiles(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Appends every log entry of a stage to a file, and stops it if its loss is not finite. Puts the prompt into each
    checkpoint once that is complete, so that its folder can be loaded as a Conductor."""

    def __init__(self, setup: Setup, stage: str, *listeners: Callable[[dict[str, Any]], None]) -> None:
        self._setup = setup
        self._stage = stage
        self._listeners = (*setup.listeners, *listeners)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Write the prompt."""
        write_prompt(self._setup, self._stage, Path(args.output_dir) / f"checkpoint-{state.global_step}")

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:  # noqa: ARG002
        """Write an entry.

        Raises:
            Diverged: the loss or the gradient is not a finite number.
        """
        entry = {"stage": self._stage, "step": state.global_step, **(logs or {})}
        with self._setup.metrics_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        for name in ("loss", "grad_norm"):
            value = entry.get(name)
            if isinstance(value, float) and not math.isfinite(value):
                raise Diverged(
                    f"step {state.global_step}: {name} is {value}, and no checkpoint of this step is kept; use a "
                    f"smaller learning rate for the stage {self._stage}, and start again"
                )
        for listener in self._listeners:
            listener(entry)


def drop_lines_after(path: Path, stage: str, step: int) -> None:
    """Drop a stage's metrics after a step, from which it is trained again."""
    if not path.is_file():
        return
    kept = [
        line
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True)
        if line.endswith("\n") and not ((entry := json.loads(line))["stage"] == stage and entry["step"] > step)
    ]
    write_whole(path, "".join(kept))


class StageTrainer(GRPOTrainer):  # type: ignore[misc,unused-ignore]
    """GRPO in which the weight of the KL term falls linearly, to 0 at the end. Some groups may revise first rounds."""

    first_rounds: FirstRounds | None = None
    """Set before training, if groups do."""

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        """One pass of an iteration."""
        self.beta = self.args.beta * (1.0 - self.state.global_step / self.args.max_steps)
        return super().training_step(model, self._revised(inputs), num_items_in_batch)

    def prediction_step(self, model: Any, inputs: Any, *arguments: Any, **named: Any) -> Any:
        """One batch of an evaluation."""
        return super().prediction_step(model, self._revised(inputs), *arguments, **named)

    def _revised(self, rows: Any) -> Any:
        return rows if self.first_rounds is None else self.first_rounds.revised(rows, self.state.global_step)


def train_sft(setup: Setup, stage: str, model: str, *, checkpoint: Path | None = None) -> Path:
    """Train a stage of SFT, which reads its rows again from the first where there are too few; its model's folder.

    The rows of all steps are one epoch: transformers would train a resumed stage beyond its last step, if that is in
    the middle of another one.
    """
    sft, folder, first = setup.train.stages[stage], setup.folder(stage), setup.processes.is_first
    assert isinstance(sft, SftStage)  # the caller looked
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer, network = load_model(model)

    def read() -> list[dict[str, Any]]:
        return rejection_sampled(setup, stage, (tokenizer, network)) if sft.samples else read_rows(Path(sft.rows))

    rows = setup.processes.on_first(read)
    trainer = SFTTrainer(
        model=network,
        processing_class=tokenizer,
        args=sft_config(sft, setup.train, folder),
        train_dataset=Dataset.from_list([rows[at % len(rows)] for at in range(sft.max_steps * sft.batch_size)]),
        callbacks=[StageFiles(setup, stage)] if first else [],
        peft_config=peft(setup.train.lora),
    )
    return _trained(setup, stage, trainer, checkpoint)


def train_grpo(setup: Setup, stage: str, model: str, *, checkpoint: Path | None = None) -> Path:
    """Train a GRPO stage; the folder of its model."""
    config, folder, first = setup.train.grpo(stage), setup.folder(stage), setup.processes.is_first
    health, held_out, resumed = HealthChecks(setup.say), eval_rows(setup, stage), checkpoint is not None
    arguments = grpo_config(config, setup.train, folder, evaluate=bool(held_out), resumed=resumed)
    tokenizer, network = load_model(model)  # after the arguments, which say how weights are spread
    listeners: list[Listener] = [SampleFiles(folder / "samples"), health]
    trainer = StageTrainer(
        model=network,
        processing_class=tokenizer,
        args=arguments,
        train_dataset=Dataset.from_list(stage_rows(setup, stage)),
        eval_dataset={name: Dataset.from_list(rows) for name, rows in held_out.items()} or None,
        reward_funcs=setup.reward(stage, end_of_text=ends_of(tokenizer, network), listeners=listeners).trl,
        callbacks=[StageFiles(setup, stage, health.on_metrics)] if first else [],
        peft_config=peft(setup.train.lora),
    )
    if config.forced:
        trainer.first_rounds = FirstRounds(setup, config, folder / "samples")
    if setup.train.prefix_cache:
        for each in filter(None, (trainer.model, trainer.ref_model)):  # without a KL term there is no reference
            share_prompts(each)
    final = _trained(setup, stage, trainer, checkpoint)
    _leave_server(trainer)
    return final


def _trained(setup: Setup, stage: str, trainer: Any, checkpoint: Path | None) -> Path:
    trainer.remove_callback(PrinterCallback)  # our callbacks show progress
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    return save_trained(setup, stage, trainer, setup.folder(stage) / "final")


def _leave_server(trainer: Any) -> None:
    """Close the connection over which a vLLM server gets weights, because the next stage's trainer needs its port.

    TRL 1.16 closes it when Python exits, and keeps it until then. Only the first process has one.
    """
    client = getattr(getattr(trainer, "vllm_generation", None), "vllm_client", None)
    if client is not None:
        client.close_communicator()
        atexit.unregister(client.close_communicator)
