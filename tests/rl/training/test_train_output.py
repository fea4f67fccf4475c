"""What a training tells before it starts (dry run), and while it runs."""

from __future__ import annotations

import heapq
import json
import math
import random
from importlib.metadata import requires
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from wfdsl.errors import UsageError
from wfdsl_rl.cli.train import main
from wfdsl_rl.cli.train_output import Progress, figures
from wfdsl_rl.training import estimate
from wfdsl_rl.training.config import GrpoStage, TrainConfig, share_of
from wfdsl_rl.training.estimate import LATENCY_S, LATENCY_SPREAD

TRAIN = TrainConfig(model="new", tasks="x", stages={"base": GrpoStage(max_steps=100)})


def entry(step: int, **more: float) -> dict[str, object]:
    return {"stage": "base", "step": step, "reward": 0.5, "valid": 0.9, "accuracy": 0.25, "steps": 2.0, **more}


def test_plain_lines_say_how_it_goes_what_it_cost_and_how_long_it_will_take(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = count()

    progress = Progress(TRAIN, ("base",), clock=lambda: float(next(seconds)) * 3)
    for step in range(1, 12):
        progress.on_metrics(entry(step, usd=0.25))
    progress.on_metrics(entry(20))

    line, unpriced = capsys.readouterr().err.splitlines()
    assert "$" not in unpriced
    assert line.startswith("base 10/100: reward 0.500  valid 0.900  accuracy 0.250  steps 2.000")
    assert "cost $2.50" in line
    # Entries are heard every 3 seconds, and the tenth asks the clock once more; 90 iterations are left.
    assert line.endswith("left 0:04:30")


def test_a_training_says_how_many_workflows_it_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = iter([0.0, 30.0, 61.0, 61.0, 90.0])

    progress = Progress(TRAIN, ("base",), clock=lambda: next(seconds))
    for left in (200, 3, 2):
        progress.on_wait(left, 256)

    assert capsys.readouterr().err == "waiting for 3 of 256\n"


def test_a_training_ends_with_its_figures(tmp_path: Path) -> None:
    lines = [entry(step, reward=step / 100, accuracy=step / 100, cut=0.0, usd=0.5) for step in range(1, 41)]
    for stage, entries in (("sft", [{"step": 1}]), ("base", lines)):
        (tmp_path / stage).mkdir()
        (tmp_path / stage / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in entries))

    (line,) = figures(tmp_path, ("sft", "base"))

    for part in ("base: 40", "accuracy 0.055 -> 0.355", "$20.00"):
        assert part in line


@pytest.fixture
def dry_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The dry run of paper-7b with settings, as JSON, in an empty folder and on a machine without GPUs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(estimate, "_found_gpus", lambda: 0)

    def run(*settings: str) -> dict[str, Any]:
        pairs = [word for setting in settings for word in ("--set", setting)]
        assert main(["paper-7b", *pairs, "--dry-run", "--json"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return run


def test_processes_that_cannot_share_completions_are_refused_as_at_a_start(
    dry_run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["paper-7b", "--dry-run", "--set", "train.processes=3"]) == 2
    said = capsys.readouterr().err
    assert "3 processes cannot share 256 completions evenly" in said

    assert share_of(256, 8, 2) == 128
    with pytest.raises(UsageError, match="512 processes cannot share 256 completions evenly"):
        share_of(256, 8, 512)
    pytest.importorskip("trl", reason="needs trl, in the extra rl")
    from wfdsl_rl.training.stages import grpo_config

    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(UsageError) as refused:
        grpo_config(GrpoStage(per_device_train_batch_size=8), TRAIN, Path("x"))
    assert str(refused.value) in said


def test_what_is_missing_says_what_to_do(dry_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "find_spec", lambda _: None)
    for variable in ("OPENAI_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(variable, raising=False)

    lines = dry_run("train.processes=1")["missing"]

    for begin in ("packages: torch", "package: vllm; pip install", "train.fsdp: one process", "GPUs: 1", "model: Qwen"):
        assert any(line.startswith(begin) for line in lines)
    server = dry_run("train.trl.vllm_mode=server")["missing"]  # has a GPU of its own
    assert any(line.startswith("GPUs: 3") for line in server)
    (key,) = (line for line in lines if "OPENAI_API_KEY" in line)
    assert key.startswith('worker "gpt-5" needs a key: set the environment variable')


def test_the_version_of_vllm_is_the_one_that_trl_supports() -> None:
    pytest.importorskip("trl", reason="needs trl, in the extra rl")
    (wanted,) = (each for each in requires("trl") or () if each.startswith("vllm"))

    asked = estimate._VLLM.strip("'").removeprefix("vllm").split(",")
    assert {*asked} == {*wanted.partition(";")[0].removeprefix("vllm").strip().split(",")}


@pytest.mark.parametrize(("concurrency", "max_steps"), [(256, 5), (64, 5), (256, 2)])
def test_the_wait_is_that_for_the_slowest_workflow(dry_run: Any, concurrency: int, max_steps: int) -> None:
    """Within 15 % of a simulation of a thousand iterations, second by second."""
    base = dry_run(f"train.concurrency={concurrency}", f"conductor.max_steps={max_steps}")["times"][0]
    chance, calls, total = random.Random(1), min(3, max_steps), 0.0
    mean = math.log(LATENCY_S) - LATENCY_SPREAD**2 / 2

    for _ in range(1000):
        waiting = [sum(chance.lognormvariate(mean, LATENCY_SPREAD) for _ in range(calls)) for _ in range(256)]
        running: list[float] = []
        now = 0.0
        while waiting or running:
            while waiting and len(running) < concurrency:
                heapq.heappush(running, now + waiting.pop())
            now = heapq.heappop(running)
        total += now

    assert base["calls"] == 256 * calls
    assert base["waiting_s"] == pytest.approx(total / 1000, rel=0.15)


def test_limits_per_minute_take_time_and_no_step_waits_longer_than_its_deadline(dry_run: Any) -> None:
    about = 'provider = "openai"\nmodel = "a"\nbase_url = "http://127.0.0.1:9"\n'
    limits = {"a": "requests_per_minute = 48", "b": "tokens_per_minute = 57600"}  # 48 calls of 1,200 tokens
    workers = (f'[[pool.workers]]\nname = "{name}"\n{about}limits = {{ {each} }}\n' for name, each in limits.items())
    Path("pool.toml").write_text("".join(workers), encoding="utf-8")

    sft = "train.stages.sft={kind='sft', rows='random', max_steps=16, prompts_per_step=16}"  # 4 batches of questions
    settings = ("pool.use=pool.toml", "train.stages.pools.pick=[]", "train.stages.recursion.pick=[]", sft)
    limited, late = (
        dry_run(*settings, *more)["times"] for more in (["train.concurrency=9999999999"], ["train.deadline_s=90"])
    )

    assert (limited[0]["waiting_s"], late[0]["waiting_s"], late[-1]["waiting_s"]) == (768 / 96 * 60, 90, 4 * 90)
