"""`--config`, `--set` and options: which goes before which, in every command that takes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.cli.conftest import Command

pytestmark = pytest.mark.usefixtures("place")

POOL = """
[pool]
name = "toy"
[[pool.workers]]
name = "a"
provider = "scripted"
retries = 0
prices = { input = 1, output = 2 }
options = { replies = ["one", "two", "three"] }
"""
VOTE = 'param n = 2\nstep try by a copies {n}: "Solve it."\nstep choose by a sees try: "Choose the best."\n'
SETTINGS = '[conductor]\nmodel = "vote.wf"\n[budget]\ncalls = 9\n[run]\nseed = 3\nquestion_for = "first"\n'


@pytest.fixture
def place(files: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WFDSL_HOME", str(files / "home"))
    (files / "pool.toml").write_text(POOL)
    (files / "vote.wf").write_text(VOTE)
    (files / "exp.toml").write_text(f"{POOL}{SETTINGS}")
    return files


def trace_of(wfdsl: Command, *arguments: str) -> Mapping[str, Any]:
    result = wfdsl("run", "vote.wf", "-q", "Why?", "--json", *arguments)
    assert result.code == 0, result.err
    return Run.from_json(result.out).settings


@pytest.mark.parametrize(
    ("arguments", "seed", "calls", "pool"),
    [
        ([], 3, 9, "exp.toml"),
        (["--set", "run.seed=4", "--set", "budget.calls=8", "--seed", "5"], 5, 8, "exp.toml"),
        (["--pool", "pool.toml"], 3, 9, "pool.toml"),
    ],
)
def test_an_option_goes_before_set_and_that_before_the_file(
    wfdsl: Command, arguments: list[str], seed: int, calls: int, pool: str
) -> None:
    settings = trace_of(wfdsl, "--config", "exp.toml", *arguments)

    assert (settings["seed"], settings["question_for"], settings["budget"]["calls"]) == (seed, "first", calls)
    assert settings["origin"] == {"file": str(Path("vote.wf").absolute()), "pool": str(Path(pool).absolute())}


def test_set_also_sets_parameters_of_the_workflow(wfdsl: Command) -> None:
    result = wfdsl("run", "vote.wf", "-q", "Why?", "--config", "exp.toml", "--set", "n=1", "--set", "run.seed=4")

    assert (result.code, result.out) == (0, "two\n")


def test_pool_takes_workers_only_and_says_what_it_leaves(wfdsl: Command) -> None:
    result = wfdsl("run", "vote.wf", "-q", "Why?", "--pool", "exp.toml", "--dry-run")
    quiet = wfdsl("run", "vote.wf", "-q", "Why?", "--config", "exp.toml", "--pool", "exp.toml", "--dry-run")

    wanted = "note: --pool takes only the workers of exp.toml: --config exp.toml also takes "
    assert result.err == f"{wanted}[conductor], [budget], [run]\n"
    assert (result.code, quiet.code, quiet.err) == (0, 0, "")


def test_a_run_of_a_file_is_resumed_on_its_pool_and_one_on_a_changed_pool_is_not(wfdsl: Command) -> None:
    spent = wfdsl("run", "vote.wf", "-q", "Why?", "--config", "exp.toml", "--budget-calls", "1")
    resumed = wfdsl("runs", "resume", "last", "--set", "budget.calls=5")
    changed = wfdsl("run", "vote.wf", "-q", "Q", "--config", "exp.toml", "--set", "pool.name=x", "--budget-calls", "1")
    refused = wfdsl("runs", "resume", "last", "--budget-calls", "5")
    again = wfdsl("runs", "resume", "last", "--config", "exp.toml", "--set", "pool.name=x")

    assert (spent.code, resumed.code, changed.code, again.code) == (4, 0, 4, 0)
    assert refused.code == 2
    assert "the run's pool 'x' was not loaded by name: give it with --pool" in refused.err


def test_a_resumed_run_keeps_its_options_unless_they_are_set_again(wfdsl: Command) -> None:
    started = ["run", "vote.wf", "-q", "Why?", "--pool", "pool.toml", "--seed", "7", "--set", "run.step_timeout_s=77"]
    spent = wfdsl(*started, "--set", "run.timeout_s=88", "--budget-calls", "1")

    resumed = wfdsl("runs", "resume", "last", "--set", "run.timeout_s=99", "--budget-calls", "5", "--json")

    settings = Run.from_json(resumed.out).settings
    assert (spent.code, resumed.code) == (4, 0)
    assert (settings["seed"], settings["step_timeout_s"], settings["timeout_s"]) == (7, 77.0, 99.0)
    assert settings["budget"] == {"calls": 5}


@pytest.mark.parametrize("command", ["check", "show", "fmt"])
def test_commands_that_only_read_take_the_pool_of_the_file(wfdsl: Command, command: str) -> None:
    more = ["--to", "completion"] if command == "fmt" else []

    result = wfdsl(command, "vote.wf", "--config", "exp.toml", *more)

    assert (result.code, result.err) == (0, "")
    assert "note" not in result.out


def test_a_workflow_file_stands_where_a_conductor_could(wfdsl: Command) -> None:
    solved = wfdsl("solve", "-q", "Why?", "--config", "exp.toml", "--set", "n=1")
    plain = wfdsl("solve", "-q", "Why?", "--conductor", "vote.wf", "--pool", "pool.toml", "--json")
    shown = wfdsl("solve", "-q", "Why?", "--config", "exp.toml", "--dry-run")
    ran = wfdsl("run", "vote.wf", "-q", "Why?", "--config", "exp.toml", "--dry-run")

    assert (solved.code, solved.out) == (0, "two\n")
    assert "choose done" in solved.err
    assert json.loads(plain.out)["answer"] == "three"
    assert (shown.code, shown.out) == (0, ran.out)


def test_a_workflow_file_that_was_solved_with_can_be_resumed(wfdsl: Command) -> None:
    spent = wfdsl("solve", "-q", "Why?", "--config", "exp.toml", "--budget-calls", "1")

    resumed = wfdsl("runs", "resume", "last", "--budget-calls", "5")

    assert (spent.code, resumed.code) == (4, 0)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ["solve", "-q", "Q", "--config", "exp.toml", "--max-rounds", "2"],
            "is run as it is, without a Conductor: leave out --max-r",
        ),
        (["solve", "-q", "Q", "--conductor", "none.wf"], "none.wf: cannot be read"),
        (["solve", "-q", "Q", "--conductor", "boss.toml", "--set", "n=1"], "--set n: a Conductor has no parameters"),
        (["solve", "-q", "Q", "--config", "nope.toml"], "nope.toml: cannot read this configuration file"),
        (["solve", "-q", "Q", "--conductor", "."], ". is not a checkpoint"),
        (["solve", "-q", "Q", "--out", "a.jsonl"], "--from and --out need each other"),
        (["solve", "--from", "in.jsonl"], "--from and --out need each other"),
        (["solve", "-q", " "], "argument -q: must not be blank"),
        (["solve", "-q", "Q", "--max-ruonds", "2"], "--max-ruonds: did you mean `--max-rounds`?"),
        (["solve", "-q", "Q", "--budget-usd", "nan"], "--budget-usd: "),
        (["solve", "-q", "Q", "--set", "conductor.call_factor=0"], "--set conductor.call_factor "),
        (["run", "vote.wf", "-q", "Q", "--budget-calls", "-1"], "--budget-calls: "),
        (["run", "vote.wf", "-q", "Q", "--set", "run.timeout_s=inf"], "--set run.timeout_s "),
        (["run", "vote.wf", "-q", "Q", "--set", "run.seed=x"], "--set run.seed "),
        (["run", "vote.wf", "-q", "Q", "--set", "rnu.seed=1"], 'there is no table "rnu". Did you mean run?'),
        (["run", "vote.wf", "-q", "Q", "--pool-size", "3"], "unrecognized arguments: --pool-size"),
        (["check", "vote.wf", "--set", "run.sede=1"], '[run] has no key "sede". Did you mean seed?'),
        (["check", "vote.wf", "--config", "exp.toml", "--pool-size", "2"], "exclude each other"),
        (["runs", "resume", "last", "--set", "n=1"], "--set n: the run keeps the parameters that it was started with"),
        (["runs", "rm", "--days", "nan"], "--days: "),
        (
            ["check", "--grammar", "gbnf", "--pool-size", "1000000000"],
            "a grammar has at most 1000 workers (got 1000000000)",
        ),
        (["data", "examples", "extract", "deep.jsonl"], "deep.jsonl:1: is not JSON"),
        (["data", "examples", "extract", "row.jsonl"], "row.jsonl:1: not a line that `wfdsl solve --out` wrote"),
        (["pools", "init", "--base-url", "nonsense"], "this is not a URL"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_code_2(
    wfdsl: Command, place: Path, arguments: list[str], why: str
) -> None:
    (place / "boss.toml").write_text(POOL)
    (place / "empty").write_text("\n")
    (place / "deep.jsonl").write_text("[" * 100_000)
    (place / "row.jsonl").write_text('{"question": "Q", "answer": "A", "right": true, "rounds": [{"result": "ran"}]}')

    result = wfdsl(*arguments)

    assert (result.code, result.out) == (2, "")
    assert why in result.err
    assert result.err.count("\n") == 1
