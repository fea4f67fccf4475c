"""A training is TRL's: its weights are those of plain TRL with a reward of a few lines, bit by bit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

from datasets import Dataset  # noqa: E402
from trl import GRPOTrainer  # noqa: E402

from tests.rl.training.toy import ANSWERS, TRAIN, a_pool, same, samples, train_stage  # noqa: E402
from wfdsl.api import analyze  # noqa: E402
from wfdsl.interpreter.running import run  # noqa: E402
from wfdsl_rl.training.checkpoints import load_model  # noqa: E402
from wfdsl_rl.training.data import stage_rows  # noqa: E402
from wfdsl_rl.training.stages import grpo_config  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl_rl.training.plan import Setup

pytestmark = pytest.mark.slow


def test_six_iterations_come_to_the_weights_of_plain_trl(trained: Setup, tmp_path: Path) -> None:
    model, tasks, pool = str(trained.folder("sft") / "final"), {task.id: task for task in trained.tasks}, a_pool()
    setup = replace(trained, out=tmp_path / "ours")
    train_stage(setup, "base", model)

    async def reward(completions: list[Any], completion_ids: list[Any], task: list[str], **_: Any) -> list[float]:
        worth = []
        for (message,), ids, name in zip(completions, completion_ids, task, strict=True):
            workflow = analyze(message["content"], pool=pool, max_steps=5).workflow
            if ids[-1] != tokenizer.eos_token_id or workflow is None:
                worth.append(0.0)
                continue
            answer = (await run(workflow, tasks[name].question, pool)).answer
            worth.append(1.0 if answer == ANSWERS[tasks[name].kind][0] else 0.5)
        return worth

    tokenizer, network = load_model(model)
    trainer = GRPOTrainer(
        network,
        reward,
        grpo_config(TRAIN.stages["base"], TRAIN, tmp_path / "plain"),
        Dataset.from_list(stage_rows(setup, "base")),
        processing_class=tokenizer,
    )
    trainer.train()
    trainer.save_model(str(tmp_path / "plain" / "final"))

    kept = [each for batch in samples(setup.folder("base") / "samples").values() for each in batch]
    assert {each["reward"] for each in kept} == {0.0, 0.5, 1.0}
    assert same(setup.folder("base") / "final", tmp_path / "plain" / "final")
