"""The plot: it is drawn, and says what is simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.toys import trial
from wfdsl.evaluation.report import draw_plot
from wfdsl.evaluation.summary import summarise

CELLS = [
    trial("one", "t1", "right"),
    trial("two", "t1", "right", list_usd=0.01),
    trial("$x_1$", "t1", "unjudged"),
]


@pytest.mark.parametrize("simulated", [True, False])
def test_the_plot_is_drawn_twice_and_says_that_workers_were_simulated(tmp_path: Path, simulated: bool) -> None:
    policies = ["one", "two", "$x_1$"]
    written = draw_plot(summarise(CELLS, policies=policies, simulated=simulated), tmp_path)

    png, svg = (path.read_bytes() for path in written)
    assert png.startswith(b"\x89PNG")
    assert (b"simulated workers" in svg) == simulated


def test_without_results_it_is_empty(tmp_path: Path) -> None:
    assert all(path.exists() for path in draw_plot(summarise([], policies=["one"]), tmp_path))
