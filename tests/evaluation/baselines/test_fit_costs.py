"""What learning cost is kept beside the results, and nothing is kept where nothing was learned."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.evaluation.toys import wfdsl_eval as main
from wfdsl.errors import UsageError
from wfdsl.evaluation.fit_costs import FILE, FitCost, fit_cost_table, fit_costs, read_fit_costs, write_fit_costs
from wfdsl.evaluation.policy_names import policies_of
from wfdsl.evaluation.trials import read_trials
from wfdsl.tasks.task import save_tasks
from wfdsl.workers.pool import Pool

from .toys import tasks

POOL = """
[pool]
name = "toys"
[[pool.workers]]
name = "ann"
provider = "scripted"
options = { replies = ["nothing"], repeat = true }
[[pool.workers]]
name = "bob"
provider = "scripted"
options = { replies = ["red"], repeat = true }
"""


def test_costs_are_kept_beside_those_of_earlier_sessions(tmp_path: Path) -> None:
    write_fit_costs(tmp_path, {"a": FitCost(6, 90, 0.25), "b": FitCost(1, 2, None)})
    write_fit_costs(tmp_path, {"c": FitCost(3, 4, 0.5)})
    write_fit_costs(tmp_path, {})

    costs = read_fit_costs(tmp_path)

    assert costs == {"a": FitCost(6, 90, 0.25), "b": FitCost(1, 2, None), "c": FitCost(3, 4, 0.5)}
    assert fit_cost_table(costs)[1][:2] == [["a", "6", "90", "$0.25"], ["b", "1", "2", "-"]]


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": {"cost": 1}}', '{"a": 3}'])
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)

    with pytest.raises(UsageError, match=FILE):
        read_fit_costs(tmp_path)


def test_an_evaluation_reports_learning_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "home"))
    (tmp_path / "pool.toml").write_text(POOL)
    save_tasks(tmp_path / "learn.jsonl", tasks(4))
    save_tasks(tmp_path / "ask.jsonl", tasks(3, kinds=("red",)))
    name = "best-worker-router:validation=learn.jsonl"
    asked = ["--policy", name, "--tasks", "ask.jsonl", "--pool", "pool.toml", "--out", "out", "--no-plots"]

    foreseen = main([*asked, "--dry-run"])
    estimate = capsys.readouterr().out
    code = main(asked)

    assert (foreseen, code) == (0, 0)
    assert f"{name}: 3 trials, 3 calls and at most 8 to fit, cost not known" in estimate
    row = f"| {name} | 8 |"
    assert row in capsys.readouterr().out
    assert row in (tmp_path / "out/summary.md").read_text()
    [trial] = {(trial.calls, trial.outcome) for trial in read_trials(tmp_path / "out").values()}
    assert trial == (1, "right")


def test_a_conductor_costs_what_its_training_has_cost() -> None:
    policies = policies_of(["gym/seven", "worker:0"], Pool.load("gym/seven"))

    costs = fit_costs(policies)

    assert list(costs) == ["gym/seven"]
    assert costs["gym/seven"].calls > 10_000


def test_a_damaged_cost_of_a_training_is_named(tmp_path: Path) -> None:
    (tmp_path / "training_cost.json").write_text("{}]", encoding="utf-8")
    policy: Any = SimpleNamespace(entry=SimpleNamespace(model=str(tmp_path)))

    with pytest.raises(UsageError, match=r"training_cost\.json"):
        fit_costs({"mine": policy})
