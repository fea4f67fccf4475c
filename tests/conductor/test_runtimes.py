"""What runs a checkpoint's folder: llama.cpp or transformers, and what is said where neither can."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl import Conductor, Pool, UsageError
from wfdsl.conductor.checkpoint import save_prompt
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.named import model_entry, named_conductor
from wfdsl.conductor.prompt import Prompt
from wfdsl.installation import install_command
from wfdsl.workers import local, model_folder
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.model_folder import context_of, folder_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint as far as anybody looks before it is asked, with a GGUF file."""
    made = tmp_path / "checkpoint"
    made.mkdir()
    (made / "config.json").write_text('{"max_position_embeddings": 900}')
    (made / "model.gguf").write_bytes(b"GGUF")
    return made


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Collection[str]], None]:
    """Pretend that only these packages are installed."""

    def only(packages: Collection[str]) -> None:
        for module in (model_folder, local):
            monkeypatch.setattr(module, "find_spec", lambda name: name if name in packages else None)

    return only


BOTH = ("xllamacpp", "torch", "transformers")


@pytest.mark.parametrize(
    ("packages", "files", "provider"),
    [
        (BOTH, {"config.json", "model.gguf"}, "local"),
        (("xllamacpp",), {"config.json", "model.gguf"}, "local"),
        (("torch", "transformers"), {"config.json", "model.gguf"}, "transformers"),
        (("torch", "transformers"), {"model.gguf"}, "local"),
        (("torch",), {"config.json", "model.gguf"}, "local"),
        ((), {"config.json", "model.gguf"}, "local"),
        (BOTH, {"config.json"}, "transformers"),
        ((), {"config.json"}, "transformers"),
        (BOTH, {"model.gguf"}, "local"),
    ],
)
def test_llama_runs_a_folder_with_a_gguf_file_unless_only_transformers_is_installed(
    folder: Path,
    installed: Callable[[Collection[str]], None],
    packages: Collection[str],
    files: Collection[str],
    provider: str,
) -> None:
    installed(packages)
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()

    entry = model_entry(str(folder))

    assert (entry.provider, entry.model, entry.max_tokens) == (provider, str(folder), 1024)


@pytest.mark.parametrize(("trained", "said", "rounds"), [(None, None, 1), (0, None, 0), (2, None, 2), (0, 3, 3)])
def test_a_checkpoint_revises_as_often_as_it_was_trained_to_unless_told(
    folder: Path, trained: int | None, said: int | None, rounds: int
) -> None:
    save_prompt(folder, Prompt.load("tiny"), max_steps=4, max_rounds=trained)

    assert named_conductor(ConductorConfig(model=str(folder), max_rounds=said)).settings.max_rounds == rounds
    assert Conductor(model_entry(str(folder)), max_rounds=said).settings.max_rounds == rounds


@pytest.mark.parametrize("has_weights", [True, False])
def test_where_nothing_is_installed_the_commands_that_install_it_are_named(
    folder: Path, installed: Callable[[Collection[str]], None], *, has_weights: bool
) -> None:
    installed(())
    if not has_weights:
        (folder / "config.json").unlink()

    with pytest.raises(UsageError) as refused:
        Pool([model_entry(str(folder))]).worker(0)

    assert install_command("local") in str(refused.value)
    assert (install_command("torch") in str(refused.value)) == has_weights


@pytest.mark.local
def test_a_folder_has_one_gguf_file_for_the_local_server(folder: Path) -> None:
    (folder / "other.gguf").write_bytes(b"GGUF")
    with pytest.raises(UsageError, match=r"several GGUF files \(model.gguf, other.gguf\): name one of them"):
        model_entry(str(folder))

    for each in folder.glob("*.gguf"):
        each.unlink()
    for name, said in ((str(folder), "has no GGUF file; `wfdsl-train export"), ("none.gguf", "there is no model file")):
        with pytest.raises(UsageError, match=said):
            Pool([WorkerEntry(name="w", provider="local", model=name)]).worker(0)


def test_the_context_is_what_the_folder_says(folder: Path) -> None:
    assert context_of(model_entry(str(folder))) == 900
    (folder / "config.json").write_text('{"max_position_embeddings": 900000}')
    assert context_of(model_entry(str(folder))) == 4096
    (folder / "config.json").write_text("not JSON")
    assert context_of(model_entry(str(folder))) == 4096


SAMPLED = {"do_sample": True, "temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1.05}
REPEATS = {"repeat_penalty": 1.05, "repeat_last_n": -1}
OWN = {"temperature": 0.9, "extra_body": {"min_p": 0.2}}


@pytest.mark.parametrize(
    ("settings", "own", "temperature", "top_p", "body"),
    [
        (None, {}, 0.0, 1.0, {"top_k": 0, "min_p": 0.0}),
        ({"do_sample": False, "temperature": 0.3}, {}, 0.0, 1.0, {"top_k": 0, "min_p": 0.0}),
        (SAMPLED, {}, 0.7, 0.8, {"top_k": 20, "min_p": 0.0, **REPEATS}),
        ({"do_sample": True}, {}, 1.0, 1.0, {"top_k": 0, "min_p": 0.0}),
        (SAMPLED, OWN, 0.9, 0.8, {"top_k": 20, "min_p": 0.2, **REPEATS}),
    ],
)
def test_a_folder_is_asked_as_transformers_would_unless_the_entry_says_otherwise(
    folder: Path,
    settings: dict[str, Any] | None,
    own: dict[str, Any],
    temperature: float,
    top_p: float,
    body: dict[str, Any],
) -> None:
    if settings is not None:
        (folder / "generation_config.json").write_text(json.dumps(settings))

    told = folder_settings(WorkerEntry(name="w", provider="local", **own), folder)

    assert told == {"temperature": temperature, "top_p": top_p, "extra_body": body}
