"""Write completions with a network, optionally from a forced prefix, which is part of the prompt.

A forced prefix is not trained, because it is part of the prompt: a small model forgets under rewards what it reads in
its prompt, or turns it into one more choice. Our choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from wfdsl_rl.gym.tiny.synthetic import with_lists
from wfdsl_rl.training.config import GrpoConfig

_PROMPTS, _TOKENS, _COMPLETIONS = 0, 1, 3
"""Places in the result of TRL's `_generate`, a private name that a contract test holds: the tokens of the prompts, the
tokens of the completions, and the completions."""


class DrawnShapes:
    """Completions of a question whose shapes are drawn, not sampled from the model, and trained all the same.

    Each shape is drawn from the same distribution in every iteration and written by `fills` completions. The tokens of
    a shape get its advantage, the mean of its completions' over the question's mean; the tokens after it get what their
    completion has over the mean of its shape. So the logit of a shape sums up what it was worth, and an unlikely one is
    tried no less than before. Source of two levels: arXiv 2605.14212; shapes that are drawn are our choice.
    """

    def __init__(self, trainer: Any, draw: Callable[[str, int], list[str]], fills: int) -> None:
        """`draw` has different shapes for a question, which its prompt and a number tell from others."""
        self.trainer, self.draw, self.fills = trainer, draw, fills
        self._generate, self._score = trainer._generate, trainer._generate_and_score_completions
        self._lengths: list[int] = []
        trainer._generate = self.generate
        trainer._generate_and_score_completions = self.score

    def generate(self, prompts: Any) -> Any:
        """Completions of prompts, each of which is repeated for its group, that begin with the drawn shapes."""
        if not self.trainer.model.training:
            return self._generate(prompts)
        shapes = self._shapes(prompts)
        found = list(self._generate([f"{prompt}{shape}" for prompt, shape in zip(prompts, shapes, strict=True)]))
        tokens = self.trainer.processing_class(shapes, add_special_tokens=False).input_ids
        self._lengths = [len(each) for each in tokens]
        found[_PROMPTS] = [ids[:-length] for ids, length in zip(found[_PROMPTS], self._lengths, strict=True)]
        found[_TOKENS] = [[*begun, *ids] for begun, ids in zip(tokens, found[_TOKENS], strict=True)]
        found[_COMPLETIONS] = [f"{shape}{text}" for shape, text in zip(shapes, found[_COMPLETIONS], strict=True)]
        return tuple(found)

    def _shapes(self, prompts: Sequence[str]) -> list[str]:
        """A shape for each prompt, with the blank before it."""
        size, step = self.trainer.num_generations, self.trainer.state.global_step
        drawn = [
            shape for at in range(0, len(prompts), size) for shape in self.draw(f"{step}:{at}", size // self.fills)
        ]
        return [f" {shape}" for shape in drawn for _ in range(self.fills)]

    def score(self, inputs: Any) -> Any:
        """TRL's batch, in training with an advantage for each token."""
        batch = self._score(inputs)
        if self.trainer.model.training:
            batch["advantages"] = two_levels(
                batch["advantages"], self._lengths, fills=self.fills, columns=batch["completion_ids"].shape[1]
            )
        return batch


def two_levels(advantages: Tensor, lengths: Sequence[int], *, fills: int, columns: int) -> Tensor:
    """Advantages of tokens (completions, columns), from those of completions, of which `fills` at a time share a shape.

    The first tokens of a completion, as many as `lengths` says, are its shape.
    """
    of_shape = advantages.view(-1, fills).mean(dim=1).repeat_interleave(fills)
    begun = torch.arange(columns) < torch.tensor(lengths)[:, None]
    return torch.where(begun.to(advantages.device), of_shape[:, None], (advantages - of_shape)[:, None])


def write_only_prefixes(trainer: Any) -> None:
    """Let training completions end with their first line, and hand them on with the lists that it stands for.

    Evaluations write whole completions.
    """
    generate, whole = trainer._generate, list(trainer.eos_token_ids)
    (line_break,) = trainer.processing_class("\n", add_special_tokens=False).input_ids

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
) -> list[str]:
    """A completion for each conversation and prefix, sampled as in a stage, in batches."""
    tokenizer, network = model
    torch.manual_seed(seed)
    return [
        text
        for at in range(0, len(conversations), stage.batch_size)
        for text in write(
            network,
            tokenizer,
            conversations[at : at + stage.batch_size],
            prefixes=prefixes[at : at + stage.batch_size],
            max_tokens=stage.max_completion_tokens,
            temperature=stage.temperature,
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
) -> list[str]:
    """A completion for each conversation, in one batch; greedy at temperature 0."""
    sampling = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    begun = prefixes or [""] * len(conversations)
    inputs = tokenizer(
        _rendered(tokenizer, conversations, begun),
        add_special_tokens=False,
        padding=True,
        return_tensors="pt",
    ).to(network.device)
    out = network.generate(**inputs, max_new_tokens=max_tokens, **sampling)
    texts = tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return [f"{prefix}{text}" for prefix, text in zip(begun, texts, strict=True)]


def _rendered(tokenizer: Any, conversations: Sequence[Any], prefixes: Sequence[str]) -> list[str]:
    """Conversations as text, each with the prefix of its answer."""
    asked = tokenizer.apply_chat_template(list(conversations), add_generation_prompt=True, tokenize=False)
    return [f"{prompt}{prefix}" for prompt, prefix in zip(asked, prefixes, strict=True)]
