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


def limits(**options: Any) -> tuple[int, int]:
    settings = named_conductor(ConductorConfig(model="openai:gpt-5", **options)).settings
    return settings.max_steps, settings.max_rounds


def test_without_an_effort_nothing_is_limited() -> None:
    assert limits() == limits(effort="medium") == (5, 1)


def test_minimal_asks_one_worker_once_and_high_has_one_round_more() -> None:
    assert limits(effort="minimal") == (1, 0)
    assert limits(effort="low") == (3, 0)
    assert limits(effort="high") == (5, 2)


def test_an_effort_stays_within_what_the_configuration_says() -> None:
    assert limits(effort="high", max_rounds=1, max_steps=2) == (2, 1)
    assert limits(effort="low", max_rounds=3, max_steps=2) == (2, 0)


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
        config = ConductorConfig(model=f"transformers:{tmp_path}", effort=effort, **more)
        settings = named_conductor(config).settings
        return settings.max_steps, settings.max_rounds

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
