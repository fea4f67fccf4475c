"""Real trainings, of a model so small that each takes seconds."""

from __future__ import annotations

import inspect
import re
import shutil
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402
from trl import GRPOTrainer  # noqa: E402

from tests.evaluation.toys import wfdsl_eval  # noqa: E402
from tests.rl.training.toy import (  # noqa: E402
    BASE,
    TRAIN,
    a_setup,
    copy_until,
    from_warmup,
    metrics,
    same,
    samples,
    train_stage,
    with_stage,
    write_experiment,
)
from wfdsl.errors import UsageError  # noqa: E402
from wfdsl_rl.cli.train import main  # noqa: E402
from wfdsl_rl.training.pipeline import run_pipeline  # noqa: E402
from wfdsl_rl.training.stages import LOSSES  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl_rl.training.plan import Setup

pytestmark = pytest.mark.slow


def test_every_completion_is_kept_with_what_came_of_it(trained: Setup) -> None:
    kept = samples(trained.folder("base") / "samples")

    assert [len(batch) for batch in kept.values()] == [BASE.batch_size] * BASE.max_steps
    assert {each["outcome"] for batch in kept.values() for each in batch} <= {"invalid", "wrong", "right"}
    assert not {"prompt", "prompts"} & {key for name in kept for each in kept[name] for key in each}
    logged = [line["step"] for line in metrics(trained) if line["stage"] == "base" and "reward" in line]
    assert logged == list(range(1, BASE.max_steps + 1))
    assert all(0 <= line["valid"] <= 1 for line in metrics(trained) if "valid" in line)


def test_a_small_model_learns_from_rewards_whom_to_ask(trained: Setup, tmp_path: Path) -> None:
    """Each of three workers knows one kind of question; at first the able one is asked in half of the cases."""
    larger = {"prompts_per_step": 12, "num_generations": 16, "per_device_train_batch_size": None}
    setup = from_warmup(trained, tmp_path, max_steps=20, **larger)

    train_stage(setup, "base", str(trained.folder("sft") / "final"))

    entries = [entry for entry in metrics(setup) if "reward" in entry]
    first, last = (statistics.mean(each["accuracy"] for each in part) for part in (entries[:3], entries[-5:]))
    assert first < 0.65
    assert last > first + 0.15
    assert statistics.mean(each["valid"] for each in entries[-5:]) > 0.9
    assert {"share/math/0", "choice_entropy/text", "reward/choice", "latency_p95_s"} <= entries[0].keys()


def test_completions_that_are_cut_earn_nothing(trained: Setup, tmp_path: Path) -> None:
    setup = from_warmup(trained, tmp_path, max_steps=1, max_completion_length=4)

    run_pipeline(setup, ("base",))

    kept = [each for batch in samples(setup.folder("base") / "samples").values() for each in batch]
    assert {(*each["problems"], each["reward"]) for each in kept} == {("completion-cut", 0.0)}
    assert [entry["cut"] for entry in metrics(setup) if "cut" in entry] == [1.0]


def test_an_interrupted_training_skips_broken_checkpoints_and_comes_to_the_same_weights_and_samples(
    trained: Setup, tmp_path: Path
) -> None:
    said: list[str] = []
    begun = replace(copy_until(trained, 6, tmp_path / "killed"), say=said.append)
    broken = {"checkpoint-4": "wfdsl-prompt.json", "checkpoint-6": "rng_state.pth"}
    for name, missing in broken.items():
        (begun.folder("base") / name / missing).unlink()

    run_pipeline(begun, ("sft", "base"), resume=True)

    assert all(any(name in line and missing in line for line in said) for name, missing in broken.items())
    assert any("resumes from" in line and "checkpoint-2" in line for line in said)
    assert same(begun.folder("base") / "final", trained.folder("base") / "final")
    assert samples(begun.folder("base") / "samples") == samples(trained.folder("base") / "samples")


def test_a_stage_that_is_over_keeps_its_models_and_no_optimizer(trained: Setup) -> None:
    kept = {name: {path.name for path in trained.folder(name).glob("checkpoint-*/*")} for name in ("sft", "base")}

    assert {name: "model.safetensors" in files for name, files in kept.items()} == {"sft": True, "base": True}
    assert {name: "optimizer.pt" in files for name, files in kept.items()} == {"sft": False, "base": True}


def test_a_folder_that_was_begun_is_not_overwritten(trained: Setup) -> None:
    with pytest.raises(UsageError, match="--resume"):
        run_pipeline(trained, ("sft", "base"))


