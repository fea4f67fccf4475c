"""A Conductor's options are written down once, and every place that takes them reads that class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from wfdsl import Conductor, UsageError, WorkerEntry
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.named import build
from wfdsl.settings import from_table, options_of, to_table
from wfdsl.workers.registry import OpenWorkers
from wfdsl.workers.scripted import ScriptedWorker

OTHERS: dict[str, Any] = {
    "model": "openai:m",
    "prompt": "tiny",
    "examples": "none",
    "max_steps": 2,
    "max_rounds": 0,
    "effort": "low",
    "max_response_chars": 500,
    "reasks": 1,
    "profile": "strict",
    "access": "binary",
    "default": "vote.wf",
    "call_factor": 1.5,
    "grammar": "on",
    "tool": "function",
    "max_prose": 0,
    "max_subtask": 9,
    "without": ["small"],
    "pick": 2,
    "shuffle": True,
    "seed": 3,
    "base_url": "http://h/v1",
    "api_key_env": "KEY",
    "max_tokens": 9,
    "temperature": 0.5,
}
"""A value for every option that is not its default."""


def test_every_option_goes_through_the_table_and_back() -> None:
    config = from_table(ConductorConfig, OTHERS, "conductor")

    assert to_table(config) == OTHERS
    assert [field.name for field in options_of(ConductorConfig)] == list(OTHERS)
    assert all(getattr(config, field.name) != field.default for field in options_of(ConductorConfig))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_rounds": -1}, "max_rounds must be at least 0 (got -1)"),
        ({"max_steps": 0}, "max_steps must be at least 1 (got 0)"),
        ({"reasks": -1}, "reasks must be at least 0 (got -1)"),
        ({"call_factor": 0}, "call_factor must be greater than 0 (got 0)"),
        ({"pick": 0}, "pick must be at least 1 (got 0)"),
        ({"temperature": 3.0}, "temperature must be at most 2 (got 3.0)"),
        ({"profile": "loose"}, "profile must be "),
        ({"without": "w0"}, "without must be a "),
    ],
)
def test_a_value_outside_its_limits_is_refused_wherever_it_is_given(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        ConductorConfig(**options)
    with pytest.raises(UsageError) as refused_there:
        Conductor(ScriptedWorker([]), **options)

    assert message in str(refused.value)
    assert str(refused_there.value) == str(refused.value)


def test_keyword_arguments_replace_options_of_the_configuration_and_others_are_refused() -> None:
    config = ConductorConfig(reasks=0, max_rounds=3)

    assert Conductor(ScriptedWorker([]), config=config, max_rounds=1).config == replace(config, max_rounds=1)
    with pytest.raises(UsageError, match="max_round"):
        Conductor(ScriptedWorker([]), max_round=1)


def test_a_pool_file_s_node_takes_the_same_options() -> None:
    entry = WorkerEntry(
        name="boss",
        provider="conductor",
        options={"provider": "scripted", "replies": ["x"], "prompt": "tiny", "max_rounds": 0, "reasks": 1},
    )

    assert build(entry, OpenWorkers()).config == ConductorConfig(prompt="tiny", max_rounds=0, reasks=1)
