"""Prompts with completions as tokens: what TRL makes of them, all at once and in even batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("trl", reason="needs torch and trl: pip install 'wfdsl[rl]'")

import numpy as np
import torch
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from trl import SFTConfig, SFTTrainer

from tests.rl.training.test_warming import a_gym_setting, rows_for
from wfdsl_rl.training.networks import load
from wfdsl_rl.training.supervised import new_model
from wfdsl_rl.training.tokens import IGNORED, Columns, in_even_batches, learned_columns, tokenized

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

lengths = st.lists(st.integers(1, 40), max_size=200)


def of_lengths(many: list[int]) -> Columns:
    ids = [np.full(size, at, np.int32) for at, size in enumerate(many)]
    return {"input_ids": ids, "labels": ids}


def test_tokens_and_labels_are_those_that_trl_makes(tmp_path: Path) -> None:
    setting = a_gym_setting(tmp_path)
    rows = rows_for(setting, 6)
    tokenizer, network = load(str(new_model(setting)))
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
    for name, column in mine.items():
        assert [each.tolist() for each in column] == list(theirs.train_dataset[name])
    assert all(IGNORED in labels and labels[-1] != IGNORED for labels in mine["labels"])


@given(lengths, st.integers(1, 7), st.integers(0, 3))
def test_even_batches_hold_every_row_once_and_near_its_place(many: list[int], batch: int, seed: int) -> None:
    there = in_even_batches(of_lengths(many), batch=batch, seed=seed)

    order = [int(labels[0]) for labels in there["labels"]]
    assert sorted(order) == list(range(len(many)))
    assert all(at // (8 * batch) == number // (8 * batch) for at, number in enumerate(order))
    assert [len(ids) for ids in there["input_ids"]] == [many[number] for number in order]


@given(lengths, st.integers(1, 7))
def test_even_batches_are_padded_no_more_than_those_in_the_given_order(many: list[int], batch: int) -> None:
    def computed(rows: list[NDArray[np.int32]]) -> int:
        return sum(batch * max(map(len, rows[at : at + batch])) for at in range(0, len(rows), batch))

    whole = many[: len(many) // (8 * batch) * 8 * batch]

    assert computed(in_even_batches(of_lengths(whole), batch=batch, seed=0)["input_ids"]) <= computed(
        of_lengths(whole)["input_ids"]
    )


def test_columns_are_those_in_which_anything_is_learned() -> None:
    labels = torch.tensor([[IGNORED, IGNORED, 5, IGNORED, IGNORED], [IGNORED, IGNORED, IGNORED, 6, IGNORED]])

    columns, learned = learned_columns(labels)

    assert columns.tolist() == [1, 2]  # of the tokens that the learned ones come behind
    assert learned.tolist() == [[5, IGNORED], [IGNORED, 6]]
