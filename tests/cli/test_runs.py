"""`wfdsl runs`: a table with filters, where evaluations are folded and upper bounds of costs are marked."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.evaluation.toys import wfdsl_eval as evaluate

POOL = """
[pool]
name = "toy"
[[pool.workers]]
name = "w"
provider = "scripted"
retries = 0
prices = { input = 1000, output = 1000 }
max_tokens = 10
options = { replies = ["4"], repeat = true }
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pool.toml").write_text(POOL)
    (tmp_path / "other.toml").write_text(POOL.replace("toy", "other").replace("repeat = true", "repeat = false"))
    (tmp_path / "one.wf").write_text('step a by w: "Say it."\n')
    (tmp_path / "two.wf").write_text('step a by w: "Say it."\nstep b by w sees a: "Say it again."\n')
    (tmp_path / "tasks.jsonl").write_text('{"question": "2 + 2?", "gold": "4", "kind": "math"}\n' * 3)
    return tmp_path


@pytest.fixture
def three(place: Path, wfdsl: Command) -> Command:
    """Three runs, of which the second has failed."""
    wfdsl("run", "one.wf", "The first?", "--pool", "pool.toml")
    wfdsl("run", "two.wf", "The second?", "--pool", "other.toml")
    wfdsl("run", "two.wf", "The third?", "--pool", "pool.toml")
    return wfdsl


def questions(out: str) -> list[str]:
    return [line.split("  ")[-1] for line in out.splitlines()[1:]]


def test_runs_are_a_table_newest_first(three: Command) -> None:
    out = three("runs").out

    head, third, second, first = out.splitlines()
    assert head.split() == ["RUN", "STARTED", "STATUS", "BY", "POOL", "CALLS", "COST", "QUESTION"]
    assert third.split()[3:7] == ["done", "two.wf", "toy", "2"]
    assert second.split()[3:6] == ["failed", "two.wf", "other"]
    assert questions(out) == ["The third?", "The second?", "The first?"]
    assert {line.index(each) for line, each in zip((third, second, first), ("toy", "other", "toy"), strict=True)} == {
        head.index("POOL")
    }


@pytest.mark.parametrize(
    ("options", "found"), [(["--status", "failed"], ["The second?"]), (["--limit", "1"], ["The third?"])]
)
def test_runs_are_chosen_by_what_they_are(three: Command, options: list[str], found: list[str]) -> None:
    assert questions(three("runs", *options).out) == found
    assert [json.loads(line)["title"] for line in three("runs", *options, "--json").out.splitlines()] == found


def test_what_the_list_leaves_out_is_said(three: Command) -> None:
    assert three("runs", "--limit", "2").err == "2 of 3; --limit N shows more\n"
    assert three("runs", "--status", "running") == (0, "", "there are no such runs\n")


def test_the_runs_of_an_evaluation_are_one_line(place: Path, wfdsl: Command) -> None:
    wfdsl("run", "one.wf", "Before?", "--pool", "pool.toml")
    arguments = ["--policy", "one.wf", "--policy", "two.wf", "--tasks", "tasks.jsonl", "--pool", "pool.toml"]
    assert evaluate([*arguments, "--no-plots", "--out", "out"]) == 0
    wfdsl("run", "one.wf", "After?", "--pool", "pool.toml")

    listed = wfdsl("runs").out
    line = listed.splitlines()[2]

    assert questions(listed) == ["After?", "an evaluation: 6 runs", "Before?"]
    assert "6 done" in line


def test_a_cost_that_is_an_upper_bound_is_marked(three: Command, place: Path) -> None:
    with closing(sqlite3.connect(place / "home" / "journal.db")) as journal, journal:
        journal.execute("UPDATE calls SET status = 'lost' WHERE id = (SELECT max(id) FROM calls)")

    third, _, first = three("runs").out.splitlines()[1:]
    rows = [json.loads(line) for line in three("runs", "--json").out.splitlines()]

    assert "  <=$0.0" in third
    assert "<=" not in first
    assert [row["is_bound"] for row in rows] == [True, False, False]


def test_a_run_that_was_refused_leaves_nothing(place: Path, wfdsl: Command) -> None:
    (place / "pool.toml").write_text(POOL.replace("prices = { input = 1000, output = 1000 }", ""))

    refused = wfdsl("run", "one.wf", "Q", "--pool", "pool.toml", "--budget-usd", "1")

    assert refused.code == 2
    assert wfdsl("runs") == (0, "", "there are no runs\n")


def test_a_failure_is_told_once_and_names_the_conductor(place: Path, wfdsl: Command) -> None:
    (place / "empty.toml").write_text(POOL.replace('["4"], repeat = true', '["x"]'))
    failed = wfdsl("run", "two.wf", "Q", "--pool", "other.toml")
    by_conductor = wfdsl("solve", "Q", "--pool", "pool.toml", "--conductor", "empty.toml", "--max-rounds", "0")

    reason = "the script has 1 lines, and this is call 2"
    assert failed.err.count(reason) == 1
    assert by_conductor.err.count(reason) == 1
    assert "worker -1" not in by_conductor.err + wfdsl("runs", "show", "last").out
    assert "Conductor (w): " in by_conductor.err


def test_replies_are_shown_as_what_they_mean_on_a_terminal(
    place: Path, wfdsl: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("pool.toml").write_text(POOL.replace('"4"', '"so **four**"'))
    wfdsl("run", "one.wf", "How many?", "--pool", "pool.toml")
    assert "so **four**" in wfdsl("runs", "show", "last").out

    monkeypatch.setenv("FORCE_COLOR", "1")

    assert "so \x1b[1mfour\x1b[0m" in wfdsl("runs", "show", "last").out
