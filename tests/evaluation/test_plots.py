"""Plots: they are drawn, say what is simulated, and show a worker in one colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.evaluation.toys import ONE, TWO, trial
from wfdsl.evaluation.plots import draw_plots, draw_strategies
from wfdsl.evaluation.summary import summarise
from wfdsl.evaluation.workflow_statistics import statistics_of

if TYPE_CHECKING:
    from pathlib import Path

CELLS = [
    trial("one", "t1", "right"),
    trial("one", "t2", "wrong", domain="code"),
    trial("two", "t1", "right", list_usd=0.01, rounds=(TWO,), workers={"ann": 1, "bob": 1}),
    trial("two", "t2", "right", domain="code", list_usd=0.01),
]


def test_plots_are_drawn_twice_and_say_that_workers_were_simulated(tmp_path: Path) -> None:
    written = [
        *draw_plots(summarise(CELLS, policies=["one", "two"], simulated=True), tmp_path),
        *draw_strategies({"one": statistics_of([ONE, TWO])}, tmp_path, simulated=True),
    ]

    names = ("accuracy-against-cost", "strategy-steps", "strategy-topologies", "worker-share")
    assert sorted(path.name for path in written) == [f"{name}.{form}" for name in names for form in ("png", "svg")]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written if path.suffix == ".png")
    pictures = [path.read_text(encoding="utf-8") for path in written if path.suffix == ".svg"]
    assert all("simulated workers" in picture and "(simulated)" in picture for picture in pictures)
    assert all(picture.count("prefers-color-scheme:dark") == 1 for picture in pictures)


def test_plots_of_real_workers_do_not_say_so(tmp_path: Path) -> None:
    written = draw_plots(summarise(CELLS, policies=["one", "two"]), tmp_path)

    assert not any("simulated" in path.read_text(encoding="utf-8") for path in written if path.suffix == ".svg")


def test_a_worker_has_the_same_colour_whoever_else_answered(tmp_path: Path) -> None:
    for workers in ({"bob": 1}, {"ann": 1, "bob": 1}, {"bob": 1, "cy": 2}):
        draw_plots(summarise([trial("one", "t1", workers=workers)], policies=["one"]), tmp_path, workers=["ann", "bob"])
        assert "#e69f00" in (tmp_path / "worker-share.svg").read_text(encoding="utf-8").lower()


def test_without_results_nothing_is_drawn(tmp_path: Path) -> None:
    assert draw_plots(summarise([], policies=["one"]), tmp_path) == []
    assert draw_strategies({"one": statistics_of([])}, tmp_path, simulated=False) == []
