"""The curves of a stage, from the completions that it kept."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.rl.training.toy import curve_of
from wfdsl_rl.training.samples import Curve

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

KINDS = {"m": "math", "c": "code"}


def kept(
    task: str, workers: Sequence[int], access: Sequence[Any], outcome: str = "right", **more: Any
) -> dict[str, Any]:
    lists = {"model_id": list(workers), "subtasks": ["Do it."] * len(workers), "access_list": list(access)}
    worth = {"right": 1.0, "wrong": 0.5, "invalid": 0.0, "failed": None}[outcome]
    return {
        "row": 0,
        "task": task,
        "kind": KINDS[task],
        "outcome": outcome,
        "outcomes": [outcome],
        "reward": worth,
        "round": 1,
        "workflow": None if outcome == "invalid" else lists,
        **more,
    }


def write(folder: Path, step: int, batch: Sequence[dict[str, Any]], *, name: str = "step") -> Path:
    path = folder / f"{name}-{step:06d}.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps({"step": step, **each}) + "\n" for each in batch).encode()))
    return path


def a_batch() -> list[dict[str, Any]]:
    return [
        kept("m", [0], [[]]),
        kept("m", [0, 1], [[], [0]], "wrong"),
        kept("c", [0, 2, 2], [[], [], [1]]),  # nobody sees step 0, so that it is not run
        kept("c", [1], [[]], "failed"),
        kept("c", [], [], "invalid"),
    ]


def test_an_iteration_counts_what_the_figures_show(tmp_path: Path) -> None:
    write(tmp_path, 0, a_batch())

    (found,) = curve_of(tmp_path)

    assert (found.step, found.count, found.reward, found.valid) == (0, 5, 2.5 / 4, 0.8)
    assert found.accuracy == 0.5
    assert found.steps == {"math": 1.5, "code": 2.0}
    assert found.workers == {0: 2, 1: 2, 2: 2}
    assert found.topologies == {"single": 2, "chain": 2}


def test_a_completion_counts_once_however_often_it_was_run(tmp_path: Path) -> None:
    often = kept("m", [0], [[]], outcomes=["right", "wrong", "right", "failed", "right"])
    write(tmp_path, 0, [often, kept("c", [], [], "invalid")])

    (found,) = curve_of(tmp_path)

    assert found.accuracy == 0.375


def test_rounds_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path, 0, [kept("m", [0], [[]], "wrong"), *(kept("m", [1], [[]], round=2) for _ in range(3))])

    (found,) = curve_of(tmp_path)

    assert found.by_round == {1: 0.0, 2: 1.0}


def test_each_file_is_read_once_and_what_a_killed_training_left_behind_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []
    unpack = gzip.decompress

    def watched(packed: bytes) -> bytes:
        read.append(packed)
        return unpack(packed)

    monkeypatch.setattr(gzip, "decompress", watched)
    curve = Curve(tmp_path)
    for step in range(5):
        write(tmp_path, step, a_batch())

    first = [each.step for each in curve.until(3)]
    write(tmp_path, 3, [kept("m", [2], [[]])])  # as a resumed training writes it anew
    then = curve.until(5)

    assert (first, [each.step for each in then]) == ([0, 1, 2], [0, 1, 2, 3, 4])
    assert len(read) == 5
    assert then[3].workers == {2: 1}
