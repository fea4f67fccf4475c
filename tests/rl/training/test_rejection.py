"""The generic path of a language model: SFT on workflows that did well, with adapters, and then rewards."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

for package in ("torch", "transformers", "datasets", "trl", "peft"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

from tests.rl.training.random_model import make_model, make_tokenizer  # noqa: E402
from tests.rl.training.test_training_interrupted import counting  # noqa: E402
from tests.rl.training.toy import SKILL, TRAIN, a_pool, metrics, same, samples, with_stage  # noqa: E402
from wfdsl.api import analyze  # noqa: E402
from wfdsl_rl.cli.train import main  # noqa: E402
from wfdsl_rl.training.checkpoints import completions_of, ends_of  # noqa: E402
from wfdsl_rl.training.config import LoraConfig, SftStage  # noqa: E402
from wfdsl_rl.training.data import ROWS, rejection_sampled  # noqa: E402
from wfdsl_rl.training.pipeline import run_pipeline  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl_rl.training.plan import Setup

pytestmark = pytest.mark.slow

SFT = SftStage(
    kind="sft", rows="random", max_steps=4, prompts_per_step=8, learning_rate=1e-2, candidates=6, kept=0.5, save_steps=2
)
NO_MODEL = (None, None)


def generic(trained: Setup, out: Path, *, sft: SftStage = SFT, **train: Any) -> Setup:
    """The small world, from a model that can write."""
    stages = {**TRAIN.stages, "sft": sft}
    changed = {"stages": stages, "model": str(trained.folder("sft") / "final"), "prefix_cache": True, **train}
    return replace(trained, out=out, train=replace(TRAIN, **changed), max_steps=2)


def test_what_is_learned_did_best_on_its_question(trained: Setup, tmp_path: Path) -> None:
    setup = generic(trained, tmp_path)
    kinds = {task.id: task.kind for task in setup.tasks}

    rows = rejection_sampled(setup, "sft", NO_MODEL)

    assert len(rows) == 4 * 8
    assert [len(batch) for batch in samples(setup.folder("sft") / "samples").values()] == [64 * 6]
    assert len({json.dumps(row["prompt"]) for row in rows}) > len(rows) / 2
    able, gains = 0, [row["gain"] for row in rows]
    for row in rows:
        workflow = analyze(row["completion"][0]["content"], pool=setup.pool, max_steps=2).raise_for_errors().workflow
        assert workflow is not None
        able += SKILL[kinds[row["task"]]][int(workflow[-1].worker)] > 0.5
    assert min(gains) > 0
    assert able > 0.8 * len(rows)  # a third of random workflows end with the able worker


def test_workflows_are_run_and_chosen_once(trained: Setup, tmp_path: Path) -> None:
    asked: list[str] = []
    setup = replace(generic(trained, tmp_path), pool=a_pool(counting(asked)))
    chosen = rejection_sampled(setup, "sft", NO_MODEL)
    calls = len(asked)

    again = rejection_sampled(setup, "sft", NO_MODEL)
    (tmp_path / "sft" / ROWS).unlink()

    assert again == chosen == rejection_sampled(setup, "sft", NO_MODEL)
    assert 64 * 6 <= calls <= 64 * 6 * 2
    assert len(asked) == 2 * calls


def test_the_model_can_write_the_candidates_itself(trained: Setup, tmp_path: Path) -> None:
    sft = replace(SFT, rows="policy", candidates=4)
    setup = generic(trained, tmp_path, sft=sft)
    able, kinds = 0, {task.id: task.kind for task in setup.tasks}

    run_pipeline(setup, ("sft",))

    rows = [json.loads(line) for line in (setup.folder("sft") / ROWS).read_text("utf-8").splitlines()]
    assert len(rows) == sft.max_steps * sft.batch_size
    for row in rows:
        text = row["completion"][0]["content"]
        workflow = analyze(text, pool=setup.pool, max_steps=2).raise_for_errors().workflow
        assert workflow is not None
        assert text.split()[0] in SKILL  # the thought that only the model writes
        able += SKILL[kinds[row["task"]]][int(workflow[-1].worker)] > 0.5
    assert able > 0.6 * len(rows)


def test_a_completion_ends_with_the_first_end_of_its_model() -> None:
    tokenizer = make_tokenizer(["What is 2 times 3?"], vocabulary=300)
    network = make_model(tokenizer, width=16, inner=16, layers=1, heads=2, seed=0)
    network.generation_config.eos_token_id = list(range(0, len(tokenizer), 3))
    chats = [[{"role": "user", "content": text}] for text in ("What is 2 times 3?", "3?")]
    ends = {*ends_of(tokenizer, network)}

    prompts, written, _ = completions_of(tokenizer, network, chats, 16, temperature=1.0, longest=5)

    assert prompts == tokenizer.apply_chat_template(chats, add_generation_prompt=True, return_dict=False)
    assert all(not ends & {*ids[:-1]} and (len(ids) == 5 or ids[-1] in ends) for ids in written)


def test_adapters_learn_from_workflows_and_then_from_rewards_and_are_exported(trained: Setup, tmp_path: Path) -> None:
    setup = generic(trained, tmp_path, lora=LoraConfig(r=4, lora_alpha=8))
    setup = replace(setup, train=with_stage(setup.train, "base", max_steps=2))

    final = run_pipeline(setup, ("sft", "base"))

    assert [line["stage"] for line in metrics(setup) if "train_loss" in line and line["stage"] != "base"] == ["sft"]
    assert not (setup.folder("sft") / "final" / "adapter_config.json").exists()
    assert not same(setup.folder("sft") / "final", trained.folder("sft") / "final")
    assert not same(final, setup.folder("sft") / "final")
    checkpoint, whole = setup.folder("base") / "checkpoint-2", tmp_path / "whole"
    assert (checkpoint / "adapter_config.json").exists()
    assert main(["export", str(checkpoint), "-o", str(whole)]) == 0
    assert not (whole / "adapter_config.json").exists()
    assert same(whole, final)
    onwards = with_stage(replace(setup.train, model=str(checkpoint), lora=None), "base", learning_rate=1e-2)
    assert not same(run_pipeline(replace(setup, out=tmp_path / "onwards", train=onwards), ("base",)), final)


def test_an_interrupted_sft_stage_of_few_rows_comes_to_its_last_step_and_the_same_weights(
    trained: Setup, tmp_path: Path
) -> None:
    whole = generic(trained, tmp_path / "whole", lora=LoraConfig(r=4, lora_alpha=8))
    rejection_sampled(whole, "sft", NO_MODEL)
    file = whole.folder("sft") / ROWS
    file.write_text("".join(file.read_text("utf-8").splitlines(keepends=True)[:20]), "utf-8")  # others were not graded
    run_pipeline(whole, ("sft",), resume=True)
    begun = replace(whole, out=tmp_path / "begun")
    shutil.copytree(whole.out, begun.out)
    for name in ("checkpoint-4", "final"):
        shutil.rmtree(begun.folder("sft") / name)
    said: list[str] = []

    run_pipeline(replace(begun, say=said.append), ("sft",), resume=True)

    assert any("resumes from" in line and "checkpoint-2" in line for line in said)
    assert same(begun.folder("sft") / "final", whole.folder("sft") / "final")
    assert [line["step"] for line in metrics(begun) if "train_loss" in line][-1] == SFT.max_steps
