"""A checkpoint is asked with the prompt that it was trained with, or not at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from wfdsl import UsageError
from wfdsl.cli.main import main
from wfdsl.conductor.checkpoint import FILE, load_prompt, save_prompt
from wfdsl.conductor.prompt import Prompt

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("examples", ["mixed", "none"])
def test_a_saved_prompt_comes_back_with_its_hash_and_limits(tmp_path: Path, examples: str) -> None:
    prompt = Prompt.load("tiny", examples=examples)

    save_prompt(tmp_path, prompt, max_steps=4)
    found = load_prompt(tmp_path)

    assert found is not None
    assert found.prompt == prompt
    assert (found.prompt.hash, found.max_steps) == (prompt.hash, 4)


def test_a_folder_without_a_prompt_has_none(tmp_path: Path) -> None:
    assert load_prompt(tmp_path) is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("You plan.", "You dream.", "changed after training"),
        ('"format_version": 1', '"format_version": 2', "reads wfdsl-prompt of version 1"),
        ('"max_steps"', '"most"', "no prompt of a checkpoint"),
        ("{", "", "no prompt of a checkpoint"),
    ],
)
def test_a_prompt_that_is_not_as_it_was_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = save_prompt(tmp_path, Prompt.load("tiny"), max_steps=5)
    path.write_text(path.read_text().replace(old, new, 1))

    with pytest.raises(UsageError, match=message):
        load_prompt(tmp_path)


def test_the_command_asks_a_checkpoint_with_its_own_prompt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompt = Prompt.load("tiny", examples="mixed")
    save_prompt(tmp_path, prompt, max_steps=2)
    ask = ["prompt", "-q", "Why?", "--conductor", f"transformers:{tmp_path}", "--json"]

    first = main(ask)
    shown = json.loads(capsys.readouterr().out)
    second = main([*ask, "--prompt", "paper"])

    assert (first, second) == (0, 2)
    assert shown["prompt"]["hash"] == prompt.hash
    assert "1 to 2 steps" in shown["messages"][1]["content"]
    assert "asked as it was trained" in capsys.readouterr().err
    assert (tmp_path / FILE).is_file()
