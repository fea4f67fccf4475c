"""Memory of each process in a training, part by part, before it starts.

Bytes follow from how the model is trained: 32-bit weights, gradients and two moments of Adam (or frozen weights and
adapters), divided among the processes by FSDP or ZeRO-3. Activations are those of one recomputed layer with
checkpoints between layers (Korthikanti et al., arXiv 2205.05198, section 4), or those of all layers. All of it is an
estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from wfdsl_rl.training.config import GrpoConfig, ModelSize, SftConfig, TrainConfig

GIB: Final = 1 << 30
_LORA_SHARE: Final = 0.01
"""Weights of adapters, as a fraction of the model's. Our choice, about right for rank 16 in all linear layers."""
_LAYER_BYTES: Final = 34
"""Bytes of a layer's activations for each token and unit of width, in 16 bits. Source: arXiv 2205.05198, equation 1."""
_KEPT_BYTES: Final = {16: 50, 32: 80}
"""The same of a layer that is not recomputed, by the bits. Measured on SmolLM2-135M with adapters, on a CPU."""
_TILE: Final = (4096, 32768)
"""Tokens and vocabulary for which TRL 1.16 has logits at a time."""
_LOGIT_BYTES: Final = {"GPU": 8, "CPU": 20}
"""Bytes for each of them: a 32-bit number and its gradient; on a CPU there are copies (measured)."""
_PROGRAMS_GIB: Final = 1.0
"""Python, torch and transformers in a process on a CPU. Measured."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one purpose needs in each process."""

    name: str
    gib: float
    how: str
    """How it was computed, in a few words."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What each process needs, and the memory of the machine where that is much."""

    stage: str
    """The stage that needs most."""
    parts: tuple[Part, ...]
    limit_gib: float
    """The memory that there is: of a GPU, or of the machine where there is none."""
    on_cpu: bool = False
    """Whether the training would run without a GPU."""
    host_gib: float = 0.0
    """Weights, gradients and moments that are kept in the machine's memory, for all processes together."""

    @property
    def gib(self) -> float:
        """The sum of the parts."""
        return sum(part.gib for part in self.parts)

    @property
    def fits(self) -> bool:
        """Whether there is that much."""
        return self.gib <= self.limit_gib


@dataclass(frozen=True, slots=True)
class Pass:
    """The rows of one pass forward and back."""

    rows: int
    prompt_tokens: int
    completion_tokens: int
    beta: float = 0.0

    @property
    def tokens(self) -> int:
        """Of all rows."""
        return self.rows * (self.prompt_tokens + self.completion_tokens)


