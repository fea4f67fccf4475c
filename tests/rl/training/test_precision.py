"""Weights are trained in 32 bits, whatever the checkpoint has: in 16 bits, small updates are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

from tests.rl.training.toy import write_experiment  # noqa: E402
from wfdsl_rl.cli.train import main  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl_rl.training.plan import Setup

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*_checkpointing.*deprecated:FutureWarning"),  # trl's use of transformers
]


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
