"""The example that trains with TRL and `Reward` alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.forked import TRAINING, ended

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "train_grpo.py"


def test_the_example_trains_for_two_steps(tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="needs trl, in the extra rl")

    done = ended(str(EXAMPLE), "--steps", "2", "--out", "out", folder=tmp_path, imported=TRAINING)

    assert done.returncode == 0, done.stderr
    state = json.loads((tmp_path / "out/checkpoint-2/trainer_state.json").read_text("utf-8"))
    logged = [entry for entry in state["log_history"] if "valid" in entry]
    assert [entry["step"] for entry in logged] == [1, 2]
    assert {(entry["valid"], entry["failed"], entry["rewards/trl/mean"]) for entry in logged} == {(0.0, 0.0, 0.0)}


def test_the_example_is_short_and_uses_the_public_names_only() -> None:
    lines = EXAMPLE.read_text("utf-8").splitlines()

    assert len(lines) < 70
    assert [line for line in lines if "wfdsl" in line and "import" in line] == ["import wfdsl", "import wfdsl_rl"]
