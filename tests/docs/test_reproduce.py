"""The scripts that make the paper's tables: dry runs, a small table, and `make real` on a server here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.docs.pages import ROOT
from tests.interpreter.chat_server import ChatServer
from wfdsl.cli.output import INTERRUPTED, SPENT
from wfdsl.evaluation.report import read_report

Run: TypeAlias = Callable[..., int]
SCRIPTS = ROOT / "docs" / "reproduce"
TABLES = ("ablation", "baselines", "cold_start", "emergence", "few_shot", "model_size", "pools", "recursion")
MODELS = ("gpt-5-mini", "gpt-4.1-mini", "gpt-5-nano")
FLOW = 'model_id = [0, 1]\nsubtasks = ["Solve it.", "Check it."]\naccess_list = [[], "all"]'


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a script in a new folder; the exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.syspath_prepend(str(SCRIPTS))

    def go(script: str, *words: str, answer: str = "") -> int:
        monkeypatch.setattr(sys, "argv", [script, *words])
        monkeypatch.setattr(sys, "stdin", StringIO(answer))
        module = import_module(script)
        return int(module.main() if hasattr(module, "main") else module.TABLE.run())

    return go


@pytest.mark.parametrize("table", TABLES)
def test_a_dry_run_of_each_table_asks_nothing(table: str, run: Run, tmp_path: Path) -> None:
    assert run(table, "--dry-run", "--limit", "8") == 0
    assert not (tmp_path / "reproduce").exists()


def test_the_papers_pool_is_priced_and_asked_for_first(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = str(SCRIPTS / "questions.jsonl")

    assert run("recursion", "--pool", "paper", "--tasks", tasks, "--limit", "2", answer="n\n") == 0

    assert "at most $" in capsys.readouterr().out
    assert not (tmp_path / "reproduce").exists()


def test_a_training_without_its_packages_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("wfdsl.installation.find_spec", lambda name: None)

    assert run("cold_start") == 2
    assert "[rl]" in capsys.readouterr().err


def test_a_table_has_the_papers_figures_beside_ours(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("recursion", "--limit", "2") == 0
    out = capsys.readouterr().out
    table = out[out.index("## ") :]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| ")]
    assert [row[1].strip() for row in rows[2:4]] == ["66.67, 37.8, 81.31; 61.93", "66.67, 40.0, 82.32; 63.00"]
    assert len(rows) == 6
    report = read_report(tmp_path / "reproduce" / "recursion")
    assert all(trial.kept or len(trial.rounds) == 4 for trial in report.of("gym/seven:max_rounds=3"))
    assert run("recursion") == 0
    assert capsys.readouterr().out.endswith(table)


@pytest.mark.parametrize("code", [INTERRUPTED, SPENT])
def test_an_evaluation_that_was_stopped_makes_no_table(
    run: Run, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(import_module("reproduce"), "wfdsl", lambda words: code)

    assert run("recursion") == code
    assert capsys.readouterr().out == ""


class ThreeModels(ChatServer):
    """Writes a workflow where it is asked for lists, and else always answers the same."""

    def answer(self, body: dict[str, Any]) -> str:
        super().answer(body)
        return FLOW if "access_list" in json.dumps(body["messages"]) else "The answer is 4."


def test_three_real_models_are_compared_on_one_page(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ThreeModels()
    tasks = [{"id": str(n), "question": f"What is {n} + 2?", "gold": str(n + 2), "kind": "math"} for n in range(3)]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    entry = (
        "[[pool.workers]]\nname = '{0}'\nprovider = 'openai'\nmodel = '{0}'\nbase_url = '{1}'\n"
        "prices = {{ input = 1.0, output = 1.0 }}\n"
    )
    (tmp_path / "three.toml").write_text("".join(entry.format(model, server.url) for model in MODELS))
    words = ["--pool", "three.toml", "--tasks", "tasks.jsonl"]
    try:
        assert run("real", *words, answer="no\n") == 0
        assert server.asked == []
        assert "at most $" in capsys.readouterr().out
        assert run("real", *words, answer="y\n") == 0
    finally:
        server.close()

    report = read_report(tmp_path / "real")
    right = {name: sum(trial.outcome == "right" for trial in report.of(name)) for name in report.policies}
    assert set(right.values()) == {1}
    assert {len(trial.rounds[0]) for trial in report.of(report.policies[-1])} == {2}
    page = (tmp_path / "real" / "page.md").read_text()
    assert all(trial.run_id in page for trial in report.trials)
    assert len(report.policies) == 7
