"""Prompts with completions as the tokens that supervised steps read.

TRL makes them itself, but a row at a time, which takes longer than a small model needs to learn from some of them. Here
many are tokenized together. Our choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

IGNORED: Final = -100
"""The label of a token that is not learned, as torch's cross entropy has it."""

Columns: TypeAlias = dict[str, list[list[int]]]
"""`input_ids` and `labels` of each row."""


def tokenized(tokenizer: Any, rows: Sequence[dict[str, Any]]) -> Columns:
    """Rows of `prompt` and `completion`, both as messages, as tokens; those of prompts have no label.

    A completion begins where prompt and whole differ, as in TRL: templates may end a prompt otherwise than they go on.
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
    """A batch of (rows, tokens) in parts whose rows are about as long, without what is only padding in a part."""
    mask = batch["attention_mask"]
    chunks = mask.sum(dim=1).argsort(stable=True).chunk(parts)
    return [{name: values[rows][:, mask[rows].any(dim=0)] for name, values in batch.items()} for rows in chunks]


def learned_columns(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Where any row of labels (rows, tokens) has one that is learned, for the token before; and those labels."""
    behind = labels[:, 1:]
    (columns,) = (behind != IGNORED).any(dim=0).nonzero(as_tuple=True)
    return columns, behind[:, columns]


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many items two sequences begin with alike."""
    short = min(len(one), len(other))
    if one[:short] == other[:short]:
        return short
    return next(at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
