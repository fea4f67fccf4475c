"""Memory of each GPU in a training, part by part, before it starts.

Bytes follow from how the model is trained: 32-bit weights, gradients and two moments of Adam (or 16-bit weights and
adapters), divided among the processes by FSDP or ZeRO-3. Activations are those of one recomputed layer with
checkpoints between layers (Korthikanti et al., arXiv 2205.05198, section 4). All of it is an estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from wfdsl_rl.training.config import GrpoConfig, ModelSize, TrainConfig

GIB: Final = 1 << 30
_LORA_SHARE: Final = 0.01
"""Weights of adapters, as a fraction of the model's. Our choice, about right for rank 16 in all linear layers."""
_LAYER_BYTES: Final = 34
"""Bytes of a layer's activations for each token and unit of width, in 16 bits. Source: arXiv 2205.05198, equation 1."""
_LOGIT_BYTES: Final = 8
"""Bytes for each logit: a 32-bit number and its gradient."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one purpose needs on each GPU."""

    name: str
    gib: float
    how: str
    """How it was computed, in a few words."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What each GPU needs, and the memory of the machine where that is much."""

    parts: tuple[Part, ...]
    gpu_gib: float
    """The memory that a GPU has."""
    host_gib: float = 0.0
    """Weights, gradients and moments that are kept in the machine's memory, for all processes together."""

    @property
    def gib(self) -> float:
        """The sum of the parts."""
        return sum(part.gib for part in self.parts)

    @property
    def fits(self) -> bool:
        """Whether a GPU has that much."""
        return self.gib <= self.gpu_gib


def memory_of(train: TrainConfig, size: ModelSize, stage: GrpoConfig, *, prompt_tokens: int) -> Memory:
    """The memory of a GRPO stage; activations are counted if the size says layers, width and vocabulary."""
    shards = (train.processes or 1) if train.sharding != "none" else 1
    parts = (
        *_of_weights(train, size, stage, shards),
        *_of_activations(train, size, stage, prompt_tokens, shards),
        *_of_vllm(train.extra, train.gpu_gib),
    )
    host = size.parameters * 16 / GIB if train.offload else 0.0
    return Memory(tuple(part for part in parts if part.gib), train.gpu_gib, host)


def _of_weights(train: TrainConfig, size: ModelSize, stage: GrpoConfig, shards: int) -> Iterator[Part]:
    over = f", over {shards} GPUs" if shards > 1 else ""
    trained = size.parameters * (_LORA_SHARE if train.lora is not None else 1)
    unit = 0.0 if train.offload else 1 / (GIB * shards)
    if train.lora is not None:
        yield Part("weights", (2 * size.parameters + 4 * trained) * unit, f"16 bits, and adapters in 32{over}")
    else:
        yield Part("weights", 4 * trained * unit, f"32 bits{over}")
    yield Part("gradients", 4 * trained * unit, f"32 bits{over}")
    yield Part("optimizer", 8 * trained * unit, f"two moments in 32 bits{over}")
    if stage.beta and train.lora is None:
        yield Part("reference", 4 * size.parameters / (GIB * shards), f"the stage's first weights in 32 bits{over}")


def _of_activations(
    train: TrainConfig, size: ModelSize, stage: GrpoConfig, prompt_tokens: int, shards: int
) -> Iterator[Part]:
    if not (size.layers and size.width and size.vocabulary):
        return
    share = stage.batch_size // (train.processes or 1)
    rows = min(stage.micro_batch or share, share)
    tokens = rows * (prompt_tokens + stage.max_completion_tokens)
    kept = size.layers * tokens * size.width * 2
    layer = tokens * size.width * _LAYER_BYTES
    logits = rows * stage.max_completion_tokens * size.vocabulary * _LOGIT_BYTES
    yield Part("activations", (kept + layer) / GIB, f"{rows} x {tokens // rows:,} tokens, recomputed layer by layer")
    yield Part("logits", logits / GIB, f"{rows} x {stage.max_completion_tokens:,} tokens x {size.vocabulary:,}")
    if shards > 1 or train.offload:
        gathered = 2 * 2 * (size.parameters / size.layers) + 2 * 2 * size.vocabulary * size.width
        yield Part("gathered layers", gathered / GIB, "two layers and the embeddings in 16 bits")


def _of_vllm(extra: dict[str, Any], gpu_gib: float) -> Iterator[Part]:
    if extra.get("use_vllm") and extra.get("vllm_mode", "colocate") == "colocate":
        share = float(extra.get("vllm_gpu_memory_utilization", 0.3))  # TRL's default
        yield Part("vLLM", share * gpu_gib, f"vllm_gpu_memory_utilization {share:g} of {gpu_gib:g} GiB")
