"""Checkpoints: load and save models with their prompt, and find the newest complete checkpoint to resume from.

transformers loads a checkpoint without optimizer or random states silently, and crashes on a truncated file. So each
file is checked first, and damaged checkpoints are skipped.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from safetensors import SafetensorError, safe_open

from wfdsl.conductor.checkpoint import save_prompt
from wfdsl.errors import UsageError
from wfdsl.workers.model_folder import SHIPPED_MODEL, shipped_file
from wfdsl_rl.training.config import GrpoStage
from wfdsl_rl.training.plan import Setup

_NAME = re.compile(r"checkpoint-(\d+)")
ADAPTER = "adapter_config.json"
"""The file that a folder with adapters has."""
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
"""The files with the weights of a model, one of which a folder has."""
_OPTIMIZERS = ("optimizer.pt", "optimizer.bin", "optimizer_*")
"""The state of the optimizer: of one process, of FSDP whole or in parts."""


class Found(NamedTuple):
    """The checkpoint to resume from."""

    path: Path | None
    """None: there is no complete one, and the stage starts again."""
    skipped: tuple[str, ...]
    """The damaged ones, newest first, a line each."""


def load_model(model: str, *, half: bool = False) -> tuple[Any, Any]:
    """Tokenizer and network of a local directory or a Hugging Face model id, with weights in 32 bits.

    Most checkpoints have 16-bit weights, in which the small updates of GRPO are lost (`lost_updates`). The passes are
    computed in 16 bits where the hardware has them (autocast). `half` keeps the weights in 16 bits (bfloat16), for
    those that stay as they are below adapters; the adapters have 32.
    """
    tokenizer = transformers.AutoTokenizer.from_pretrained(model, padding_side="left")
    dtype = torch.bfloat16 if half else torch.float32
    return tokenizer, transformers.AutoModelForCausalLM.from_pretrained(model, dtype=dtype)


def ends_of(tokenizer: Any, network: Any) -> list[int]:
    """The tokens that end a completion, as TRL takes them from a model."""
    ends = network.generation_config.eos_token_id
    known = [ends] if isinstance(ends, int) else list(ends or ())
    return [*dict.fromkeys([tokenizer.eos_token_id, *known])]


def gguf_of(model: str) -> Path | None:
    """The GGUF file that `train.model` names; None if it names a folder or a model of the hub.

    Raises:
        UsageError: the package with the file is not installed.
    """
    if model == SHIPPED_MODEL:
        return shipped_file()
    return Path(model) if model.endswith(".gguf") and Path(model).is_file() else None


def import_gguf(model: str, folder: Path) -> str:
    """The folder of a model, which is written once, in 32 bits, where `model` names a GGUF file.

    Adapters are merged into the model in a folder, and transformers does not train the weights of a file in place.
    """
    file = gguf_of(model)
    if file is None:
        return model
    if not (folder / "config.json").is_file():
        named = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
        read = transformers.AutoModelForCausalLM.from_pretrained(**named, dtype=torch.float32)
        config = copy.deepcopy(read.config)
        del config.quantization_config  # what the file was, not what the weights are now
        network = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        network.load_state_dict(read.state_dict())
        part = folder.with_suffix(".part")
        transformers.AutoTokenizer.from_pretrained(**named).save_pretrained(part)
        network.save_pretrained(part)
        part.rename(folder)
    return str(folder)


def lost_updates(network: Any, learning_rate: float) -> float:
    """The fraction of the trained weights that a step of `learning_rate` leaves as they are, through rounding.

    A step of Adam changes a weight by about the learning rate. It is lost if that is less than half of the distance to
    the next number of the weight's type: at 1e-6, nearly all of a model's weights in bfloat16.
    """
    lost = total = 0
    for weight in network.parameters():
        if weight.requires_grad and weight.numel():
            values = weight.detach()
            step = values.new_tensor(learning_rate)
            lost += int(((values + step == values) | (values - step == values)).sum())
            total += values.numel()
    return lost / total if total else 0.0


def save_trained(setup: Setup, stage: str, trainer: Any, folder: Path) -> Path:
    """Save the model of a trainer, whose weights may be spread over processes; adapters are merged in 32 bits.

    The next stage trains adapters of its own.
    """
    trainer.save_model(str(folder))

    def complete() -> None:
        (folder / "training_args.bin").unlink()
        if (folder / ADAPTER).is_file():
            load_merged(folder).save_pretrained(folder)
            for path in folder.glob("adapter_*"):
                path.unlink()
        save_prompt(folder, setup.prompt, max_steps=setup.max_steps, max_rounds=revisions_of(setup, stage))

    setup.processes.on_first(complete)
    return folder


def load_merged(folder: Path) -> Any:
    """The network of a folder with adapters, merged into its weights in 32 bits.

    Raises:
        UsageError: no adapters were saved, so that the network would be the one that the training began with.
    """
    from peft import AutoPeftModelForCausalLM  # noqa: PLC0415  (an optional package)

    with safe_open(folder / "adapter_model.safetensors", framework="pt") as opened:
        if not opened.keys():
            raise UsageError(
                f"{folder}: PEFT has saved no adapters. A training keeps those of its last steps in checkpoint-*; "
                "continue it with --resume DIR and another version of peft, accelerate or torch"
            )
    return AutoPeftModelForCausalLM.from_pretrained(folder, dtype=torch.float32).merge_and_unload()


def revisions_of(setup: Setup, stage: str) -> int:
    """How many revisions a stage trains for: a model that was never shown one makes answers worse by it."""
    config = setup.train.stages[stage]
    return int(isinstance(config, GrpoStage) and config.forced > 0)


def newest_complete(folder: Path, processes: int = 1) -> Found:
    """The newest complete checkpoint of a stage's folder, for a number of processes."""
    skipped: list[str] = []
    for path in sorted(folder.glob("checkpoint-*"), key=step_of, reverse=True):
        problem = problem_of(path, processes)
        if problem is None:
            return Found(path, tuple(skipped))
        skipped.append(f"{path}: {problem}")
    return Found(None, tuple(skipped))


