"""A checkpoint is asked with the prompt that it was trained with, or not at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl import Conductor, Pool, UsageError, WorkerEntry
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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("You plan.", "You dream.", "changed after training"),
        ('"format_version": 1', '"format_version": 2', "reads wfdsl-prompt of version 1"),
        ('"max_steps"', '"most"', "not the prompt of a checkpoint"),
        ('"max_steps": 5', '"max_steps": 6', "changed after training"),
        ('"seal"', '"seals"', "changed after training"),
        ("{", "", "not the prompt of a checkpoint"),
    ],
)
def test_a_prompt_that_is_not_as_it_was_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = save_prompt(tmp_path, Prompt.load("tiny"), max_steps=5)
    path.write_text(path.read_text().replace(old, new, 1))

    with pytest.raises(UsageError, match=message):
        load_prompt(tmp_path)


def entry_of(folder: Path) -> WorkerEntry:
    return WorkerEntry(name="m", provider="transformers", model=str(folder))


def test_a_checkpoint_that_is_served_here_or_elsewhere_is_asked_as_it_was_trained(tmp_path: Path) -> None:
    prompt = Prompt.load("tiny", examples="mixed")
    save_prompt(tmp_path, prompt, max_steps=2)
    served = WorkerEntry(name="m", provider="openai", model="m", base_url="http://127.0.0.1:1/v1")

    here, again = Conductor(entry_of(tmp_path)), Conductor(entry_of(tmp_path), prompt=prompt, max_steps=2)
    there = Conductor(served, prompt=str(tmp_path))

    for each in (here, again, there):
        assert (each.settings.prompt, each.settings.max_steps) == (prompt, 2)


def test_no_name_is_not_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_prompt(tmp_path, Prompt.load("tiny"), max_steps=2)
    monkeypatch.chdir(tmp_path)

    settings = Conductor(WorkerEntry(name="m", provider="transformers")).settings

    assert (settings.prompt.name, settings.max_steps) == ("paper", 5)
    with pytest.raises(UsageError, match=r"cannot read this|no template set"):
        Conductor(WorkerEntry(name="m", provider="scripted"), prompt="")


def test_a_node_of_a_checkpoint_is_asked_as_it_was_trained(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs torch, in the extra torch")
    prompt = Prompt.load("tiny", examples="mixed")
    save_prompt(tmp_path, prompt, max_steps=2)
    entry = entry_of(tmp_path).model_copy(update={"provider": "conductor", "options": {"provider": "transformers"}})

    policed: Any = Pool([entry]).worker(0)

    assert policed.worker.settings.prompt == prompt
    assert policed.worker.settings.max_steps == 2


def test_the_command_asks_a_checkpoint_with_its_own_prompt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompt = Prompt.load("tiny", examples="mixed")
    save_prompt(tmp_path, prompt, max_steps=2)
    (tmp_path / "config.json").write_text("{}")
    ask = ["solve", "--dry-run", "-q", "Why?", "--conductor", f"transformers:{tmp_path}", "--json"]

    first = main(ask)
    shown = json.loads(capsys.readouterr().out)
    second = main([*ask, "--set", "conductor.prompt=paper"])

    assert (first, second) == (0, 2)
    assert shown["prompt"]["hash"] == prompt.hash
    assert "1 to 2 steps" in shown["messages"][1]["content"]
    assert "prompted as it was trained" in capsys.readouterr().err
    assert (tmp_path / FILE).is_file()
