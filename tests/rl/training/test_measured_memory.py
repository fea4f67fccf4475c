"""What autograd keeps of a layer is what the dry run counts."""

from __future__ import annotations

from typing import Any

import pytest

for package in ("torch", "transformers", "peft"):
    pytest.importorskip(package, reason=f"needs {package}, in the extra rl")

import torch  # noqa: E402
from peft import LoraConfig as LoraSettings  # noqa: E402
from peft import get_peft_model  # noqa: E402
from transformers import Qwen2Config, Qwen2ForCausalLM  # noqa: E402

from wfdsl_rl.training import estimate  # noqa: E402
from wfdsl_rl.training.config import GrpoStage, LoraConfig, TrainConfig  # noqa: E402
from wfdsl_rl.training.estimate import GIB, memory_of  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*_checkpointing.*deprecated:FutureWarning"),  # peft's use of transformers
]

QUARTER = {"hidden_size": 896, "intermediate_size": 4736, "num_attention_heads": 7, "num_key_value_heads": 1}
"""A quarter of Qwen2.5-7B's width, with its proportions."""
TOKENS = 512


def network(*, adapted: bool) -> Any:
    """A model of one layer, in 16 bits."""
    config = Qwen2Config(**QUARTER, vocab_size=256, num_hidden_layers=1, attn_implementation="sdpa")
    model = Qwen2ForCausalLM(config).to(torch.bfloat16)
    lora = LoraSettings(r=32, target_modules="all-linear", task_type="CAUSAL_LM")
    return get_peft_model(model, lora).get_base_model() if adapted else model


def saved(model: Any, *, adapted: bool) -> int:
    """Bytes that a pass through the layer saves for the way back, without weights and their copies."""
    layer, kept = model.model.layers[0], {}
    shapes = {shape for weight in layer.parameters() for shape in (weight.shape, weight.shape[::-1])}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.shape not in shapes:
            kept[tensor.untyped_storage().data_ptr()] = (tensor.untyped_storage().nbytes(), tensor)
        return tensor

    states = torch.randn(1, TOKENS, QUARTER["hidden_size"], dtype=torch.bfloat16, requires_grad=True)
    at = torch.arange(TOKENS)[None]
    turned = model.model.rotary_emb(states, at)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), computing(in_16_bits=adapted):
        layer(states, position_embeddings=turned, attention_mask=None, position_ids=at)
    return sum(size for size, _ in kept.values())


def computing(*, in_16_bits: bool) -> torch.autocast:
    """As transformers does with adapters in 32 bits; FSDP and weights in 16 bits need nothing."""
    return torch.autocast("cpu", torch.bfloat16, enabled=in_16_bits, cache_enabled=False)


@pytest.mark.parametrize("lora", [None, LoraConfig(r=32)])
def test_a_recomputed_layer_needs_what_the_dry_run_counts(
    lora: LoraConfig | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    width, checkpoint = QUARTER["hidden_size"], 2
    monkeypatch.setattr(estimate, "runs_on_cpu", lambda _: False)
    stage = GrpoStage(per_device_train_batch_size=1, max_completion_length=1)
    train = TrainConfig(model="x", tasks="y", lora=lora, stages={"base": stage})
    shape = {**QUARTER, "num_hidden_layers": 1, "vocab_size": 1}
    parts = memory_of(train, shape, "base", TOKENS)

    measured = saved(network(adapted=lora is not None), adapted=lora is not None)

    counted = parts["activations"] * GIB - checkpoint * TOKENS * width
    assert counted == pytest.approx(measured, rel=0.05)
