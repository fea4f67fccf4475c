"""Prompts with completions as tokens: what TRL makes of them, but many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("trl", reason="needs torch and trl, in the extra rl")

import torch
from datasets import Dataset
from trl import SFTConfig, SFTTrainer

from tests.rl.gym.tiny.test_sft_rows import a_gym_setup, new_model, rows_for
from wfdsl_rl.gym.tiny.small_vocabulary import IGNORED, learned_columns, parts_of_a_length, tokenized
from wfdsl_rl.training.checkpoints import load_model

if TYPE_CHECKING:
    from pathlib import Path


def test_tokens_and_labels_are_those_that_trl_makes(tmp_path: Path) -> None:
    setup = a_gym_setup(tmp_path)
    rows = rows_for(setup, 6)
    tokenizer, network = load_model(new_model(setup))
    config = SFTConfig(
        output_dir=str(tmp_path),
        completion_only_loss=True,
        max_length=None,
        use_cpu=True,
        bf16=False,
        activation_checkpointing=False,
    )
    theirs = SFTTrainer(network, config, train_dataset=Dataset.from_list(rows), processing_class=tokenizer)

    mine = tokenized(tokenizer, rows)

    assert theirs.train_dataset is not None
    assert mine == {name: list(theirs.train_dataset[name]) for name in ("input_ids", "labels")}
    assert all(IGNORED in labels and labels[-1] != IGNORED for labels in mine["labels"])


def test_columns_are_those_in_which_anything_is_learned() -> None:
    labels = torch.tensor([[IGNORED, IGNORED, 5, IGNORED, IGNORED], [IGNORED, IGNORED, IGNORED, 6, IGNORED]])

    columns, learned = learned_columns(labels)

    assert columns.tolist() == [1, 2]  # of the tokens that the learned ones come behind
    assert learned.tolist() == [[5, IGNORED], [IGNORED, 6]]


@pytest.mark.parametrize("side", ["left", "right"])
def test_parts_of_a_batch_have_rows_of_a_length_and_no_common_padding(side: str) -> None:
    lengths = [5, 2, 4, 3]
    rows = [[10 * at + 1 + token for token in range(length)] for at, length in enumerate(lengths)]
    pads = [[0] * (max(lengths) - length) for length in lengths]
    ids = torch.tensor([[*pad, *row] if side == "left" else [*row, *pad] for row, pad in zip(rows, pads, strict=True)])

    parts = parts_of_a_length({"input_ids": ids, "attention_mask": (ids > 0).long()}, 2)

    short, long = [part["input_ids"].tolist() for part in parts]
    assert short == ([[0, 11, 12], [31, 32, 33]] if side == "left" else [[11, 12, 0], [31, 32, 33]])
    assert long == ([[0, 21, 22, 23, 24], rows[0]] if side == "left" else [[21, 22, 23, 24, 0], rows[0]])
    assert [part["attention_mask"].tolist() for part in parts] == [
        [[int(token > 0) for token in row] for row in part["input_ids"].tolist()] for part in parts
    ]
