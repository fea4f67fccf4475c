"""Presets, settings and what the command says, none of which needs torch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from wfdsl.config import to_table
from wfdsl.errors import UsageError
from wfdsl_rl.cli.train import main
from wfdsl_rl.cli.train_output import estimate_text
from wfdsl_rl.training.config import TrainConfig
from wfdsl_rl.training.estimate import Estimate
from wfdsl_rl.training.plan import preset_names, read_plan

if TYPE_CHECKING:
    from pathlib import Path


def test_the_paper_preset_has_the_papers_numbers() -> None:
    """Source: arXiv 2512.04388, section 4."""
    plan = read_plan("paper-7b")
    base = plan.train.base

    assert (base.iterations, base.prompts_per_step, base.group_size, base.batch_size) == (200, 4, 64, 256)
    assert (base.learning_rate, base.schedule, base.warmup_ratio, base.adam_beta2) == (1e-6, "cosine", 0.03, 0.999)
    assert (base.epsilon, base.beta, base.loss, base.scale_rewards) == (0.2, 0.0, "grpo", "group")
    assert (base.temperature, base.max_completion_tokens) == (1.0, 1024)
    assert to_table(plan.train.reward) == {"invalid": 0.0, "wrong": 0.5, "right": 1.0, "step": 0.0}
    assert (plan.train.task_count, plan.max_steps, plan.train.stages()) == (960, 5, ("base",))
    assert (plan.train.recursion.forced, plan.train.recursion.discount) == (0.5, 0.25)
    assert plan.prompt.examples.name == "out-of-distribution"
    assert len(plan.prompt.examples.examples) == 4
    assert len(plan.pool) == 7


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_whole(name: str) -> None:
    plan = read_plan(name)

    assert plan.train.stages()
    assert json.loads(json.dumps(plan.resolved()))["train"]["tasks"] == plan.train.tasks


def test_presets_are_those_that_the_documentation_names() -> None:
    assert preset_names() == ("gym-tiny", "paper-3b", "paper-7b", "qwen2.5-0.5b-lora", "smollm2-135m")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.base.group_siz=8", "train.base.group_siz: extra inputs are not permitted"),
        ("train.base.group_size=1", "train.base.group_size: input should be greater than 1"),
        ("train.base.micro_batch=7", "micro_batch 7 does not divide the 256 completions"),
        ("train.base.loss=3", "train.base.loss: input should be a valid string"),
        ("trane.seed=1", 'there is no table "trane"'),
        ("train.base.loss=nonsense", "train.base.loss: there is no loss 'nonsense'; TRL has grpo, "),
        (
            "train.tiny.reasoning_prefix=none",
            "train.tiny.replay.base: without an SFT stage that teaches a reasoning prefix",
        ),
        ("train.ablation.worker=9", "train.ablation.worker: the pool gym/paper7 has no worker 9; it has 0 to 6"),
        ("train.tiny.never_swapped=[0, 9]", "never_swapped: the pool gym/paper7 has no worker 9"),
        ('train.tiny.lengths={"7"=1.0}', "train.tiny.lengths: give weights by number of steps, 1 to 5"),
        ('train.tiny.lengths={"1"=0.0}', "train.tiny.lengths: give weights by number of steps, 1 to 5"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(setting: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["gym-tiny", "--dry-run", "--set", setting])

    assert code == 2
    assert message in capsys.readouterr().err


def test_more_workers_than_there_are_cannot_be_offered(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ("train.pools.iterations=3", "train.pools.kl_free_steps=0", "train.pools.pick=[3, 9]")

    code = main(["gym-tiny", "--dry-run", *(word for setting in settings for word in ("--set", setting))])

    assert code == 2
    assert "train.pools.pick: of 7 workers, 1 to 7 can be offered" in capsys.readouterr().err


def test_without_sft_no_prefix_can_be_forced(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["paper-7b", "--dry-run", "--set", 'train.tiny.forced_prefix=["base"]'])

    assert code == 2
    assert "train.tiny.forced_prefix: without an SFT stage that teaches a reasoning prefix" in capsys.readouterr().err


def test_a_stage_without_steps_cannot_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["smollm2-135m", "--dry-run", "--stage", "pools"])

    assert code == 2
    assert "train.pools.iterations is 0, so the stage pools has nothing to do" in capsys.readouterr().err


@pytest.mark.parametrize(("gib", "shown"), [(0.5, "0.50 GiB"), (113.254, "113.25 GiB"), (0.00381, "3.9 MiB")])
def test_memory_is_shown_in_a_unit_that_says_something(gib: float, shown: str) -> None:
    estimate = Estimate({}, ("base",), "", 1, 1, 3, 0.0, gib)

    assert f"memory       {shown} for weights" in estimate_text(estimate)


def test_a_dry_run_shows_a_prompt_and_what_it_would_need(capsys: pytest.CaptureFixture[str]) -> None:
    shorter = ["--set", "train.base.iterations=10", "--set", "train.base.kl_free_steps=0"]
    code = main(["gym-tiny", "--dry-run", "--stage", "base", "--json", *shorter])

    shown = json.loads(capsys.readouterr().out)
    assert code == 0
    assert shown["completions"] == 10 * 32 * 8
    assert shown["runs"] == 8 * shown["completions"] + 2 * 256  # executions; evaluations before and behind the stage
    assert shown["calls"] == 3 * shown["runs"]
    assert shown["usd"] > 0
    assert 0 < shown["memory_gib"] < 0.1
    assert "0: math" in shown["prompt"]


def test_a_dry_run_counts_the_first_rounds_that_second_ones_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def runs(*words: str) -> int:
        assert main(["gym-tiny", "--dry-run", "--json", "--set", "train.eval_count=0", *words]) == 0
        return int(json.loads(capsys.readouterr().out)["runs"])

    refreshed = ("--stage", "recursion", "--set", "train.recursion.executions_per_completion=1")
    recursion = (*refreshed, "--set", "train.tiny.replay.recursion.steps=0")
    unwarmed = (*recursion, "--set", "train.tiny.recursion_sft.steps=0")

    assert runs("--stage", "sft") == 1500 * 32 // 4
    assert runs("--stage", "sft", "--set", "train.recursion.iterations=0") == 0
    assert runs(*unwarmed) == 30 * 256 + 30 * 128
    assert runs(*unwarmed, "--set", "train.recursion.forced=0") == 30 * 256
    assert runs(*recursion) - runs(*unwarmed) == 200 * 32 // 2
    assert runs(*refreshed) - runs(*recursion) == 100 * 32 // 2


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--set", "train.tiny.reasoning_prefix=none"], "train.tiny.replay.base: without an SFT stage"),
        (["--set", "train.lora={}"], "train.tiny.replay: it trains all weights"),
    ],
)
def test_what_cannot_be_refreshed_is_said(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gym-tiny", "--dry-run", "--stage", "base", *words]) == 2

    assert problem in capsys.readouterr().err


def test_a_dry_run_of_the_paper_counts_its_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mix = tmp_path / "mix.jsonl"
    mix.write_text('{"id": "a", "question": "What is 2 + 2?", "gold": "4", "kind": "math"}\n', encoding="utf-8")

    code = main(["paper-7b", "--dry-run", "--set", f"train.tasks={mix}"])

    out = capsys.readouterr().out
    assert code == 0
    assert "calls        about 153,600 (3 steps per workflow)" in out
    assert "What is 2 + 2?" in out
    assert "Nothing was started." in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no experiment given"),
        (["paper-7b", "--dry-run"], "train.tasks: mix.jsonl: there is no such file; write it with wfdsl-data select"),
        (["no-such-preset"], "there is no preset and no file 'no-such-preset'; presets are gym-tiny"),
        (["--resume", "nowhere"], "nowhere does not hold a training"),
        (["gym-tiny", "--resume", "nowhere"], "remove the experiment"),
        (["export", "nowhere", "-o", "out"], "nowhere does not hold a model"),
    ],
)
def test_what_cannot_be_done_is_said_with_its_exit_code(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if arguments[:1] == ["export"]:
        pytest.importorskip("transformers", reason="needs transformers, in the extra rl")
    monkeypatch.chdir(tmp_path)

    code = main(arguments)

    assert code == 2
    assert message in capsys.readouterr().err


def test_a_file_without_the_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[pool]\nuse = "local"\n', encoding="utf-8")

    with pytest.raises(UsageError, match=r"the table \[train\] is missing"):
        read_plan(str(path))


def test_stages_without_steps_are_left_out() -> None:
    assert TrainConfig(model="m", tasks="x").stages() == ("base",)
    settings = TrainConfig.model_validate(
        {"model": "m", "tasks": "x", "sft": {"steps": 1}, "recursion": {"iterations": 2}}
    )
    assert settings.stages() == ("sft", "base", "recursion")
