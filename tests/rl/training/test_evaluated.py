"""A training's model as a policy of `wfdsl eval`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

from tests.evaluation.toys import wfdsl_eval as main  # noqa: E402
from tests.rl.training.toy import EVAL_TASKS, a_pool  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl_rl.training.plan import Setup

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*_checkpointing.*deprecated:FutureWarning"),  # trl's use of transformers
]

WORKER = """
[[pool.workers]]
name = "{name}"
provider = "scripted"
model = "scripted"
description = "{description}"
options = {{ replies = ["A"], repeat = true }}
"""


def test_the_model_of_a_stage_is_evaluated_by_its_folder(
    trained: Setup, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "home"))
    pool, tasks, final = tmp_path / "pool.toml", tmp_path / "tasks.jsonl", str(trained.folder("base") / "final")
    workers = [WORKER.format(name=each.name, description=each.description) for each in a_pool()]
    pool.write_text("".join(workers), encoding="utf-8")
    rows = [{"question": each.question, "gold": each.gold, "kind": each.kind} for each in EVAL_TASKS[:6]]
    tasks.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    code = main(
        ["--policy", final, "--tasks", str(tasks), "--pool", str(pool), "--out", str(tmp_path / "out"), "--no-plots"]
    )

    assert code == 0
    assert final in capsys.readouterr().out
