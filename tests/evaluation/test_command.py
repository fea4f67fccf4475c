"""`wfdsl eval` as a user meets it: what it writes and prints, its exit codes, and what it says of bad input."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.toys import wfdsl_eval as main
from wfdsl.cli.eval_reports import print_table
from wfdsl.tasks.task import ANSWER_FORMATS

RAY = ["--policy", "workers", "--tasks", "gym/seven", "--limit", "2", "--pool", "gym/seven", "--engine", "ray"]
ON = ["--tasks", "tasks.jsonl", "--pool", "pool.toml"]

POOL = """
[pool]
name = "toys"
[pool.defaults]
provider = "scripted"
prices = { input = 1.0, output = 4.0 }
max_tokens = 10
retries = 0
[[pool.workers]]
name = "ann"
options = { replies = ["The answer is 4.", "The answer is 5."], repeat = true }
[[pool.workers]]
name = "bob"
options = { replies = ["4"], repeat = true }
[[pool.workers]]
name = "short"
options = { replies = ["4", "4", "4"] }
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a pool and ten tasks, which is the current one and takes the journal."""
    (tmp_path / "pool.toml").write_text(POOL)
    rows = [{"id": f"t{n}", "question": f"What is {n} + {4 - n}?", "gold": "4", "kind": "text"} for n in range(10)]
    (tmp_path / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evaluated(*more: str, policies: tuple[str, ...] = ("worker:ann", "worker:bob")) -> int:
    named = [word for policy in policies for word in ("--policy", policy)]
    return main([*named, *ON, "--out", "out", "--no-plots", *more])


def results(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home / "out" / "results.jsonl").read_text().splitlines()]


def calls_in_journal(home: Path) -> int:
    connection = sqlite3.connect(home / "home" / "journal.db")
    count: int = connection.execute("SELECT count(*) FROM calls").fetchone()[0]
    connection.close()
    return count


def test_an_evaluation_writes_its_folder_and_prints_its_table(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = evaluated()

    out, err = capsys.readouterr()
    assert code == 0
    assert "20 of 20 runs: 15 right, 5 wrong, $" in err
    assert "| worker:ann | 50.0 ± 32.7 |" in out
    assert "| worker:bob | 100.0 ± 17.8 |" in out
    assert "simulated" in out
    assert {path.name for path in (home / "out").glob("[!.]*")} == {"manifest.json", "results.jsonl", "summary.json"}
    assert len(results(home)) == 20


def test_a_dry_run_writes_nothing_and_a_finished_evaluation_asks_nothing_more(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(home.rglob("*"))
    assert evaluated("--dry-run") == 0
    assert sorted(home.rglob("*")) == before

    evaluated()
    found = results(home)
    capsys.readouterr()
    assert main(["--resume", "out", "--no-plots", "--json"]) == 0
    assert (results(home), calls_in_journal(home)) == (found, 20)
    summary = (home / "out" / "summary.json").read_text()
    assert json.loads(capsys.readouterr().out) == json.loads(summary)
    (home / "out" / "summary.json").unlink()
    assert main(["report", "out", "--no-plots"]) == 0
    assert (home / "out" / "summary.json").read_text() == summary


def test_a_conductor_and_a_vote_cost_at_most_what_their_longest_replies_cost(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluated("--dry-run", "--json", policies=("openai:gpt-5-mini:max_rounds=0/1", "majority-vote:n=1/3"))

    found = json.loads(capsys.readouterr().out)
    once, twice, one, three = (each["usd_at_most"] for each in found)
    assert 0 < 2 * once < twice
    assert three == pytest.approx(3 * one)
    assert found[1]["calls"] == 2 * found[0]["calls"]


def test_failed_runs_end_in_code_3_and_are_tried_again(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = evaluated("--parallel", "1", policies=("worker:short",))

    assert code == 3
    assert "7 of 10 runs failed" in capsys.readouterr().err
    assert [row["outcome"] for row in results(home)].count("failed") == 7

    again = main(["--resume", "out", "--no-plots"])

    outcomes = {row["task"]: row["outcome"] for row in results(home)}
    assert again == 3
    assert list(outcomes.values()).count("right") == 6
    assert json.loads((home / "out" / "summary.json").read_text())["policies"][0]["overall"]["failed"] == 4


def test_answers_that_cannot_be_judged_are_told_with_the_reason(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "grader_for_test.py").write_text("def judge(task, text):\n    raise ValueError('no idea')\n")
    monkeypatch.syspath_prepend(str(home))
    row = {"id": "t", "question": "?", "gold": "4", "kind": "custom", "grader": "grader_for_test:judge"}
    (home / "tasks.jsonl").write_text(json.dumps(row))

    code = evaluated()

    said = capsys.readouterr().err
    assert code == 0
    assert "2 of 2 answers could not be judged\nthe first: worker:ann on " in said
    assert "no idea" in said
    assert "to try them again: wfdsl eval --resume out" in said


def test_a_spent_budget_ends_in_code_4_and_a_larger_one_goes_on(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = evaluated("--set", "budget.calls=7", "--parallel", "2")

    assert code == 4
    assert "to continue, with a larger budget: wfdsl eval --resume out" in capsys.readouterr().err
    assert len(results(home)) == calls_in_journal(home) == 7

    assert main(["--resume", "out", "--no-plots"]) == 4  # the same budget stays spent
    assert len(results(home)) == calls_in_journal(home) == 7

    code = evaluated("--set", "budget.calls=20", "--resume", "out")

    assert code == 0
    assert len(results(home)) == calls_in_journal(home) == 20


def test_without_a_journal_a_budget_counts_what_results_say(home: Path) -> None:
    evaluated("--set", "budget.calls=7", "--set", "run.journal=false")

    code = evaluated("--set", "budget.calls=9", "--set", "run.journal=false", "--resume", "out")

    assert code == 4
    assert len(results(home)) == 9
    assert not (home / "home").exists()


def test_a_folder_is_neither_written_over_nor_resumed_by_another_evaluation(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluated("--limit", "1")

    assert evaluated("--limit", "1") == 2
    assert "out holds an evaluation already; continue it with --resume" in capsys.readouterr().err
    assert evaluated("--limit", "1", "--resume", "out", "--seed", "5") == 2
    assert "was started with other seed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --policy"),
        (["--pool", "pool.toml"], "moa or FILE.wf, and --tasks: what it is asked"),
        (["--policy", "worker:ann", "--tasks", "tasks.jsonl"], "give --pool"),
        (["--policy", "worker:ann", "--tasks", "nowhere.jsonl", "--pool", "pool.toml"], "nowhere.jsonl"),
        (["--policy", "worker:ann", "--tasks", "tasks.jsonl", "--pool", "nowhere.toml"], "nowhere.toml"),
        (["--policy", "worker:ann", *ON, "--map", "x"], "--map"),
        (["--policy", "moa", *ON, "--set", "grading.judge=zoe"], "no worker zoe"),
        (["--resume", "nowhere"], "nowhere holds no evaluation"),
        (["compare", "nowhere"], "nowhere holds no evaluation"),
        ([*RAY[:-2], "--address", "auto"], "add --engine ray"),
        ([*RAY, "--budget-usd", "1"], "a budget holds on one machine"),
        ([*RAY, "--policy", "best-fixed"], "which every node would pay for"),
    ],
)
def test_bad_input_is_code_2_with_what_to_do(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code = main(arguments)

    assert code == 2
    assert message in capsys.readouterr().err


def test_evaluations_are_compared_by_policies_at_equal_cost_and_by_strategies(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "checked.wf").write_text('wfdsl 1\nstep a by bob: "Solve."\nstep b by ann sees a: "Check it."\n')
    evaluated(policies=("worker:ann", "worker:bob", "checked.wf"))
    evaluated("--out", "other", "--limit", "6", policies=("worker:bob",))

    def said(*words: str, code: int = 0) -> Any:
        capsys.readouterr()
        assert main(words) == code
        out, err = capsys.readouterr()
        return json.loads(out) if "--json" in words else out or err

    assert "against worker:ann, simulated workers\n" in said("compare", "out")
    assert "| worker:bob | 10 | 100.0, 50.0 | +50.0 |" in said("compare", "out")
    [found] = said("compare", "out", "other", "--json")
    assert (found["first"], found["second"]) == ("worker:bob (out)", "worker:bob (other)")
    assert (found["difference"]["tasks"], found["difference"]["value"]) == (6, 0.0)
    assert len(said("compare", "out", "other", "--against", "worker:bob", "--json")) == 3
    assert "zoe: out has worker:ann, " in said("compare", "out", "--against", "worker:zoe", code=2)

    out = said("equal-cost", "out")
    assert out.startswith("simulated workers\n")
    assert len([line for line in out.splitlines() if line.startswith(("| checked |", "| worker:"))]) == 3
    [found] = said("equal-cost", "out", "--policy", "checked", "--json")
    assert (found["policy"], found["calls"], found["learned"]) == ("checked", 2.0, None)
    assert found["rival"]["policy"] == "worker:bob"
    assert "two of the folders have a policy 'worker:bob'" in said("equal-cost", "out", "other", code=2)
    assert "they have worker:bob" in said("equal-cost", "out", "--policy", "worker:nobody", code=2)

    found = said("room", "out", "--json")["the workers"]
    assert (found["tasks"], found["choice"]["calls"], found["among"]) == (10, 1.0, ["worker:ann", "worker:bob"])
    assert "This answer has cost 40 calls" in said("room", "out")
    assert "| role verifier | 0.0% | 0.0% | 100.0% |" in said("strategies", "out")
    assert "bob, ann(all)" in said("strategies", "out")


def test_what_fitting_takes_is_estimated_and_reported_apart(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "knn-router:validation=tasks.jsonl,limit=4"

    evaluated("--dry-run", "--limit", "3", policies=(name,))
    assert "3 calls, at most $0.0005; fitting costs extra: at most 12 calls" in capsys.readouterr().out
    assert evaluated("--limit", "3", policies=(name,)) == 0

    assert main(["equal-cost", "out"]) == 0
    assert "| 11 calls |" in capsys.readouterr().out  # one of the twelve calls fails
    assert {row["calls"] for row in results(home)} == {1}


def test_a_narrow_terminal_shows_every_cell_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")

    print_table(["policy", "one", "two"], [["a policy with a long name", "1.0 ± 1.0", "2.0 ± 1.0"]])

    out = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert all(word in out for word in ("policy", "1.0 ± 1.0", "2.0 ± 1.0"))
    assert max(map(len, out.splitlines())) <= 40


@pytest.mark.parametrize(("more", "extra"), [((), "[eval]"), (("--engine", "ray"), "[ray]")])
def test_a_package_that_is_missing_is_named_before_anything_is_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], extra: str
) -> None:
    for package in ("matplotlib", "ray"):
        monkeypatch.setitem(sys.modules, package, None)
    asked = ["--policy", "workers", *ON, "--out", "unplotted"]

    assert main([*asked, *more]) == 2

    assert extra in capsys.readouterr().err
    assert not Path("unplotted").exists()


@pytest.mark.parametrize(
    ("more", "formats"),
    [
        ((), [ANSWER_FORMATS["text"]]),
        (("--protocol", "paper"), [""]),
        (("--answer-format", "In one word."), ["In one word."]),
    ],
)
def test_the_manifest_says_how_to_do_it_again(home: Path, more: tuple[str, ...], formats: list[str]) -> None:
    assert evaluated("--seed", "3", "--repeats", "2", "--limit", "4", *more) == 0

    manifest = json.loads((home / "out" / "manifest.json").read_text("utf-8"))
    assert manifest["simulated"] is True
    assert (manifest["seed"], manifest["repeats"], manifest["tasks"]["count"]) == (3, 2, 4)
    assert manifest["command"][:2] == ["--policy", "worker:ann"]
    assert (manifest["tasks"]["sources"], manifest["tasks"]["answer_formats"]) == (["tasks.jsonl"], formats)
    assert manifest["pool"]["workers"]["0"]["prices"] == {"input": 1.0, "output": 4.0}
    assert manifest["policies"]["worker:ann"]["workflow"][0]["worker"] == 0