def problem_of(checkpoint: Path, processes: int = 1) -> str | None:
    """What is wrong with a checkpoint for a number of processes; None if it is complete."""
    return _bad_state(checkpoint) or _bad_weights(checkpoint) or _bad_archives(checkpoint, processes)


def drop_optimizers(folder: Path) -> None:
    """Remove the states of optimizers from the checkpoints of a stage that is complete; the models stay."""
    for path in [found for kind in _OPTIMIZERS for found in folder.glob(f"checkpoint-*/{kind}")]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def step_of(path: Path) -> int:
    """The step of a checkpoint's folder; -1 if its name has none."""
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else -1


def _bad_state(checkpoint: Path) -> str | None:
    path = checkpoint / "trainer_state.json"
    try:
        step = json.loads(path.read_text(encoding="utf-8"))["global_step"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"trainer_state.json cannot be read ({error!r})"
    return None if step == step_of(checkpoint) else f"trainer_state.json has step {step}"


def _bad_weights(checkpoint: Path) -> str | None:
    weights = sorted(checkpoint.glob("*.safetensors"))
    if not weights and not any(checkpoint.glob("pytorch_model_fsdp*")):
        return "there are no weights (*.safetensors)"
    for path in weights:
        try:
            with safe_open(path, framework="pt") as opened:
                opened.keys()
        except (SafetensorError, OSError) as error:
            return f"{path.name} is damaged ({error})"
    return None


def _bad_archives(checkpoint: Path, processes: int) -> str | None:
    states = ["rng_state.pth"] if processes == 1 else [f"rng_state_{rank}.pth" for rank in range(processes)]
    optimizers = [path for kind in _OPTIMIZERS for path in checkpoint.glob(kind)]
    for name in ("scheduler.pt", *states, *(path.name for path in optimizers or [Path("optimizer.pt")])):
        if (checkpoint / name).is_dir():
            continue  # the parts of several processes
        try:
            with zipfile.ZipFile(checkpoint / name) as archive:
                broken = archive.testzip()
        except FileNotFoundError:
            return f"{name} is missing"
        except (zipfile.BadZipFile, OSError) as error:
            return f"{name} is damaged ({error})"
        if broken is not None:
            return f"{name} is damaged (in {broken})"
    return None
