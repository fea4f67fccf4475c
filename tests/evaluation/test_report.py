"""Reports: what benchmarks are, what a sample takes, and how tables, Markdown, JSON and the plot show it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.evaluation.toys import TWO, trial
from wfdsl.evaluation.report import accuracy_table, comparison_table, draw_plot, markdown_table, summarise

TRIALS = [
    trial("a", "t1", "right", source="gsm8k"),
    trial("a", "t2", "wrong", source="gsm8k"),
    trial("a", "t3", "right", source="math", list_usd=1.5, calls=3, rounds=(TWO,), workers={"bob": 3}),
    trial("a", "t4", "failed", source="math", latency_s=None),
    trial("b", "t1", "right", source="gsm8k"),
    trial("b", "t2", "right", source="gsm8k"),
    trial("b", "t3", "right", source="math", list_usd=None),
]
SUMMARY = summarise(TRIALS, policies=["a", "b"])


def test_benchmarks_are_the_sources_or_the_domains_of_a_single_one() -> None:
    single = summarise([trial(domain="math"), trial(task="t2", domain="code")], policies=["p"])

    assert (SUMMARY.split, SUMMARY.benchmarks) == ("source", ("gsm8k", "math"))
    assert SUMMARY.policies[0].benchmarks["gsm8k"].value == 0.5
    assert SUMMARY.policies[0].average is not None
    assert SUMMARY.policies[0].average.value == 0.75
    assert (single.split, single.benchmarks) == ("domain", ("math", "code"))
    unjudged = [trial(domain="math"), trial(task="t2", domain="code", outcome="unjudged")]
    assert summarise(unjudged, policies=["p"]).policies[0].average is None


def test_samples_take_what_all_results_took() -> None:
    first = SUMMARY.policies[0]

    assert first.list_usd == pytest.approx((0.5 + 0.5 + 1.5 + 0.5) / 4)
    assert (first.calls, first.steps, first.latency_s) == (1.5, 1.25, 2.0)
    assert first.workers == {"ann": 3, "bob": 3}


def test_the_tables_show_failures_with_bounds_and_comparisons_without_a_common_task() -> None:
    head, rows = accuracy_table(SUMMARY)
    first, second = (dict(zip(head, row, strict=True)) for row in rows)
    assert (first["failed"], first["bounds"], second["bounds"]) == ("1", "50.0 to 75.0", "-")

    apart = summarise([trial("a", "t1"), trial("b", "t2")], policies=["a", "b"])
    head, rows = comparison_table(apart.comparisons)
    assert (len(rows[0]), rows[0][:2]) == (len(head), ["b", "0"])


def test_bars_in_names_are_kept_apart() -> None:
    assert "| x\\|y | 100.0" in markdown_table(*accuracy_table(summarise([trial("x|y")], policies=["x|y"])))


def test_the_summary_is_json_with_its_format() -> None:
    plain = json.loads(json.dumps(SUMMARY.to_dict(), allow_nan=False))

    assert (plain["format"], plain["simulated"]) == ("wfdsl-evaluation-summary", False)
    assert plain["policies"][0]["overall"]["failed"] == 1
    assert plain["comparisons"][0]["difference"]["tasks"] == 3


@pytest.mark.parametrize("simulated", [True, False])
def test_the_plot_is_drawn_twice_and_says_that_workers_were_simulated(tmp_path: Path, simulated: bool) -> None:
    trials = [trial("one"), trial("two", list_usd=0.01), trial("$x_1$", outcome="unjudged")]
    policies = ["one", "two", "$x_1$"]

    written = draw_plot(summarise(trials, policies=policies, simulated=simulated), tmp_path)

    png, svg = (path.read_bytes() for path in written)
    assert png.startswith(b"\x89PNG")
    assert (b"simulated workers" in svg) == simulated


def test_without_results_the_plot_is_empty(tmp_path: Path) -> None:
    assert all(path.exists() for path in draw_plot(summarise([], policies=["one"]), tmp_path))
