"""Train one stage with TRL's trainers: SFT, or GRPO, from its beginning or from a checkpoint.

What is learned is decided by data, one reward function and callbacks. Each batch is generated, used once and
discarded, and rows are read once and in order. So an interrupted run continues with the same samples.
"""

from __future__ import annotations

import atexit
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOTrainer, SFTTrainer

from wfdsl.conductor.checkpoint import save_prompt
from wfdsl.conductor.prompt import Prompt
from wfdsl.errors import WfdslError
from wfdsl.files import write_whole
from wfdsl_rl.reward import Listener
from wfdsl_rl.training.checkpoints import ends_of, load_model, revisions_of, save_trained
from wfdsl_rl.training.config import SftStage
from wfdsl_rl.training.data import FirstRounds, eval_rows, read_rows, stage_rows
from wfdsl_rl.training.grpo import grpo_config, peft, sft_config
from wfdsl_rl.training.plan import Setup
from wfdsl_rl.training.prefix_cache import share_prompts
from wfdsl_rl.training.rejection import rejection_sampled
from wfdsl_rl.training.samples import HealthChecks, SampleFiles, figures_of


class Diverged(WfdslError):  # noqa: N818  (what it says)
    """The loss or the gradient is not a finite number."""


class MetricLines(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Appends every log entry to a file, and stops a training whose loss is not finite."""

    def __init__(self, path: Path, stage: str, listeners: Sequence[Callable[[dict[str, Any]], None]] = ()) -> None:
        self._path = path
        self._stage = stage
        self._listeners = tuple(listeners)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:  # noqa: ARG002
        """Write an entry.

        Raises:
            Diverged: the loss or the gradient is not a finite number.
        """
        entry = {"stage": self._stage, "step": state.global_step, **(logs or {})}
        with self._path.open("a", encoding="utf-8") as file:
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


class PromptInCheckpoints(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Puts the prompt into each checkpoint once it is complete, so that its folder can be loaded as a Conductor."""

    def __init__(self, prompt: Prompt, max_steps: int, rounds: int) -> None:
        self._prompt = prompt
        self._max_steps = max_steps
        self._rounds = rounds

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Write it."""
        folder = f"{args.output_dir}/checkpoint-{state.global_step}"
        save_prompt(folder, self._prompt, max_steps=self._max_steps, max_rounds=self._rounds)


class KlSchedule(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Lowers the weight of the KL term linearly, to 0 at the end of a stage."""

    def __init__(self, beta: float) -> None:
        self._beta = beta
        self.trainer: Any = None
        """Set once it is built."""

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Set the weight for the iteration."""
        self.trainer.beta = self._beta * (1.0 - state.global_step / args.max_steps)


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


class RecursionTrainer(GRPOTrainer):  # type: ignore[misc,unused-ignore]
    """GRPO in which some groups revise first rounds."""

    first_rounds: FirstRounds
    """Set before training."""

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        """One pass of an iteration."""
        rows = self.first_rounds.revised(inputs, self.state.global_step)
        return super().training_step(model, rows, num_items_in_batch)

    def prediction_step(self, model: Any, inputs: Any, *arguments: Any, **named: Any) -> Any:
        """One batch of an evaluation."""
        rows = self.first_rounds.revised(inputs, self.state.global_step)
        return super().prediction_step(model, rows, *arguments, **named)


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
    writers = [
        PromptInCheckpoints(setup.prompt, setup.max_steps, 0),
        MetricLines(setup.metrics_file, stage, setup.listeners),
    ]
    trainer = SFTTrainer(
        model=network,
        processing_class=tokenizer,
        args=sft_config(sft, setup.train, folder),
        train_dataset=Dataset.from_list([rows[at % len(rows)] for at in range(sft.max_steps * sft.batch_size)]),
        callbacks=writers if first else [],
        peft_config=peft(setup.train.lora),
    )
    return _trained(setup, stage, trainer, checkpoint)


def train_grpo(setup: Setup, stage: str, model: str, *, checkpoint: Path | None = None) -> Path:
    """Train a GRPO stage; the folder of its model."""
    config, folder, first = setup.train.grpo(stage), setup.folder(stage), setup.processes.is_first
    health, kl = HealthChecks(setup.say), KlSchedule(config.beta)
    held_out, resumed = eval_rows(setup, stage), checkpoint is not None
    arguments = grpo_config(config, setup.train, folder, evaluate=bool(held_out), resumed=resumed)
    tokenizer, network = load_model(model)  # after the arguments, which say how weights are spread
    listeners: list[Listener] = [SampleFiles(folder / "samples"), health.on_samples, figures_of]
    writers = [
        PromptInCheckpoints(setup.prompt, setup.max_steps, revisions_of(setup, stage)),
        MetricLines(setup.metrics_file, stage, (*setup.listeners, health.on_metrics)),
    ]
    trainer = (RecursionTrainer if config.forced else GRPOTrainer)(
        model=network,
        processing_class=tokenizer,
        args=arguments,
        train_dataset=Dataset.from_list(stage_rows(setup, stage)),
        eval_dataset={name: Dataset.from_list(rows) for name, rows in held_out.items()} or None,
        reward_funcs=setup.reward(stage, end_of_text=ends_of(tokenizer, network), listeners=listeners).trl,
        callbacks=[*(writers if first else []), *([kl] if config.beta else [])],
        peft_config=peft(setup.train.lora),
    )
    kl.trainer = trainer
    if isinstance(trainer, RecursionTrainer):
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
