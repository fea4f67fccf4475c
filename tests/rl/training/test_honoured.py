"""Every key that a training accepts has an effect, and what it cannot honour is refused before anything is paid for."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl.errors import UsageError
from wfdsl_rl.cli.train import main
from wfdsl_rl.scoring import Ablation
from wfdsl_rl.training.data import make_rows
from wfdsl_rl.training.plan import read_plan

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl_rl.training.plan import Setup

PRESET = "smollm2-135m"


def setup_of(*settings: str) -> Setup:
    return read_plan(PRESET, ["train.task_count=4", *settings]).with_tasks(["base"])


def rows_of(setup: Setup) -> list[dict[str, Any]]:
    return make_rows(setup.reward("base"), setup.tasks, count=2, seed=0)


def test_workers_that_are_left_out_are_neither_listed_nor_paid() -> None:
    whole = setup_of()

    without = setup_of(f'conductor.without=["{whole.pool.entry(2).name}"]')

    assert set(whole.pool.indices) - set(without.pool.indices) == {2}
    assert {tuple(row["true"]) for row in rows_of(without)} == {tuple(without.pool.indices)}
    with pytest.raises(UsageError, match="has no worker 2; it has 0, 1, 3"):
        replace(without.train, ablation=Ablation(worker=2)).require_feasible(without.pool, ["base"])


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (("conductor.access=binary",), "access_binary"),
        ((), "access_lists"),
        (("run.question_for=first",), "question_for_first"),
    ],
)
def test_prompts_say_the_rules_of_the_training(settings: tuple[str, ...], text: str) -> None:
    setup = setup_of("conductor.prompt=paper", *settings)

    assert all(setup.prompt.texts[text] in row["prompt"][-1]["content"] for row in rows_of(setup))


@pytest.mark.parametrize(
    "setting",
    [
        "learning_rat=1",
        "epsilon=yes",
        "loss_type=foo",
        "use_vllm=no",
        "vllm_gpu_memory_utilization=abc",
        "temperature=-1",
        "optim=adamw_8bit",
        "optim=adamx",
        "report_to=nonsense",
    ],
)
def test_a_dry_run_refuses_arguments_that_trl_does_not_take_or_cannot_run(
    setting: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("trl", reason="needs trl, in the extra rl")
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)

    assert main([PRESET, "--dry-run", "--set", f"train.trl.{setting}"]) == 2

    said = capsys.readouterr().err
    assert "train.trl" in said
    assert all(part in said for part in setting.split("=")[1:] if part.isalpha())


def test_the_first_and_the_last_iteration_learn(tmp_path: Path) -> None:
    """A learning rate of 0 would buy an iteration of workflows for nothing."""
    torch = pytest.importorskip("torch", reason="needs torch, in the extra rl")
    pytest.importorskip("trl", reason="needs trl, in the extra rl")
    from transformers import get_scheduler

    from wfdsl_rl.training.stages import grpo_config

    train = read_plan("paper-7b", ["train.trl={}"]).train
    for schedule in ("cosine", "constant", "constant_with_warmup"):
        stage = replace(train.stages["base"], lr_scheduler_type=schedule)
        config = grpo_config(stage, train, tmp_path)
        optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
        scheduler = get_scheduler(
            config.lr_scheduler_type,
            optimizer,
            config.get_warmup_steps(200),
            200,
            scheduler_specific_kwargs=config.lr_scheduler_kwargs,
        )
        rates = []
        for _ in range(200):
            rates.append(scheduler.get_last_lr()[0])
            optimizer.step()
            scheduler.step()

        assert min(rates) > 0
        assert max(rates) == 1.0
        assert rates[0] == (1.0 if schedule == "constant" else pytest.approx(1 / 6))
