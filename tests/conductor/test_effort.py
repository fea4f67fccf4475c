"""Effort: limits from a table for any Conductor, and a price in the prompt for one that was trained with prices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wfdsl import Pool, UsageError
from wfdsl.cli.main import main
from wfdsl.conductor.checkpoint import save_prompt
from wfdsl.conductor.config import EFFORTS, ConductorConfig
from wfdsl.conductor.listing import WorkerListing
from wfdsl.conductor.named import named_conductor
from wfdsl.conductor.prompt import Prompt

PLAIN = """
name = "plain"
version = 1
examples = "none"
system = ""
ask = "{question}\\n{workers}{examples}"
example = "{question}"
worker = "{ordinal}: {description}"
revise = "{response}"
reask = "{problems}"
"""
PRICED = PLAIN.replace("{workers}", "{workers}\\n{effort}") + "".join(f'effort_{e} = "{e}!"\n' for e in EFFORTS)


def set_of(folder: Path, text: str) -> Prompt:
    file = folder / "set.toml"
    file.write_text(text)
    return Prompt.load(str(file))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (5, 1)),
        ({"effort": "minimal"}, (1, 0)),
        ({"effort": "low"}, (3, 0)),
        ({"effort": "medium"}, (5, 1)),
        ({"effort": "high"}, (5, 2)),
        ({"effort": "high", "max_rounds": 1, "max_steps": 2}, (2, 1)),
        ({"effort": "low", "max_rounds": 3, "max_steps": 2}, (2, 0)),
    ],
)
def test_an_effort_limits_steps_and_rounds_within_what_the_configuration_says(
    options: dict[str, Any], expected: tuple[int, int]
) -> None:
    settings = named_conductor(ConductorConfig(model="openai:gpt-5", **options)).settings

    assert (settings.max_steps, settings.max_rounds) == expected


def test_a_template_set_with_efforts_says_the_effort_and_medium_by_default(tmp_path: Path) -> None:
    prompt, listing = set_of(tmp_path, PRICED), WorkerListing.of(Pool.load("openai:gpt-5"))

    (message,) = prompt.ask("Why?", listing, max_steps=5, effort="low")
    (usual,) = prompt.ask("Why?", listing, max_steps=5)

    assert message["content"].endswith("\nlow!")
    assert usual["content"].endswith("\nmedium!")


def test_a_template_set_needs_a_text_for_each_effort(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="so effort_minimal, effort_low, effort_medium, effort_high must be given"):
        set_of(tmp_path, PRICED.replace('effort_low = "low!"', ""))


def test_a_checkpoint_keeps_its_steps_and_gets_no_more_rounds_than_it_was_trained_with(tmp_path: Path) -> None:
    save_prompt(tmp_path, set_of(tmp_path, PRICED), max_steps=4, max_rounds=1)
    (tmp_path / "config.json").write_text("{}")

    def of(effort: Any, **more: Any) -> tuple[int, int]:
        found = named_conductor(ConductorConfig(model=f"transformers:{tmp_path}", effort=effort, **more)).settings
        return found.max_steps, found.max_rounds

    assert of("minimal") == (4, 0)
    assert of("high") == of(None) == (4, 1)
    assert of("high", max_rounds=2) == (4, 2)


def test_another_effort_is_another_conductor_of_the_same_model() -> None:
    conductor = named_conductor(ConductorConfig(model="openai:gpt-5"))

    low = conductor.with_effort("low")

    assert (low.settings.max_rounds, conductor.settings.max_rounds) == (0, 1)
    assert low.entry is conductor.entry
    assert conductor.with_effort(None) is conductor


def test_the_effort_is_in_what_solve_and_prompt_would_send(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "set.toml").write_text(PRICED)
    options = ["--pool", "openai:gpt-5", "--set", f"conductor.prompt={tmp_path / 'set.toml'}", "--effort", "high"]

    assert main(["solve", "Why?", *options, "--dry-run"]) == 0
    assert "high!" in capsys.readouterr().out
