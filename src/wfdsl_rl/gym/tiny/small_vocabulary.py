"""Fast SFT for a small vocabulary: batched tokenization, and a loss without padding and unlearned columns.

TRL tokenizes a row at a time, which takes longer than a small model needs to learn from some rows. Its fused head never
holds the logits of a batch, which saves memory for large vocabularies; off the GPU it also computes every position of
the prompts, a quarter of a small model's step. Our choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MethodType
from typing import Any, Final, TypeAlias

import torch
from datasets import Dataset, concatenate_datasets
from torch import Tensor
from transformers import Trainer

_SMALL: Final = 4096
"""Up to this number of tokens, the logits of a batch are small. Our choice."""
_TOGETHER: Final = 2048
"""Rows that are tokenized at once. Our choice."""
_PARTS: Final = 4
"""Parts of a batch that are computed one after the other. Our choice: those of `gym-tiny` fit into a core's cache, and
8 % of them are padding, where a quarter of a whole batch is."""
IGNORED: Final = -100
"""The label of a token that is not learned, as torch's cross entropy has it."""

Columns: TypeAlias = dict[str, list[list[int]]]
"""`input_ids` and `labels` of each row."""


def dataset_of(tokenizer: Any, rows: Sequence[dict[str, Any]]) -> Dataset:
    """Rows as tokens, some at a time, because lists of numbers take many times the memory of a data set."""
    parts = [rows[at : at + _TOGETHER] for at in range(0, len(rows), _TOGETHER)]
    return concatenate_datasets([Dataset.from_dict(tokenized(tokenizer, part)) for part in parts])


def use_small_vocabulary_loss(trainer: Any) -> None:
    """Let a trainer of a model with a small vocabulary compute its loss in parts, from the learned columns only."""
    if len(trainer.processing_class) <= _SMALL:
        trainer.compute_loss = MethodType(_compute_loss, trainer)


def _compute_loss(self: Any, model: Any, inputs: dict[str, Any], *_: Any, num_items_in_batch: Any = None) -> Any:
    """The mean loss of a training batch, as a sum over its parts: the same gradient as the whole batch's."""
    count = (inputs["labels"] != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
    return torch.stack([_loss_of(self, model, part, count) for part in parts_of_a_length(inputs, _PARTS)]).sum()


def _loss_of(trainer: Any, model: Any, part: dict[str, Any], count: Any) -> Any:
    columns, labels = learned_columns(part["labels"])
    shown = {**part, "logits_to_keep": columns, "shift_labels": labels}
    return Trainer.compute_loss(trainer, model, shown, num_items_in_batch=count)


def tokenized(tokenizer: Any, rows: Sequence[dict[str, Any]]) -> Columns:
    """Rows of `prompt` and `completion` messages as tokens; the prompts' have no label.

    A completion begins where prompt and whole differ, as in TRL: a template may end a prompt differently.
    """
    prompts = tokenizer.apply_chat_template(
        [row["prompt"] for row in rows], add_generation_prompt=True, tokenize=True, return_dict=False
    )
    wholes = tokenizer.apply_chat_template(
        [row["prompt"] + row["completion"] for row in rows], tokenize=True, return_dict=False
    )
    begins = map(_common, prompts, wholes)
    labels = [[IGNORED] * begin + whole[begin:] for begin, whole in zip(begins, wholes, strict=True)]
    return {"input_ids": wholes, "labels": labels}


def parts_of_a_length(batch: Mapping[str, Tensor], parts: int) -> list[dict[str, Tensor]]:
    """A batch of (rows, tokens) in parts of rows of similar length, without columns of padding only."""
    mask = batch["attention_mask"]
    chunks = mask.sum(dim=1).argsort(stable=True).chunk(parts)
    return [{name: values[rows][:, mask[rows].any(dim=0)] for name, values in batch.items()} for rows in chunks]


def learned_columns(labels: Tensor) -> tuple[Tensor, Tensor]:
    """The columns of labels (rows, tokens) before which any token is learned, and their labels."""
    after = labels[:, 1:]
    (columns,) = (after != IGNORED).any(dim=0).nonzero(as_tuple=True)
    return columns, after[:, columns]


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many items two sequences have in common at the beginning."""
    short = min(len(one), len(other))
    if one[:short] == other[:short]:
        return short
    return next(at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
