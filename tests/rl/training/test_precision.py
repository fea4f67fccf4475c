"""Weights are trained in 32 bits, whatever the checkpoint has: in 16 bits, small updates are lost. The model of a stage
is evaluated by its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

for package in ("torch", "transformers", "datasets", "trl"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

from tests.evaluation.toys import wfdsl_eval  # noqa: E402
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
