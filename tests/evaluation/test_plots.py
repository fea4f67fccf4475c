"""Plots: they are drawn, say what is simulated, and their labels keep clear of each other."""

from __future__ import annotations

from itertools import combinations
from math import hypot
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.evaluation.toys import ONE, TWO, trial
from wfdsl.evaluation.plots import (
    draw_accuracy_against_cost,
    draw_benchmarks,
    draw_plots,
    draw_strategies,
    figure,
    frontier,
)
from wfdsl.evaluation.point_labels import Point, label_points
from wfdsl.evaluation.series import series_of
from wfdsl.evaluation.summary import summarise
from wfdsl.evaluation.workflow_statistics import statistics_of

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


def test_plots_follow_the_reader_s_dark_setting(tmp_path: Path) -> None:
    written = draw_plots(summarise(CELLS, policies=["one", "two"]), tmp_path)

    pictures = [path.read_text(encoding="utf-8") for path in written if path.suffix == ".svg"]

    assert all(picture.count("prefers-color-scheme:dark") == 1 for picture in pictures)


def test_a_worker_has_the_same_colour_whoever_else_answered(tmp_path: Path) -> None:
    pool = ["ann", "bob", "cy"]
    colours = []
    for workers in ({"bob": 1}, {"ann": 1, "bob": 1}, {"bob": 1, "cy": 2}):
        trials = [trial("one", "t1", workers=workers)]
        draw_plots(summarise(trials, policies=["one"]), tmp_path, workers=pool)
        text = (tmp_path / "worker-share.svg").read_text(encoding="utf-8")
        colours.append("#e69f00" in text.lower())

    assert colours == [True, True, True]


def test_the_frontier_is_what_nothing_cheaper_beats() -> None:
    points = [Point(1, 50, "a"), Point(2, 40, "b"), Point(3, 60, "c"), Point(3, 55, "d"), Point(4, 60, "e")]

    assert [point.name for point in frontier(points)] == ["a", "c"]


def test_no_two_of_thirty_policies_look_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"policy {number}" for number in range(30)]
    drawn: list[Any] = []
    monkeypatch.setattr("wfdsl.evaluation.plots.save", lambda figure, *_: drawn.append(figure))
    summary = summarise([trial(name, list_usd=0.01) for name in names], policies=names)

    draw_accuracy_against_cost(summary, tmp_path)

    (axes,) = drawn[0].axes
    marks = [
        (line.get_marker(), line.get_color()) for line in axes.lines if line.get_marker() not in ("None", "_", "|")
    ]
    assert len(set(marks)) == len(marks) == 30


def test_policies_that_differ_in_one_number_or_in_effort_are_a_series() -> None:
    votes = [f"majority-vote:worker=ann,n={n}" for n in (1, 2, 4)]
    efforts = [f"gym/tiny@{effort}" for effort in ("minimal", "low", "high")]
    others = ["moa", "majority-vote:worker=bob,n=1", "best-fixed:search_calls=5,call_price=0.1", "gym/tiny"]

    found = series_of([*votes, *others, *efforts])

    assert found[0] == ("majority-vote:worker=ann,n=...", tuple(votes))
    assert found[-1] == ("gym/tiny@...", tuple(efforts))
    assert [series.policies for series in found[1:-1]] == [(name,) for name in others]


def test_a_series_is_joined_by_a_line_and_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"majority-vote:n={n}" for n in (1, 2, 4)]
    drawn: list[Any] = []
    monkeypatch.setattr("wfdsl.evaluation.plots.save", lambda figure, *_: drawn.append(figure))
    summary = summarise([trial(name, list_usd=0.01 * (at + 1)) for at, name in enumerate(names)], policies=names)

    draw_accuracy_against_cost(summary, tmp_path)

    (axes,) = drawn[0].axes
    assert [text.get_text() for text in axes.texts if text.get_text()] == ["majority-vote:n=..."]
    assert [0.01, 0.02, 0.03] in [list(line.get_xdata()) for line in axes.lines if line.get_linestyle() == "-"]


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


def test_a_label_is_where_its_own_point_is_the_nearest_if_there_is_such_a_place() -> None:
    chance = Random(1)
    points = [Point(chance.random(), chance.random(), f"policy number {number}") for number in range(20)]

    with figure(7.2, 4.8, simulated=False) as (drawn, (axes,)):
        axes.plot([point.x for point in points], [point.y for point in points], "o")
        label_points(drawn, axes, points)
        drawn.canvas.draw()
        boxes = {text.get_text(): text.get_window_extent() for text in axes.texts if text.get_text()}
        places = {point.name: axes.transData.transform((point.x, point.y)) for point in points}

    nearest = {name: min(places, key=lambda each: _distance(box, places[each])) for name, box in boxes.items()}
    assert nearest == {name: name for name in places}


def _distance(box: Any, place: Any) -> float:
    """How far a point is from a box."""
    x, y = place
    return hypot(max(box.x0 - x, 0, x - box.x1), max(box.y0 - y, 0, y - box.y1))


def test_efforts_of_a_conductor_have_a_name_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"gym/tiny-axes@{effort}" for effort in ("minimal", "low", "medium", "high")]
    drawn: list[Any] = []
    monkeypatch.setattr("wfdsl.evaluation.plots.save", lambda figure, *_: drawn.append(figure))
    summary = summarise([trial(name, list_usd=0.01 * (at + 1)) for at, name in enumerate(names)], policies=names)

    draw_accuracy_against_cost(summary, tmp_path)

    (axes,) = drawn[0].axes
    labels = sorted(text.get_text() for text in axes.texts if text.get_text())
    assert labels == ["gym/tiny-axes@high", "low", "medium", "minimal"]


def test_the_figure_of_a_bar_stays_in_its_panel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cells = [trial("one", f"{domain} {at}", "right", domain=domain) for domain in ("math", "code") for at in range(2)]
    ends: list[tuple[float, float]] = []

    def measure(drawn: Any, *_: Any) -> list[Path]:
        drawn.canvas.draw()
        ends.extend(
            (text.get_window_extent().x1, panel.get_window_extent().x1) for panel in drawn.axes for text in panel.texts
        )
        return []

    monkeypatch.setattr("wfdsl.evaluation.plots.save", measure)
    draw_benchmarks(summarise(cells, policies=["one"]), tmp_path)

    assert ends
    assert all(text <= panel for text, panel in ends)
