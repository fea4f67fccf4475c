"""A tokenizer and its network: loaded, asked to write, and kept with the prompt that they were trained for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import transformers

from wfdsl.conductor.checkpoint import save_prompt
from wfdsl_rl.gym.tiny.forced_prefix import rendered

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wfdsl_rl.training.config import Grpo, StageName
    from wfdsl_rl.training.setting import Setting


def load(model: str) -> tuple[Any, Any]:
    """Tokenizer and network of a folder or a name of the hub."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(model, padding_side="left")
    return tokenizer, transformers.AutoModelForCausalLM.from_pretrained(model, dtype="auto")


def sharpen(network: Any, factor: float) -> None:
    """Multiply what the output layer gives, by scaling the last norm before it. Shapes stay."""
    if factor != 1.0:
        with torch.no_grad():
            network.model.norm.weight.mul_(factor)


def written(
    network: Any,
    tokenizer: Any,
    conversations: Sequence[Any],
    *,
    max_tokens: int,
    temperature: float,
    beginnings: Sequence[str] = (),
) -> list[str]:
    """A completion for each conversation, all at once; greedy at temperature 0.

    `beginnings` are what completions begin with, if they are not the model's from the first word on.
    """
    sampling = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    begun = beginnings or [""] * len(conversations)
    inputs = tokenizer(
        rendered(tokenizer, conversations, begun),
        add_special_tokens=False,
        padding=True,
        return_tensors="pt",
    ).to(network.device)
    out = network.generate(**inputs, max_new_tokens=max_tokens, **sampling)
    texts = tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return [f"{beginning}{text}" for beginning, text in zip(begun, texts, strict=True)]


def written_in_batches(
    setting: Setting,
    stage: Grpo,
    model: tuple[Any, Any],
    conversations: Sequence[Any],
    beginnings: Sequence[str],
) -> list[str]:
    """What a tokenizer's network writes, drawn as in a stage."""
    tokenizer, network = model
    torch.manual_seed(setting.train.seed)
    return [
        text
        for at in range(0, len(conversations), stage.batch)
        for text in written(
            network,
            tokenizer,
            conversations[at : at + stage.batch],
            beginnings=beginnings[at : at + stage.batch],
            max_tokens=stage.max_completion_tokens,
            temperature=stage.temperature,
        )
    ]


def rounds_of(name: StageName) -> int:
    """How many revisions a stage trains for: a model that was never shown one makes answers worse by it."""
    return int(name == "recursion")


def save_model(setting: Setting, name: StageName, network: Any, tokenizer: Any, *, folder: str = "final") -> Path:
    """Keep the model that came out of a stage, with its prompt."""
    if hasattr(network, "merge_and_unload"):  # the next stage trains adapters of its own
        network = network.merge_and_unload()
    return save(setting, setting.folder(name) / folder, network, tokenizer, rounds=rounds_of(name))


def save(setting: Setting, folder: Path, network: Any, tokenizer: Any, *, rounds: int) -> Path:
    """Keep a model with its prompt, in the folder that comes back."""
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    save_prompt(folder, setting.prompt, max_steps=setting.max_steps, max_rounds=rounds)
    return folder
