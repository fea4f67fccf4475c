"""The Conductors that come with the package: found by name, whole, and asked where gym questions are solved."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from wfdsl.cli.main import main
from wfdsl.conductor.checkpoint import load_prompt
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.named import conductor_name, conductor_names, model_entry, named_conductor
from wfdsl.errors import UsageError
from wfdsl.evaluation.policy_names import policies_of
from wfdsl.workers.pool import Pool
from wfdsl_rl.gym import make
from wfdsl_rl.gym.checkpoints import GYM_TINY, GYM_TINY_AXES, load
from wfdsl_rl.gym.world.presets import PRESETS

MOST_BYTES = 4_000_000
FILES = {"README.md", "config.json", "model.gguf", "model.safetensors", "tokenizer.json", "wfdsl-prompt.json"}


def question() -> str:
    return make("gym/paper7", 1, 1, split="test")[0].question


@pytest.mark.parametrize("name", load.names())
def test_a_shipped_conductor_is_a_whole_folder_of_a_few_megabytes(name: str) -> None:
    folder = load(name)
    files = {path.name: path.stat().st_size for path in folder.iterdir()}

    assert files.keys() >= FILES
    assert sum(files.values()) < MOST_BYTES
    assert load_prompt(folder) is not None
    assert "## Settings" in (folder / "README.md").read_text(encoding="utf-8")


def test_it_is_found_by_its_name_wherever_a_model_is_named() -> None:
    pool = Pool.load("gym/paper7")

    [(label, policy)] = policies_of([GYM_TINY], pool).items()

    assert GYM_TINY in conductor_names()
    assert model_entry(GYM_TINY).model == str(load(GYM_TINY))
    assert (label, policy.settings) == (GYM_TINY, named_conductor(ConductorConfig(model=GYM_TINY)).settings)  # type: ignore[attr-defined]


def test_a_name_that_the_gym_does_not_know_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no Conductor 'gym/huge'; the gym has gym/tiny"):
        model_entry("gym/huge")


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_gym_pool_has_a_conductor_unless_another_is_named(preset: str) -> None:
    pool = Pool.load(preset)
    trained_for = GYM_TINY_AXES if preset == "gym/axes" else GYM_TINY

    assert conductor_name(ConductorConfig(), pool) == trained_for
    assert conductor_name(ConductorConfig(model="local"), pool) == "local"


def test_it_is_shown_the_question_and_the_workers_as_it_was_trained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "--pool", "gym/paper7", "-q", question(), "--dry-run"]) == 0
    sent = capsys.readouterr().out

    assert sent.startswith(f"[user]\n{question()}\n0: math ")


def test_another_prompt_takes_another_conductor(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["solve", "--pool", "gym/paper7", "-q", "?", "--dry-run", "--prompt", "paper"]

    assert main(command) == 2
    assert "or name another Conductor" in capsys.readouterr().err
    assert main([*command, "--conductor", "local"]) == 0


@pytest.mark.local
def test_a_gym_question_is_solved_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xllamacpp", reason="needs xllamacpp, in the extra local")
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path))
    program = (
        "import sys\n"
        "sys.modules['torch'] = sys.modules['transformers'] = None\n"
        "from wfdsl.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, "solve", "--pool", "gym/paper7", "-q", question(), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["answer"].strip()
    assert found["rounds"][0]["result"] == "ran"
