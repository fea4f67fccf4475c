"""Write completions with a network, optionally from a forced prefix, which is part of the prompt.

A forced prefix is not trained, because it is part of the prompt: a small model forgets under rewards what it reads in
its prompt, or turns it into one more choice. Our choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from wfdsl_rl.gym.tiny.synthetic import with_lists
from wfdsl_rl.training.config import GrpoConfig

_COMPLETIONS: Final = 3
"""The place of the completions in the result of TRL's `_generate`, a private name that a contract test holds."""


def write_only_prefixes(trainer: Any) -> None:
    """Let training completions end with their first line, and hand them on with the lists that it stands for.

    Evaluations write whole completions.
    """
    generate, whole = trainer._generate, list(trainer.eos_token_ids)
    (line_break,) = trainer.processing_class("\n", add_special_tokens=False).input_ids
    trainer.eos_token_ids = [*whole, line_break]  # rewards ask which tokens end a completion

    def written(prompts: Any) -> Any:
        training = trainer.model.training
        ends = [*whole, line_break] if training else whole
        trainer.eos_token_ids = trainer.generation_config.eos_token_id = ends
        found = generate(prompts)
        if not training:
            return found
        completions = [_with_lists(*each) for each in zip(prompts, found[_COMPLETIONS], strict=True)]
        return (*found[:_COMPLETIONS], completions, *found[_COMPLETIONS + 1 :])

    trainer._generate = written


def _with_lists(prompt: Any, completion: Any) -> Any:
    """A completion with the lists that it stands for, whose line may begin at the end of its prompt."""
    if not isinstance(completion, str):
        return [{**message, "content": with_lists(message["content"])} for message in completion]
    *_, begun = prompt.splitlines()
    return with_lists(f"{begun}{completion}").removeprefix(begun)


def force_prefix(row: Mapping[str, Any], prefix: str, tokenizer: Any) -> dict[str, Any]:
    """The row with a prompt in which the completion has begun; `conversation` keeps the prompt's messages."""
    (text,) = _rendered(tokenizer, [row["prompt"]], [prefix])
    if tokenizer("").input_ids:  # the trainer adds the token that begins every text again
        text = text.removeprefix(tokenizer.bos_token or "")
    return {**row, "conversation": row["prompt"], "prefix": prefix, "prompt": text}


def write_all(
    stage: GrpoConfig,
    seed: int,
    model: tuple[Any, Any],
    conversations: Sequence[Any],
    prefixes: Sequence[str],
    *,
    greedy: bool = False,
    only_prefix: bool = False,
) -> list[str]:
    """A completion for each conversation and prefix, sampled as in a stage, in batches.

    With `only_prefix`, code writes the lists that it stands for.
    """
    tokenizer, network = model
    torch.manual_seed(seed)
    return [
        with_lists(text) if only_prefix else text
        for at in range(0, len(conversations), stage.batch_size)
        for text in write(
            network,
            tokenizer,
            conversations[at : at + stage.batch_size],
            prefixes=prefixes[at : at + stage.batch_size],
            max_tokens=stage.max_completion_tokens,
            temperature=0.0 if greedy else stage.temperature,
            last="\n" if only_prefix else "",
        )
    ]


def write(
    network: Any,
    tokenizer: Any,
    conversations: Sequence[Any],
    *,
    max_tokens: int,
    temperature: float,
    prefixes: Sequence[str] = (),
    last: str = "",
) -> list[str]:
    """A completion for each conversation, in one batch; greedy at temperature 0. It may end with a token `last`."""
    sampling = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    ends = [tokenizer.eos_token_id, *tokenizer(last, add_special_tokens=False).input_ids]
    begun = prefixes or [""] * len(conversations)
    inputs = tokenizer(
        _rendered(tokenizer, conversations, begun),
        add_special_tokens=False,
        padding=True,
        return_tensors="pt",
    ).to(network.device)
    out = network.generate(**inputs, max_new_tokens=max_tokens, eos_token_id=ends, **sampling)
    texts = tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return [f"{prefix}{text}" for prefix, text in zip(begun, texts, strict=True)]


def _rendered(tokenizer: Any, conversations: Sequence[Any], prefixes: Sequence[str]) -> list[str]:
    """Conversations as text, each with the prefix of its answer."""
    asked = tokenizer.apply_chat_template(list(conversations), add_generation_prompt=True, tokenize=False)
    return [f"{prompt}{prefix}" for prompt, prefix in zip(asked, prefixes, strict=True)]
