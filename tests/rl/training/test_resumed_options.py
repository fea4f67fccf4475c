"""What may change before a training is resumed, and what may not; and what a spent budget says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

from tests.rl.engines.conftest import completion  # noqa: E402
from wfdsl_rl.cli.train import main  # noqa: E402
from wfdsl_rl.reward import Reward  # noqa: E402
from wfdsl_rl.scoring import NoScore  # noqa: E402
from wfdsl_rl.training import pipeline  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EXPERIMENT = """
[[pool.workers]]
name = "four"
provider = "scripted"
options = { replies = ["4"], repeat = true }
limits = { concurrency = 2 }
max_tokens = 5
prices = { input = 1.0, output = 1.0 }

[budget]
calls = 1

[run]
concurrency = 8

[train]
model = "model"
tasks = "tasks.jsonl"
reward_function = "mine.py:score"

[train.stages.sft]
kind = "sft"
rows = "rows.jsonl"

[train.stages.base]
max_steps = 1
"""


def task(number: int, question: str = "What is 2 + 2?") -> str:
    return json.dumps({"id": f"t{number}", "question": question, "gold": "4", "kind": "math"}) + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a training in `out`, of whose stages only the options are written."""
    (tmp_path / "train.toml").write_text(EXPERIMENT, encoding="utf-8")
    (tmp_path / "tasks.jsonl").write_text(task(1) + task(2), encoding="utf-8")
    (tmp_path / "model").mkdir()
    for name, text in (("rows.jsonl", "4"), ("mine.py", "1.0"), ("model/model.safetensors", "seed 0")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pipeline, "run_pipeline", only_write)
    assert main(["train.toml", "--out", "out"]) == 0
    return tmp_path


def only_write(setup: Any, *_: Any, resolved: Any, **__: Any) -> str:
    setup.out.mkdir(exist_ok=True)
    for stage in ("sft", "base"):
        (setup.out / stage).mkdir(exist_ok=True)
        (setup.out / stage / "metrics.jsonl").touch()
    (setup.out / "resolved.json").write_text(json.dumps(resolved), encoding="utf-8")
    return "written"


def in_file(name: str, old: str, new: str) -> Callable[[Path], None]:
    """A change of a file of the experiment."""

    def change(folder: Path) -> None:
        text = (folder / name).read_text("utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")

    return change


def test_a_larger_budget_and_other_limits_hold_when_a_training_is_resumed(folder: Path) -> None:
    in_file("train.toml", "calls = 1", "calls = 100")(folder)
    in_file("train.toml", "limits = { concurrency = 2 }", "limits = { requests_per_minute = 9 }")(folder)
    in_file("train.toml", "concurrency = 8", "timeout_s = 7.0")(folder)

    assert main(["--resume", "out"]) == 0

    resolved = json.loads((folder / "out/resolved.json").read_text("utf-8"))
    assert resolved["budget"]["calls"] == 100
    assert resolved["pool"]["workers"][0]["limits"]["requests_per_minute"] == 9
    assert resolved["run"]["timeout_s"] == 7.0


def test_a_budget_that_is_set_when_a_training_is_resumed_holds_from_then_on(folder: Path) -> None:
    assert main(["--resume", "out", "--set", "budget.calls=100"]) == 0
    assert main(["--resume", "out"]) == 0

    assert json.loads((folder / "out/resolved.json").read_text("utf-8"))["budget"]["calls"] == 100


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (in_file("train.toml", 'replies = ["4"]', 'replies = ["5"]'), "pool"),
        (in_file("train.toml", "[run]", "[run]\nrun_dead_steps = true"), "run"),
        (in_file("train.toml", "max_steps = 1", "max_steps = 2"), "train"),
        (in_file("tasks.jsonl", "What is 2 + 2?", "What is 1 + 3?"), "tasks"),
        (in_file("tasks.jsonl", task(2), ""), "tasks"),
        (in_file("rows.jsonl", "4", "5"), "rows.jsonl"),
        (in_file("mine.py", "1.0", "2.0"), "mine.py"),
        (in_file("model/model.safetensors", "seed 0", "seed 1"), "model/model.safetensors"),
    ],
)
def test_what_changes_the_result_is_named_and_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], None], named: str
) -> None:
    before = (folder / "out/resolved.json").read_bytes()
    change(folder)

    assert main(["--resume", "out"]) == 2

    assert f"resolved.json: {named} changed since the training began" in capsys.readouterr().err
    assert (folder / "out/resolved.json").read_bytes() == before


def test_another_number_of_processes_or_setting_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--resume", "out", "--set", "train.seed=1"]) == 2
    in_file("out/resolved.json", '"processes": 1', '"processes": 2')(folder)
    assert main(["--resume", "out"]) == main(["train.toml", "--out", "b", "--set", "train.processes=2"]) == 2

    another, resumed, asked = capsys.readouterr().err.splitlines()
    assert "resolved.json: train changed since the training began" in another
    assert "processes changed since the training began" in resumed
    assert "train.processes is 2, and 1 was started" in asked


@pytest.mark.parametrize(
    ("limit", "code", "more"),
    [("calls = 1", 4, " --set budget.calls=N"), ("usd = 1e-9", 4, " --set budget.usd=N"), ("calls = 9", 3, "")],
)
def test_a_spent_budget_and_an_outage_name_the_command_that_continues_the_training(
    limit: str, code: int, more: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_file("train.toml", "calls = 1", limit)(folder)

    def score_two(setup: Any, *_: Any, **__: Any) -> None:
        with Reward(setup.pool, setup.tasks, options=setup.options) as reward:
            reward.sync([completion("Solve it.")] * 2, ["t1", "t2"])
        raise NoScore("the workers are down")

    monkeypatch.setattr(pipeline, "run_pipeline", score_two)

    assert main(["--resume", "out"]) == code
    assert capsys.readouterr().err.endswith(f": wfdsl-train --resume out{more}\n")
