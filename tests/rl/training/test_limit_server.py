"""A training whose calls are drawn from a reward server, within the server's budget and its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

from tests.rl.engines.conftest import Provider, RewardProcess, completion, get, write_files
from wfdsl_rl.cli.train import main
from wfdsl_rl.reward import make_reward
from wfdsl_rl.training import pipeline

pytestmark = pytest.mark.slow
TRAINING = """
[pool]
use = "pool.toml"

[train]
model = "none"
tasks = "tasks.jsonl"
task_count = 2
eval_count = 0

[train.base]
iterations = 1
"""


@pytest.mark.parametrize(("own", "made"), [([], 4), (["--set", "budget.calls=3"], 3)])
def test_a_training_draws_its_calls_from_the_server(
    own: list[str], made: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    provider = Provider()
    write_files(tmp_path, provider.url)
    (tmp_path / "train.toml").write_text(TRAINING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(pipeline, "run_pipeline", score_two)
    server = RewardProcess(tmp_path, "--port", "0")
    try:
        code = main(["train.toml", "--stage", "base", "--limit-server", server.url, *own])
        ended = get(f"{server.url}/v1/leases").json()["ended"]
    finally:
        server.stop()
        provider.close()

    assert code == (4 if own else 0), capsys.readouterr().err
    assert ended == {"settled": made}
    assert len(provider.asked) == made


def score_two(setup: Any, *_: Any, **__: Any) -> str:
    """What a training does with its workers, without the model."""
    with make_reward(setup.pool, setup.tasks, options=setup.options) as reward:
        reward.sync([completion("Plan it.", "Solve it.")] * 2, ["t0", "t1"])
    return "scored"
