"""Policies by name: what stands for a Conductor, what for a fixed workflow, and what each is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from wfdsl import Conductor, Pool, UsageError, WorkflowError
from wfdsl.conductor.checkpoint import save_prompt
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.named import named_conductor, named_policy
from wfdsl.conductor.policy import Policy, WorkflowPolicy
from wfdsl.conductor.prompt import Prompt

if TYPE_CHECKING:
    from pathlib import Path

    from .scripted_server import Chat


async def answer(messages: list[dict[str, Any]]) -> str:
    return str(messages[-1]["content"])


POOL = Pool.from_functions([answer], names=["solver"])


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


async def test_a_workflow_file_is_a_policy_with_parameters(tmp_path: Path) -> None:
    path = tmp_path / "one.wf"
    path.write_text('param tone = "plain"\nstep answer by solver: "Answer in a {tone} tone."\n')

    policy = named_policy(ConductorConfig(model=str(path)), POOL, params={"tone": "warm"})

    assert isinstance(policy, WorkflowPolicy)
    assert (await policy.solve("", POOL)).answer == "Answer in a warm tone."

    path.write_text('step answer by nobody: "Answer."\n')
    with pytest.raises(WorkflowError, match="nobody"):
        named_policy(ConductorConfig(model=str(path)), POOL)


def test_a_model_of_a_provider_is_a_conductor_under_the_settings_given(chat: Chat) -> None:
    config = ConductorConfig(
        model="openai:some/model:7b",
        base_url=chat.url,
        max_tokens=77,
        prompt="tiny",
        examples="none",
        max_steps=2,
        max_rounds=3,
        reasks=0,
        profile="strict",
        call_factor=2.0,
        grammar="on",
        max_subtask=9,
        shuffle=True,
    )

    policy = named_policy(config, POOL)

    assert isinstance(policy, Conductor)
    assert isinstance(policy, Policy)
    assert (policy.entry.provider, policy.entry.model, policy.entry.base_url) == ("openai", "some/model:7b", chat.url)
    assert policy.entry.max_tokens == 77
    settings = policy.settings
    assert (settings.prompt.name, settings.prompt.examples.name, settings.max_steps) == ("tiny", "none", 2)
    assert settings.max_rounds == 3
    assert settings.config == config
    assert settings.grammar is not None
    assert (settings.grammar.max_prose, settings.grammar.max_subtask) == (200, 9)


def test_the_local_model_is_told_less_and_held_to_a_grammar_unless_it_is_said_otherwise() -> None:
    local = named_conductor(ConductorConfig(model="local", max_steps=4)).settings
    other = named_conductor(ConductorConfig(model="local", prompt="paper", max_steps=5, grammar="off")).settings

    assert (local.prompt.name, local.max_steps) == ("tiny", 4)
    assert local.grammar is not None
    assert (local.grammar.max_prose, local.grammar.max_subtask) == (0, 80)
    assert (other.prompt.name, other.max_steps, other.grammar) == ("paper", 5, None)
    provided = named_conductor(ConductorConfig(model="openai:m"))
    assert provided.config == ConductorConfig(model="openai:m")
    assert (provided.settings.prompt.name, provided.settings.max_steps) == ("paper", 5)
    assert provided.settings.grammar is None


@pytest.mark.parametrize("provider", ["", "transformers", "local"])
def test_a_folder_is_a_checkpoint_asked_as_it_was_trained(checkpoint: Path, provider: str) -> None:
    trained = Prompt.load("tiny", examples="mixed")
    save_prompt(checkpoint, trained, max_steps=4)
    (checkpoint / "model.gguf").write_bytes(b"GGUF")
    prefix = f"{provider}:" if provider else ""

    conductor = named_conductor(ConductorConfig(model=f"{prefix}{checkpoint}"))

    assert conductor.entry.model == str(checkpoint)
    assert provider in ("", conductor.entry.provider)
    assert (conductor.settings.prompt, conductor.settings.max_steps) == (trained, 4)
    for other in ({"prompt": "paper"}, {"prompt": "tiny"}, {"max_steps": 5}):
        with pytest.raises(UsageError, match="prompted as it was trained"):
            named_conductor(ConductorConfig(model=f"{prefix}{checkpoint}", **other))


def test_a_checkpoint_without_a_prompt_is_asked_like_any_model(checkpoint: Path) -> None:
    settings = named_conductor(ConductorConfig(model=str(checkpoint), prompt="tiny")).settings

    assert (settings.prompt.name, settings.max_steps) == ("tiny", 5)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "model must have at least 1 character"),
        ("gpt-5", "no Conductor 'gpt-5': write local, openai:MODEL"),
        ("openai:", "no Conductor 'openai:'"),
        ("nobody:gpt", "no Conductor 'nobody:gpt'"),
        ("conductor:gpt", "no Conductor 'conductor:gpt'"),
        ("function:gpt", "no Conductor 'function:gpt'"),
        ("two.toml", "has 2 workers"),
        ("node.toml", 'not "conductor"'),
        ("nowhere.toml", "nowhere.toml"),
        ("empty", "empty is not a checkpoint: it has no config.json"),
        ("transformers:empty", "empty is not a checkpoint"),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    worker = '[[pool.workers]]\nname = "{}"\nprovider = "{}"\nmodel = "m"\n'
    (tmp_path / "two.toml").write_text(worker.format("a", "openai") + worker.format("b", "openai"))
    (tmp_path / "node.toml").write_text(worker.format("a", "conductor"))
    (tmp_path / "empty").mkdir()

    with pytest.raises(UsageError, match=message):
        named_policy(ConductorConfig(model=name), POOL)
