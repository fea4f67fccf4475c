"""Weights are trained in 32 bits, whatever the checkpoint has: in 16 bits, small updates are lost."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

from tests.rl.training.toy import write_experiment  # noqa: E402
from wfdsl_rl.cli.train import main  # noqa: E402
from wfdsl_rl.training import stages  # noqa: E402
from wfdsl_rl.training.checkpoints import load_model, lost_updates  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl_rl.training.plan import Setup

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*_checkpointing.*deprecated:FutureWarning"),  # trl's use of transformers
]

RATE = 1e-6


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def checkpoint(trained: Setup, folder: Path, dtype: torch.dtype) -> Path:
    """A model that can write, with its weights rounded to bfloat16 and kept in a type."""
    model = trained.folder("sft") / "final"
    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16).to(dtype)
    network.save_pretrained(folder)
    AutoTokenizer.from_pretrained(model).save_pretrained(folder)
    return folder


def changed(folder: Path, model: Path) -> float:
    """The fraction of the weights that the real command changes in three iterations."""
    assert main([str(write_experiment(folder, model)), "--out", str(folder / "out")]) == 0

    before = load_file(model / "model.safetensors")
    after = load_file(folder / "out/base/final/model.safetensors")
    differ = {name: int((after[name].float() != before[name].float()).sum()) for name in before}
    return float(sum(differ.values()) / sum(each.numel() for each in before.values()))


def test_a_16_bit_checkpoint_is_trained_like_a_32_bit_one(trained: Setup, tmp_path: Path) -> None:
    shares = []
    for dtype in (torch.float32, torch.bfloat16):
        folder = tmp_path / str(dtype)
        folder.mkdir()
        shares.append(changed(folder, checkpoint(trained, folder / "model", dtype)))

    reference, share = shares
    assert reference > 0.5
    assert share >= 0.8 * reference


def test_steps_too_small_for_the_type_of_the_weights_are_refused(
    trained: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = checkpoint(trained, tmp_path / "model", torch.bfloat16)

    def in_its_own_type(name: str, **_: bool) -> tuple[Any, Any]:
        return AutoTokenizer.from_pretrained(name), AutoModelForCausalLM.from_pretrained(name, dtype="auto")

    monkeypatch.setattr(stages, "load_model", in_its_own_type)

    assert main([str(write_experiment(tmp_path, model)), "--out", str(tmp_path / "out")]) == 2

    said = capsys.readouterr().err
    left = re.search(r"train.stages.base.learning_rate: steps of 1e-06 leave (\d+)", said)
    assert left is not None, said
    assert int(left[1]) > 60
    assert "bfloat16 has no number so near" in said


def test_adapters_learn_in_32_bits_above_weights_of_16(
    trained: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("peft", reason="needs peft, in the extra rl")
    monkeypatch.setattr(stages, "on_cpu", lambda: False)  # as on a GPU, where frozen weights are kept so
    trainers: list[Any] = []
    monkeypatch.setattr(stages, "_require_updates", lambda trainer, *_: trainers.append(trainer))
    model = checkpoint(trained, tmp_path / "model", torch.bfloat16)
    settings = ("train.lora.r=4", "train.trl.bf16=true", "train.stages.base.learning_rate=1e-3")
    words = [word for setting in settings for word in ("--set", setting)]

    assert main([str(write_experiment(tmp_path, model)), "--out", str(tmp_path / "out"), *words]) == 0

    types = {weight.requires_grad: weight.dtype for weight in trainers[0].model.parameters()}
    assert types == {True: torch.float32, False: torch.bfloat16}
    before, after = load_file(model / "model.safetensors"), load_file(tmp_path / "out/base/final/model.safetensors")
    assert {each.dtype for each in after.values()} == {torch.float32}
    adapted = [name for name in before if not torch.equal(after[name], before[name].float())]
    assert len(adapted) == sum("proj.weight" in name for name in before)


def test_the_share_of_lost_updates_is_that_of_weights_without_a_nearer_number(trained: Setup) -> None:
    layer = torch.nn.Linear(2, 2, bias=False).to(torch.bfloat16)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 1e-5], [0.0, -1.0]]))

    assert lost_updates(layer, RATE) == 0.5
    assert lost_updates(layer, 0.1) == 0.0
    assert lost_updates(layer.float(), RATE) == 0.0
    assert lost_updates(load_model(str(trained.folder("sft") / "final"))[1], RATE) < 0.01
