"""Strategies over a training, from its samples: windows, form, and how diversity goes with accuracy."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from wfdsl_rl.cli.train import main
from wfdsl_rl.training.strategies import strategies_of

SIZE = 20


def write(folder: Path, iterations: int, *, invalid_before: int = 0, worse_with_more: bool = True) -> None:
    """Samples of a training whose workflows become fewer, and whose answers become better or worse with it."""
    samples = folder / "base" / "samples"
    samples.mkdir(parents=True)
    for step in range(iterations):
        kinds = 1 + (iterations - step) * SIZE // (2 * iterations)
        right = SIZE - kinds if worse_with_more else kinds
        rows = [_row(step, number, number % kinds, number < right, step < invalid_before) for number in range(SIZE)]
        (samples / f"step-{step:06d}.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))


def _row(step: int, number: int, worker: int, right: bool, invalid: bool) -> dict[str, object]:
    outcome = "invalid" if invalid else "right" if right else "wrong"
    lists = {"model_id": [worker], "subtasks": ["Solve."], "access_list": [[]]}
    given = {"step": step, "row": number, "kind": "math", "round": 1, "previous": None, "kept": False, "reward": 1.0}
    return {**given, "outcome": outcome, "outcomes": [outcome], "workflow": None if invalid else lists, "answer": "x"}


@pytest.mark.parametrize("worse", [True, False])
def test_diversity_is_correlated_with_accuracy_with_an_interval(tmp_path: Path, worse: bool) -> None:
    write(tmp_path, 60, worse_with_more=worse)

    (stage,) = strategies_of(tmp_path)

    found = stage.correlations["distinct patterns"]
    assert found.value == pytest.approx(-1.0 if worse else 1.0)
    assert found.low <= found.value <= found.high
    assert "steps" not in stage.correlations
    assert [(each.first, each.last) for each in stage.windows] == [(at, at + 9) for at in range(0, 60, 10)]
    assert [each.new for each in stage.windows] == [11, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(("invalid", "compliant"), [(0, 0), (20, 20), (60, None)])
def test_the_form_is_there_once_it_lasts(tmp_path: Path, invalid: int, compliant: int | None) -> None:
    write(tmp_path, 60, invalid_before=invalid)

    assert strategies_of(tmp_path)[0].compliant == compliant


def test_the_command_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, 20)

    assert main(["strategies", str(tmp_path), "--every", "5"]) == 0
    assert sum(line.startswith("| ") for line in capsys.readouterr().out.splitlines()) == 2 + 4
    assert main(["strategies", str(tmp_path / "base")]) == 2
