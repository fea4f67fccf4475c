"""Plots: they are drawn, say what is simulated, and their labels keep clear of each other."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from random import Random

from tests.rl.evaluation.toys import ONE, TWO, trial
from wfdsl_rl.evaluation.plots import Point, draw_plots, draw_strategies, figure, label_points
from wfdsl_rl.evaluation.summary import summarise
from wfdsl_rl.workflow_statistics import statistics_of

CELLS = [
    trial("one", "t1", "right"),
    trial("one", "t2", "wrong", domain="code"),
    trial("two", "t1", "right", list_usd=0.01, rounds=(TWO,), workers={"ann": 1, "bob": 1}),
    trial("two", "t2", "unjudged", domain="code", list_usd=0.01),
]


def test_every_plot_is_drawn_twice(tmp_path: Path) -> None:
    written = draw_plots(summarise(CELLS, policies=["one", "two"], simulated=True), tmp_path)

    assert sorted(path.name for path in written) == sorted(
        f"{name}.{form}"
        for name in ("accuracy-against-cost", "accuracy-by-benchmark", "worker-share", "steps-by-domain")
        for form in ("png", "svg")
    )
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written if path.suffix == ".png")


def test_every_plot_says_that_workers_were_simulated(tmp_path: Path) -> None:
    summary = summarise(CELLS, policies=["one", "two"], simulated=True)
    written = [
        *draw_plots(summary, tmp_path),
        *draw_strategies({"one": statistics_of([ONE, TWO])}, tmp_path, simulated=True),
    ]

    pictures = [path.read_text(encoding="utf-8") for path in written if path.suffix == ".svg"]

    assert len(pictures) == 7
    assert all("simulated workers" in picture and "(simulated)" in picture for picture in pictures)


def test_plots_of_real_workers_do_not_say_so(tmp_path: Path) -> None:
    written = draw_plots(summarise(CELLS, policies=["one", "two"]), tmp_path)

    assert not any("simulated" in path.read_text(encoding="utf-8") for path in written if path.suffix == ".svg")


def test_nothing_to_show_draws_nothing(tmp_path: Path) -> None:
    assert draw_plots(summarise([], policies=["one"]), tmp_path) == []
    assert draw_strategies({"one": statistics_of([])}, tmp_path, simulated=False) == []


def test_results_without_prices_and_without_judgement_can_be_drawn(tmp_path: Path) -> None:
    trials = [trial("one", outcome="unjudged", list_usd=None), trial("two", list_usd=None, input_tokens=50)]

    written = draw_plots(summarise(trials, policies=["one", "two"]), tmp_path)

    assert "tokens per sample" in (tmp_path / "accuracy-against-cost.svg").read_text()
    assert len(written) == 8


def test_labels_of_twenty_five_points_hide_nothing() -> None:
    chance = Random(7)
    points = [Point(chance.random(), chance.random(), f"policy number {number}") for number in range(25)]

    with figure(7.2, 4.8, simulated=False) as (drawn, (axes,)):
        axes.plot([point.x for point in points], [point.y for point in points], "o")
        label_points(drawn, axes, points)
        drawn.canvas.draw()
        boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]

    assert len(boxes) == 25
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
