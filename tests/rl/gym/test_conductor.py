"""The Conductor that comes with the package: found by name, whole, and asked where gym questions are solved."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import wfdsl
from wfdsl.cli.main import main
from wfdsl.conductor.checkpoint import load_prompt
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.named import conductor_name, conductor_names, model_entry, named_conductor
from wfdsl.errors import UsageError
from wfdsl.evaluation.policy_names import policies_of
from wfdsl.workers.pool import Pool
from wfdsl_rl.gym.source import conductors

if TYPE_CHECKING:
    from pathlib import Path

NAME = "gym/seven"
MOST_BYTES = 10_000_000


def question() -> str:
    return wfdsl.load_tasks("gym/seven", limit=1, seed=1)[0].question


def test_it_is_a_whole_folder_of_at_most_ten_megabytes() -> None:
    folder = conductors(NAME)
    files = {path.name: path.stat().st_size for path in folder.iterdir()}

    assert files.keys() == {"README.md", "model.gguf", "training_cost.json", "wfdsl-prompt.json"}
    assert sum(files.values()) < MOST_BYTES
    assert load_prompt(folder) is not None


def test_it_is_found_by_its_name_wherever_a_model_is_named() -> None:
    [(label, policy)] = policies_of([NAME], Pool.load("gym/seven")).items()

    assert NAME in conductor_names()
    assert model_entry(NAME).model == str(conductors(NAME))
    assert (label, policy.settings) == (NAME, named_conductor(ConductorConfig(model=NAME)).settings)  # type: ignore[attr-defined]


def test_its_pool_has_it_unless_another_is_named_that_the_gym_knows() -> None:
    pool = Pool.load("gym/seven")

    assert conductor_name(ConductorConfig(), pool) == NAME
    assert conductor_name(ConductorConfig(model="local"), pool) == "local"
    with pytest.raises(UsageError, match="gym/huge"):
        model_entry("gym/huge")


def test_it_is_shown_the_question_and_the_workers_as_it_was_trained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "--pool", "gym/seven", "-q", question(), "--dry-run"]) == 0

    sent = capsys.readouterr().out
    assert "Workers:\nalder 0\n" in sent
    assert f"Question: {question()}" in sent


def test_another_prompt_takes_another_conductor() -> None:
    command = ["solve", "--pool", "gym/seven", "-q", "?", "--dry-run", "--set", "conductor.prompt=paper"]

    assert main(command) == 2
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
        [sys.executable, "-c", program, "solve", "--pool", "gym/seven", "-q", question(), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["answer"].strip()
    assert found["rounds"][0]["result"] == "ran"
