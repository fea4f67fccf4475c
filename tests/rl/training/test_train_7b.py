"""The commands of the page about the 7B training, on a model of the same architecture with two layers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

from tests.forked import TRAINING, ended  # noqa: E402
from tests.rl.training.toy import PROMPT, TASKS, write_model  # noqa: E402
from wfdsl_rl.cli.train import main  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_the_three_stages_are_trained_resumed_and_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "model")
    for name in ("mix", "recursion"):
        (tmp_path / f"{name}.jsonl").write_text("".join(task.model_dump_json() + "\n" for task in TASKS[:12]))
    (tmp_path / "pool.toml").write_text(
        "".join(
            f'[[pool.workers]]\nname = "w{number}"\nprovider = "scripted"\n'
            'options = { replies = ["4"], repeat = true }\n'
            for number in range(7)
        )
    )
    small = {"max_steps": 1, "prompts_per_step": 2, "num_generations": 4, "max_completion_length": 8}
    settings = [
        *("pool.use=pool.toml", f"conductor.prompt={PROMPT}", "conductor.examples=none", "budget.usd=1500"),
        *("train.model=model", "train.processes=1", "train.fsdp=off", "train.trl.use_vllm=false"),
        *("train.trl.activation_checkpointing=false",),
        *(
            f"train.stages.{name}.{key}={value}"
            for name in ("base", "pools", "recursion")
            for key, value in small.items()
        ),
    ]
    words = [word for setting in settings for word in ("--set", setting)]

    assert main(["paper-7b", "--dry-run", *words]) == 0
    assert main(["paper-7b", "--stage", "base", "--out", "runs/trial", *words]) == 0
    assert main(["paper-7b", "--out", "runs/7b", *words]) == 0
    assert main(["--resume", "runs/7b"]) == 0
    assert main(["export", "runs/7b", "-o", "conductor-7b"]) == 0

    assert [path.parent.parent.name for path in sorted((tmp_path / "runs/7b").glob("*/final/done.json"))] == [
        "base",
        "pools",
        "recursion",
    ]
    assert "base -> pools -> recursion" in (tmp_path / "conductor-7b/README.md").read_text("utf-8")


def test_the_check_of_a_gpu_runs_with_a_tiny_model(tmp_path: Path) -> None:
    done = ended("-m", "tests.gpu", "--tiny", "--out", "report.json", folder=tmp_path, imported=TRAINING)

    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "report.json").read_text("utf-8"))
    for run in ("grpo", "fsdp"):
        assert (found[run]["exit_code"], found[run]["all_weights_in_32_bits"]) == (0, True)
    assert found["sum_of_one"] == 1.0