def pass_of(train: TrainConfig, stage: GrpoConfig | SftConfig, *, prompt_tokens: int) -> Pass:
    """A stage's largest pass. A completion of SFT counts as long as the longest of the stage `base`."""
    processes = train.processes or 1
    if isinstance(stage, SftConfig):
        return Pass(stage.batch_size // processes, prompt_tokens, train.base.max_completion_tokens)
    share = stage.batch_size // processes
    return Pass(min(stage.micro_batch or share, share), prompt_tokens, stage.max_completion_tokens, stage.beta)


def memory_of(
    train: TrainConfig, size: ModelSize, stage: str, largest: Pass, *, machine_gib: float | None = None
) -> Memory:
    """The memory of a stage; activations are counted if the size says layers, width and vocabulary.

    `machine_gib` is what the machine has, if the training runs on its CPU.
    """
    shards = (train.processes or 1) if train.sharding != "none" else 1
    on_cpu = machine_gib is not None
    parts = (
        *_of_weights(train, size, largest, shards, on_cpu=on_cpu),
        *_of_activations(train, size, largest, shards, on_cpu=on_cpu),
        *_of_vllm(train.extra, train.gpu_gib),
        *([Part("programs", _PROGRAMS_GIB, "Python, torch and transformers")] if on_cpu else []),
    )
    host = size.parameters * 16 / GIB if train.offload else 0.0
    limit = train.gpu_gib if machine_gib is None else machine_gib
    return Memory(stage, tuple(part for part in parts if part.gib), limit, on_cpu, host)


def half_frozen(train: TrainConfig, *, on_cpu: bool) -> bool:
    """Whether the weights below adapters are kept in 16 bits: on a GPU that computes in 16 bits, if they are whole.

    FSDP and ZeRO-3 divide 32-bit weights.
    """
    return train.lora is not None and train.sharding == "none" and not on_cpu and bool(train.extra.get("bf16", True))


def recomputes(train: TrainConfig, *, on_cpu: bool) -> bool:
    """Whether activations are computed again on the way back, by FSDP or by transformers."""
    return train.sharding == "fsdp" or bool(train.extra.get("activation_checkpointing", not on_cpu))


def _of_weights(train: TrainConfig, size: ModelSize, largest: Pass, shards: int, *, on_cpu: bool) -> Iterator[Part]:
    over = f", over {shards} GPUs" if shards > 1 else ""
    trained = size.parameters * (_LORA_SHARE if train.lora is not None else 1)
    unit = 0.0 if train.offload else 1 / (GIB * shards)
    if train.lora is not None:
        bits = 16 if half_frozen(train, on_cpu=on_cpu) else 32
        weights = bits // 8 * size.parameters + 4 * trained
        yield Part("weights", weights * unit, f"{bits} bits, and adapters in 32{over}")
    else:
        yield Part("weights", 4 * trained * unit, f"32 bits{over}")
    yield Part("gradients", 4 * trained * unit, f"32 bits{over}")
    yield Part("optimizer", 8 * trained * unit, f"two moments in 32 bits{over}")
    if largest.beta and train.lora is None:
        yield Part("reference", 4 * size.parameters / (GIB * shards), f"the stage's first weights in 32 bits{over}")


def _of_activations(train: TrainConfig, size: ModelSize, largest: Pass, shards: int, *, on_cpu: bool) -> Iterator[Part]:
    if not (size.layers and size.width and size.vocabulary):
        return
    bits = 16 if train.extra.get("bf16", not on_cpu) else 32
    rows = f"{largest.rows} x {largest.tokens // largest.rows:,} tokens"
    if recomputes(train, on_cpu=on_cpu):
        bytes_each, how = size.layers * 2 + _LAYER_BYTES, f"{rows}, recomputed layer by layer"
    else:
        bytes_each, how = size.layers * _KEPT_BYTES[bits], f"{rows}, of all layers, in {bits} bits"
    yield Part("activations", largest.tokens * size.width * bytes_each / GIB, how)
    if bits == 16 and not (recomputes(train, on_cpu=on_cpu) or half_frozen(train, on_cpu=on_cpu)):
        yield Part("16-bit weights", 2 * size.parameters / GIB, "copies, with which the activations were computed")
    scored = min(_TILE[0], largest.rows * largest.completion_tokens)
    words = min(_TILE[1], size.vocabulary)
    logits = scored * words * _LOGIT_BYTES["CPU" if on_cpu else "GPU"]
    yield Part("logits", logits / GIB, f"{scored:,} tokens x {words:,} at a time")
    if shards > 1 or train.offload:
        gathered = 2 * 2 * (size.parameters / size.layers) + 2 * 2 * size.vocabulary * size.width
        yield Part("gathered layers", gathered / GIB, "two layers and the embeddings in 16 bits")


def _of_vllm(extra: dict[str, Any], gpu_gib: float) -> Iterator[Part]:
    if extra.get("use_vllm") and extra.get("vllm_mode", "colocate") == "colocate":
        share = float(extra.get("vllm_gpu_memory_utilization", 0.3))  # TRL's default
        yield Part("vLLM", share * gpu_gib, f"vllm_gpu_memory_utilization {share:g} of {gpu_gib:g} GiB")
