"""Summaries: what benchmarks are, what a sample takes, and how tables show it."""

from __future__ import annotations

import json

import pytest

from tests.evaluation.toys import TWO, trial
from wfdsl.evaluation.report import accuracy_table, comparison_table, markdown_of
from wfdsl.evaluation.summary import summarise

CELLS = [
    trial("a", "t1", "right", source="gsm8k"),
    trial("a", "t2", "wrong", source="gsm8k"),
    trial("a", "t3", "right", source="math", list_usd=1.5, calls=3, rounds=(TWO,), workers={"bob": 3}),
    trial("a", "t4", "failed", source="math", latency_s=None),
    trial("b", "t1", "right", source="gsm8k"),
    trial("b", "t2", "right", source="gsm8k"),
    trial("b", "t3", "right", source="math", list_usd=None),
]


def test_benchmarks_are_the_sources_where_there_are_several() -> None:
    summary = summarise(CELLS, policies=["a", "b"])

    assert (summary.split, summary.benchmarks) == ("source", ("gsm8k", "math"))
    assert summary.policies[0].benchmarks["gsm8k"].value == 0.5
    assert summary.policies[0].average is not None
    assert summary.policies[0].average.value == 0.75


def test_benchmarks_are_the_domains_of_a_single_source() -> None:
    summary = summarise([trial(domain="math"), trial(task="t2", domain="code")], policies=["p"])

    assert (summary.split, summary.benchmarks) == ("domain", ("math", "code"))


def test_samples_take_what_all_results_took() -> None:
    first = summarise(CELLS, policies=["a", "b"]).policies[0]

    assert first.list_usd == pytest.approx((0.5 + 0.5 + 1.5 + 0.5) / 4)
    assert (first.calls, first.steps) == (1.5, 1.25)
    assert first.latency_s == 2.0
    assert first.workers == {"ann": 3, "bob": 3}


def test_an_average_is_missing_where_a_benchmark_has_nothing_judged() -> None:
    trials = [trial(domain="math"), trial(task="t2", domain="code", outcome="unjudged")]

    assert summarise(trials, policies=["p"]).policies[0].average is None


def test_the_table_shows_failures_beside_the_accuracy_with_bounds() -> None:
    head, rows = accuracy_table(summarise(CELLS, policies=["a", "b"]))

    first = dict(zip(head, rows[0], strict=True))
    assert first["failed"] == "1"
    assert first["bounds"] == "50.0 to 75.0"
    assert dict(zip(head, rows[1], strict=True))["bounds"] == "-"


def test_the_comparison_table_has_a_row_where_nothing_is_common() -> None:
    summary = summarise([trial("a", "t1"), trial("b", "t2")], policies=["a", "b"])

    head, rows = comparison_table(summary.comparisons)

    assert len(rows[0]) == len(head)
    assert rows[0][:2] == ["b", "0"]


def test_markdown_says_simulated_and_keeps_bars_in_names_apart() -> None:
    text = markdown_of(summarise([trial("x|y")], policies=["x|y"], simulated=True), title="T")

    assert "simulated" in text
    assert "x\\|y" in text
    assert "simulated" not in markdown_of(summarise([trial("p")], policies=["p"]), title="T")


def test_the_summary_is_json_with_its_format() -> None:
    plain = json.loads(json.dumps(summarise(CELLS, policies=["a", "b"], simulated=True).to_dict(), allow_nan=False))

    assert (plain["format"], plain["simulated"]) == ("wfdsl-evaluation-summary", True)
    assert plain["policies"][0]["overall"]["failed"] == 1
    assert plain["comparisons"][0]["difference"]["tasks"] == 3
