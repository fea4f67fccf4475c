"""Checkpoints: load and save models with their prompt, and find the newest complete checkpoint to resume from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from safetensors import SafetensorError

from wfdsl.conductor.checkpoint import FILE, save_prompt
from wfdsl.errors import UsageError
from wfdsl.workers.model_folder import SHIPPED_MODEL, shipped_file
from wfdsl_rl.training.plan import Setup

ADAPTER = "adapter_config.json"
"""The file that a folder with adapters has."""


def device() -> Literal["cpu", "cuda"]:
    """Where models are: on an accelerator, if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def has_bfloat16(where: Literal["cpu", "cuda"]) -> bool:
    """Whether passes on a device are computed in bfloat16: on GPUs, and on CPUs with instructions for it. One without
    them took 60 times as long for a product of matrices as in 32 bits."""
    return where == "cuda" or any(torch.cpu.get_capabilities().get(name) for name in ("avx512_bf16", "amx_bf16"))


def load_model(model: str) -> tuple[Any, Any]:
    """Tokenizer and network of a local directory or a Hugging Face model id, with weights in 32 bits.

    Most checkpoints have 16-bit weights, in which the small updates of GRPO are lost. The passes are computed in 16
    bits where the hardware has them (autocast).

    Raises:
        UsageError: the model cannot be loaded, or asked with messages, or does not end its texts.
    """
    plain = transformers.AutoModelForCausalLM.from_pretrained
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(model, padding_side="left")
        network = load_merged(model) if (Path(model) / ADAPTER).is_file() else plain(model, dtype=torch.float32)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise UsageError(f"the model {model} cannot be loaded: {str(error).splitlines()[0]}") from error
    if tokenizer.chat_template is None or tokenizer.eos_token_id is None:
        raise UsageError(f"the tokenizer of {model} needs a chat template and an end of text (eos_token)")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token  # as TRL does
    return tokenizer, network


def ends_of(tokenizer: Any, network: Any) -> list[int]:
    """The tokens that end a completion, as TRL takes them from a model."""
    ends = network.generation_config.eos_token_id
    known = [ends] if isinstance(ends, int) else list(ends or ())
    return [*dict.fromkeys([tokenizer.eos_token_id, *known])]


def completions_of(
    tokenizer: Any, network: Any, prompts: Sequence[Any], count: int, *, temperature: float, longest: int, **more: Any
) -> tuple[list[list[int]], list[list[int]], Any]:
    """The tokens of chats; those of `count` completions of each, up to their ends; and all that `generate` says.

    A temperature of 0 is greedy.
    """
    sampling = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    asked = tokenizer.apply_chat_template(
        prompts, add_generation_prompt=True, padding=True, return_dict=True, return_tensors="pt"
    ).to(network.device)
    with torch.no_grad():
        out = network.generate(
            **asked,
            **sampling,
            max_new_tokens=longest,
            num_return_sequences=count,
            pad_token_id=tokenizer.pad_token_id,
            return_dict_in_generate=True,
            **more,
        )
    ends, written = ends_of(tokenizer, network), out.sequences[:, asked["input_ids"].shape[1] :].tolist()
    rows = [next((row[: at + 1] for at, token in enumerate(row) if token in ends), row) for row in written]
    kept = zip(asked["input_ids"], asked["attention_mask"].bool(), strict=True)
    return [ids[mask].tolist() for ids, mask in kept], rows, out


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
        part = folder.with_suffix(".part")
        for each in read_gguf(file):
            each.save_pretrained(part)
        part.rename(folder)
    return str(folder)


def read_gguf(file: Path, **config: Any) -> tuple[Any, Any]:
    """Tokenizer and network, with weights in 32 bits, of a GGUF file; `config` is what differs in the network's own."""
    named = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    network = transformers.AutoModelForCausalLM.from_pretrained(**named, dtype=torch.float32, **config)
    del network.hf_quantizer, network.config.quantization_config  # what the file was, not what the weights are now
    return transformers.AutoTokenizer.from_pretrained(**named), network


def load_merged(folder: str | Path) -> Any:
    """The network of a folder with adapters, merged into its weights in 32 bits, all of which can be trained."""
    from peft import AutoPeftModelForCausalLM  # noqa: PLC0415  (its import takes seconds, and few need it)

    return AutoPeftModelForCausalLM.from_pretrained(folder, dtype=torch.float32).merge_and_unload().requires_grad_()


def write_prompt(setup: Setup, stage: str, folder: Path) -> None:
    """Write the prompt of a stage's model. It revises only if the stage trained that: else it makes answers worse."""
    rounds = int(getattr(setup.train.stages[stage], "forced", 0.0) > 0)
    save_prompt(folder, setup.prompt, max_steps=setup.max_steps, max_rounds=rounds)


def newest_complete(setup: Setup, stage: str) -> Path | None:
    """The newest complete checkpoint of a stage, from which it resumes; None: it starts again.

    The prompt is written last. Checkpoints that were not written to their end are skipped, and named.
    """
    count = setup.processes.count
    states = ["rng_state.pth"] if count == 1 else [f"rng_state_{rank}.pth" for rank in range(count)]
    for path in sorted(setup.folder(stage).glob("checkpoint-[0-9]*"), key=step_of, reverse=True):
        missing = [name for name in (FILE, *states) if not (path / name).is_file()]
        if not missing:
            setup.say(f"{stage}: resumes from {path}")
            return path
        setup.say(f"{stage}: skipped a checkpoint: {path}: {missing[0]} is missing")
    return None


def step_of(path: Path) -> int:
    """The step of a checkpoint's folder."""
    return int(path.name.removeprefix("checkpoint-"))
