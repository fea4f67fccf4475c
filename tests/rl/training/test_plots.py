"""The curves and the plots of a stage, from the completions that it kept."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.rl.training.toy import curve_of
from wfdsl.evaluation.plots import colour_of
from wfdsl_rl.training.plots import draw_stage, smoothed, spread
from wfdsl_rl.training.samples import Curve

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

KINDS = {"m": "math", "c": "code"}
NAMES = {0: "ada", 1: "bob", 2: "cy"}
ALONE = {"ada": 0.62, "bob": 0.64, "cy": 0.2}


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


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_plots_say_what_they_show(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for step in range(4):
        write(tmp_path, step, a_batch())
    write(tmp_path, 2, a_batch(), name="eval")
    curve, held_out = curve_of(tmp_path), curve_of(tmp_path, name="eval")

    draw_stage(curve, held_out, tmp_path / "plots", alone=ALONE, names=NAMES, simulated=True)

    pictures = {path.stem: text_of(path) for path in (tmp_path / "plots").glob("*.svg")}
    assert set(pictures) == {"learning", "steps-by-kind", "worker-share", "topology-mix"}
    assert all("iteration" in text and "simulated workers" in text for text in pictures.values())
    for words in ("ada 62 %", "bob 64 %", "cy 20 %", "each worker alone", "accuracy, held-out questions", "reward"):
        assert words in pictures["learning"]
    assert all(kind in pictures["steps-by-kind"] for kind in ("math", "code", "mean steps"))
    assert all(f"{number}: {name}" in pictures["worker-share"] for number, name in NAMES.items())
    assert all(name in pictures["topology-mix"] for name in ("single", "chain"))


def test_accuracy_has_an_axis_of_its_own_with_error_bars_and_a_line_from_each_name_to_its_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    drawn: list[Any] = []
    monkeypatch.setattr("wfdsl_rl.training.plots.save", lambda figure, *_: drawn.append(figure))
    write(tmp_path, 0, a_batch())
    write(tmp_path, 2, a_batch(), name="eval")

    held_out = curve_of(tmp_path, name="eval")
    draw_stage(curve_of(tmp_path), held_out, tmp_path / "plots", alone=ALONE, names=NAMES, simulated=True)

    accuracy, reward = drawn[0].axes
    assert [line.get_label() for line in reward.lines] == ["mean reward", "valid completions"]
    assert "mean reward" not in [line.get_label() for line in accuracy.lines]
    (errors,) = accuracy.containers
    assert errors.has_yerr
    assert len(accuracy.collections) == 2, "the error bars, and a band around the line"
    assert len(reward.collections) == 2
    alone = {line.get_ydata()[0]: line.get_color() for line in accuracy.lines if line.get_linestyle() == ":"}
    assert alone == {ALONE[name]: colour_of(index) for index, name in NAMES.items()}
    named = {note.get_text().split()[0]: note for note in accuracy.texts}
    assert {name: note.xy for name, note in named.items()} == {name: (1.0, value) for name, value in ALONE.items()}
    assert all(note.arrow_patch is not None for note in named.values())


def test_second_rounds_have_a_line_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write(tmp_path, 0, [kept("m", [0], [[]], "wrong"), kept("m", [1], [[]], round=2)])

    draw_stage(curve_of(tmp_path), [], tmp_path / "plots", alone={}, names=NAMES, simulated=False)

    learning = text_of(tmp_path / "plots" / "learning.svg")
    assert "accuracy, first round" in learning
    assert "accuracy, second round" in learning
    assert "simulated" not in learning


def test_iterations_without_any_valid_workflow_are_drawn_too(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write(tmp_path, 0, [kept("m", [], [], "invalid")] * 4)

    draw_stage(curve_of(tmp_path), [], tmp_path / "plots", alone={}, names=NAMES, simulated=True)

    assert {path.stem for path in (tmp_path / "plots").iterdir()} == {"learning"}


def test_names_at_the_margin_keep_their_distance_and_stay_inside() -> None:
    assert spread([0.1, 0.5, 0.51, 0.52], 0.05) == pytest.approx([0.1, 0.46, 0.51, 0.56]), "centred on their lines"
    assert spread([0.97, 0.98, 0.99], 0.05) == pytest.approx([0.9, 0.95, 1.0])


def test_a_mean_leaves_out_what_is_not_there() -> None:
    assert smoothed([None, 1.0, None, 3.0]) == [None, 1.0, 1.0, 2.0]