@pytest.fixture(scope="module")
def revising(trained: Setup, tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """A stage of recursion in the generic way."""
    train = with_stage(TRAIN, "recursion", max_steps=4)
    setup = replace(trained, out=tmp_path_factory.mktemp("revising"), train=train)
    train_stage(setup, "recursion", str(trained.folder("base") / "final"))
    return setup


def test_each_completion_revises_its_own_first_round(revising: Setup) -> None:
    steps = [*samples(revising.folder("recursion") / "samples").values()]
    answers: dict[int, list[Any]] = {}
    for each in (each for batch in steps for each in batch):
        answers.setdefault(each["row"], []).append(each["answer"])

    second = [each for batch in steps for each in batch if each["previous"]]

    assert [sum(each["previous"] is not None for each in batch) for batch in steps] == [0, 8, 8, 8]
    first = [answers[each["revises"]][int(each["sample_id"].rpartition("/")[2])] for each in second]
    own = [(each, answer) for each, answer in zip(second, first, strict=True) if answer is not None]
    assert len(own) > 0.8 * len(second)
    assert all(each["previous"][1] == answer for each, answer in own)
    groups: dict[int, set[str]] = {}
    for each in second:
        groups.setdefault(each["row"], set()).add(each["previous"][1])
    assert max(map(len, groups.values())) > 1  # a group revises different answers
    assert {each["reward"] for batch in steps for each in batch} <= {0.0, 0.125, 0.25, 0.5, 1.0}


def test_an_interrupted_stage_of_second_rounds_comes_to_the_same_weights(revising: Setup, tmp_path: Path) -> None:
    broken = replace(revising, out=tmp_path / "broken")
    shutil.copytree(revising.out, broken.out)
    stage = broken.folder("recursion")
    shutil.rmtree(stage / "checkpoint-4")
    for path in (stage / "samples").glob("*-00000[23]*"):
        path.unlink()

    train_stage(broken, "recursion", str(stage / "final"), checkpoint=stage / "checkpoint-2")

    assert same(stage / "final", revising.folder("recursion") / "final")
    assert samples(stage / "samples") == samples(revising.folder("recursion") / "samples")


def test_a_stage_that_shares_prompts_goes_as_one_that_does_not(trained: Setup, tmp_path: Path) -> None:
    kept, logged = [], []
    for share in (False, True):
        train = replace(with_stage(TRAIN, "recursion", beta=0.04), prefix_cache=share)
        setup = replace(trained, out=tmp_path / str(share), train=train)
        train_stage(setup, "recursion", str(trained.folder("base") / "final"))
        kept.append(samples(setup.folder("recursion") / "samples"))
        logged.append([entry for entry in metrics(setup) if "kl" in entry])

    assert kept[0] == kept[1]
    for plain, shared in zip(*logged, strict=True):
        for name in ("loss", "grad_norm", "entropy", "kl"):
            assert shared[name] == pytest.approx(plain[name], rel=1e-3, abs=1e-6)


def test_a_16_bit_checkpoint_is_trained_in_32_bits_and_evaluated(
    trained: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In 16 bits, rounding would undo three steps of this size for nearly all weights."""
    model, start = trained.folder("sft") / "final", tmp_path / "model"
    AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16).save_pretrained(start)
    AutoTokenizer.from_pretrained(model).save_pretrained(start)

    assert main([str(write_experiment(tmp_path, start)), "--out", str(tmp_path / "out")]) == 0

    before = load_file(start / "model.safetensors")
    after = load_file(tmp_path / "out/base/final/model.safetensors")
    assert {each.dtype for each in before.values()} == {torch.bfloat16}
    moved = torch.cat([(after[name] - before[name].float()).abs().flatten() for name in before])
    assert (moved > 0).float().mean() > 0.5
    assert moved.max() < 3.5e-6  # by three steps of 1e-6, as from a 32-bit one: rounding to 16 bits would add more

    monkeypatch.setenv("WFDSL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    words = ["--policy", "out/base/final", "--tasks", "tasks.jsonl", "--limit", "6", "--pool", "experiment.toml"]
    assert wfdsl_eval([*words, "--out", "evaluated", "--no-plots"]) == 0
    assert "out/base/final" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_each_stage_has_curves_of_its_own_in_tensorboard_and_wandb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    wandb = pytest.importorskip("wandb")

    def scalars(folder: Path) -> set[str]:
        events = next(folder.rglob("events.out.tfevents.*"))
        return set(event_accumulator.EventAccumulator(str(events.parent)).Reload().Tags()["scalars"])

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    wandb.teardown()  # it reads the environment once in a process
    setup = a_setup(tmp_path / "shown")
    train = with_stage(with_stage(setup.train, "sft", max_steps=10), "base", max_steps=2)
    train = replace(train, trl={"report_to": ["tensorboard", "wandb"]})

    run_pipeline(replace(setup, train=train), ("sft", "base"))

    assert "train/loss" in scalars(setup.folder("sft"))
    assert "train/reward" in scalars(setup.folder("base"))
    logs = (path.read_bytes() for path in tmp_path.glob("wandb/offline-run-*/*.wandb"))
    assert sorted(sorted({*re.findall(rb"shown-(sft|base)", log)}) for log in logs) == [[b"base"], [b"sft"]]


def test_losses_are_those_that_trl_knows() -> None:
    source = inspect.getsource(GRPOTrainer)
    compared = " ".join(line for line in source.splitlines() if "self.loss_type" in line and "if " in line)

    assert set(LOSSES) == set(re.findall(r'"(\w+)"', compared))
