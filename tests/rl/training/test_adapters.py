"""Adapters instead of full weights: trained, and exported as one model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

for package in ("torch", "transformers", "datasets", "trl", "peft"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

import torch  # noqa: E402
from peft import AutoPeftModelForCausalLM  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

from tests.rl.training.toy import from_warmup  # noqa: E402
from wfdsl_rl.cli.train import main  # noqa: E402
from wfdsl_rl.training.config import LoraConfig  # noqa: E402
from wfdsl_rl.training.pipeline import run_pipeline  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl_rl.training.plan import Setup

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*_checkpointing.*deprecated:FutureWarning"),  # trl's use of transformers
]


@pytest.fixture(scope="module")
def adapted(trained: Setup, tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """A stage with adapters."""
    setup = from_warmup(trained, tmp_path_factory.mktemp("adapted"), max_steps=2, learning_rate=1e-2)
    train = replace(setup.train, lora=LoraConfig(r=4, lora_alpha=8))
    setup = replace(setup, train=train, eval_tasks=())
    run_pipeline(setup, ("base",))
    return setup


def loaded(folder: Path) -> Any:
    kind = AutoPeftModelForCausalLM if (folder / "adapter_config.json").is_file() else AutoModelForCausalLM
    return kind.from_pretrained(folder)


def test_an_export_is_the_model_with_its_adapters(adapted: Setup, tmp_path: Path) -> None:
    final, whole = adapted.out / "base" / "final", tmp_path / "whole"
    ids = torch.tensor([[5, 6, 7, 8]])

    code = main(["export", str(final), "-o", str(whole)])

    exported = AutoModelForCausalLM.from_pretrained(whole)(ids).logits
    assert code == 0
    assert not (whole / "adapter_config.json").exists()
    torch.testing.assert_close(exported, loaded(final)(ids).logits)
    assert not torch.allclose(exported, AutoModelForCausalLM.from_pretrained(adapted.train.model)(ids).logits)
    cut = [AutoTokenizer.from_pretrained(folder)("Solve it.")["input_ids"] for folder in (final, whole)]
    assert cut[0] == cut[1]
