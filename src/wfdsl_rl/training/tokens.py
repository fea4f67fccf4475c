"""Prompts with completions as the tokens that supervised steps read.

TRL makes them itself, but a row at a time, which takes longer than a small model needs to learn from some of them. Here
all of them are tokenized together, and each batch is made of rows of about the same length. Our choice.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

IGNORED: Final = -100
"""The label of a token that is not learned, as torch's cross entropy has it."""

_WINDOW: Final = 8
"""Among so many batches rows are sorted by their lengths. Our choice: a quarter of what a batch of `gym-tiny` held was
padding, and eight batches are fewer than those that Adam's momentum is a mean over."""

_TOGETHER: Final = 2048
"""So many rows are tokenized at once: enough for all threads, and little memory. Our choice."""

_T = TypeVar("_T")

Columns: TypeAlias = "dict[str, list[NDArray[np.int32]]]"
"""`input_ids` and `labels` of each row."""


def tokenized(tokenizer: Any, rows: Sequence[dict[str, Any]]) -> Columns:
    """Rows of `prompt` and `completion`, both as messages, as tokens; those of prompts have no label.

    A completion begins where prompt and whole differ, as in TRL: templates may end a prompt otherwise than they go on.
    """
    columns: Columns = {"input_ids": [], "labels": []}
    for some in _parts(rows, _TOGETHER):
        prompts = tokenizer.apply_chat_template(
            [row["prompt"] for row in some], add_generation_prompt=True, tokenize=True, return_dict=False
        )
        wholes = tokenizer.apply_chat_template(
            [row["prompt"] + row["completion"] for row in some], tokenize=True, return_dict=False
        )
        for prompt, whole in zip(prompts, wholes, strict=True):
            labels = np.array(whole, dtype=np.int32)
            columns["input_ids"].append(labels.copy())
            labels[: _common(prompt, whole)] = IGNORED
            columns["labels"].append(labels)
    return columns


def in_even_batches(columns: Columns, *, batch: int, seed: int) -> Columns:
    """The rows in another order, in which those of a batch are about as long: less is computed that is only padding.

    Rows stay within a window of a few batches, whose order is drawn from the seed.
    """
    rng, rows = random.Random(f"batches:{seed}"), columns["input_ids"]
    order: list[int] = []
    for window in _parts(range(len(rows)), _WINDOW * batch):
        batches = _parts(sorted(window, key=lambda at: len(rows[at])), batch)
        rng.shuffle(batches)
        order += [at for each in batches for at in each]
    return {name: [values[at] for at in order] for name, values in columns.items()}


def learned_columns(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Where any row of labels (rows, tokens) has one that is learned, for the token before; and those labels."""
    behind = labels[:, 1:]
    (columns,) = (behind != IGNORED).any(dim=0).nonzero(as_tuple=True)
    return columns, behind[:, columns]


def _parts(items: Sequence[_T], size: int) -> list[Sequence[_T]]:
    return [items[at : at + size] for at in range(0, len(items), size)]


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many items two sequences begin with alike."""
    short = min(len(one), len(other))
    if one[:short] == other[:short]:
        return short
    return next(at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
