"""Memory of each process in a training, part by part, of its machine, and on its disk, before it starts.

Bytes follow from how the model is trained: 32-bit weights, gradients and two moments of Adam (or frozen weights and
adapters), divided among the processes by FSDP or ZeRO-3. Activations are those of one recomputed layer with
checkpoints between layers (Korthikanti et al., arXiv 2205.05198, section 4), or those of all layers. All of it is an
estimate.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wfdsl.errors import UsageError
from wfdsl_rl.training.config import GrpoConfig, ModelSize, SftConfig, StageName, TrainConfig

GIB: Final = 1 << 30
_LORA_SHARE: Final = 3.3e-4
"""Weights of adapters for each rank, as a fraction of the model's: 2.52e6 of 7.6e9 in Qwen2.5-7B's linear layers."""
_LORA_WIDTHS: Final = 25
"""The same of a layer, in units of its width, where layers and width are known: 25.1 in Qwen2.5-7B, 25.6 in
Qwen2.5-0.5B, 17.7 in SmolLM2-135M. Counted from the shapes of their linear layers."""
_LAYER_BYTES: Final = {"all weights": 63.5, "adapters": 68.0}
"""Bytes of a layer's activations for each token and unit of width, in 16 bits, by what is trained. Measured on a CPU,
as what autograd saves of a layer with the proportions of Qwen2.5-7B, whose gated MLP is 5.3 times as wide as the layer.
Equation 1 of arXiv 2205.05198 has 34, for an MLP that is not gated and 4 times as wide."""
_COPY_BYTES: Final = 4
"""ZeRO-3's second copy of each trained weight, which the optimizer changes. Measured with DeepSpeed 0.19."""
_KEPT_BYTES: Final = {16: 50, 32: 80}
"""The same of a layer that is not recomputed, by the bits. Measured on SmolLM2-135M with adapters, on a CPU."""
_TILE: Final = (4096, 32768)
"""Tokens and vocabulary for which TRL 1.16 has logits at a time."""
_LOGIT_BYTES: Final = {"GPU": 8, "CPU": 20}
"""Bytes for each of them: a 32-bit number and its gradient; on a CPU there are copies (measured)."""
_PROGRAMS_GIB: Final = 1.0
"""Python, torch and transformers in a process on a CPU. Measured."""
_KEPT_CHECKPOINTS: Final = 3
"""Checkpoints of a stage that stay on the disk, without train.trl.save_total_limit. Source: `grpo_config`."""


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

    @property
    def gib(self) -> float:
        """The sum of the parts."""
        return sum(part.gib for part in self.parts)

    @property
    def fits(self) -> bool:
        """Whether there is that much."""
        return self.gib <= self.limit_gib


@dataclass(frozen=True, slots=True)
class Host:
    """What all processes of a training on GPUs need together of the machine's memory, when they need it."""

    loading_gib: float
    """At the start: each process loads the whole model before it is divided."""
    training_gib: float
    """Weights, gradients and moments that train.offload keeps there."""
    saving_gib: float
    """What is kept there, and the whole model, gathered in the first process; FSDP gathers moments too, and has no
    gradients then."""
    limit_gib: float
    """What this machine has."""

    @property
    def gib(self) -> float:
        """The most at any time."""
        return max(self.loading_gib, self.training_gib, self.saving_gib)

    @property
    def fits(self) -> bool:
        """Whether there is that much."""
        return self.gib <= self.limit_gib


@dataclass(frozen=True, slots=True)
class Disk:
    """What a training writes, at most at any time."""

    checkpoint_gib: float
    """Weights and moments; FSDP and ZeRO-3 write the weights twice."""
    checkpoints: int
    """Those that are kept of all stages, and one that is written before the oldest is removed."""
    final_gib: float
    """The model that each stage leaves, in 32 bits; adapters are merged into it."""
    finals: int
    folder: str
    free_gib: float
    """What the file system of the folder has."""

    @property
    def gib(self) -> float:
        """All of it."""
        return self.checkpoints * self.checkpoint_gib + self.finals * self.final_gib

    @property
    def fits(self) -> bool:
        """Whether there is that much."""
        return self.gib <= self.free_gib


@dataclass(frozen=True, slots=True)
class Pass:
    """The rows of one pass forward and back."""

    rows: int
    prompt_tokens: int
    completion_tokens: int
    beta: float = 0.0
    usual_prompt_tokens: int = 0
    """Of a question of median length, for the time that the pass takes."""

    @property
    def row_tokens(self) -> int:
        """Of a row."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def tokens(self) -> int:
        """Of all rows."""
        return self.rows * self.row_tokens


def share_of(batch: int, micro: int, processes: int) -> int:
    """How many completions of a step each process gets, `micro` at a time.

    Raises:
        UsageError: they cannot be shared evenly.
    """
    if batch % (processes * max(min(micro, batch // processes), 1)):
        raise UsageError(
            f"{processes} processes cannot share {batch} completions evenly, {micro} at a time: "
            "change prompts_per_step, group_size or micro_batch"
        )
    return batch // processes


def pass_of(
    train: TrainConfig, stage: GrpoConfig | SftConfig, *, prompt_tokens: int, usual_prompt_tokens: int = 0
) -> Pass:
    """A stage's largest pass. A completion of SFT counts as long as the longest of the stage `base`.

    Raises:
        UsageError: the processes cannot share the completions of a step evenly.
    """
    processes = train.processes or 1
    if isinstance(stage, SftConfig):
        share = share_of(stage.batch_size, 1, processes)
        return Pass(share, prompt_tokens, train.base.max_completion_tokens)
    share = share_of(stage.batch_size, stage.micro_batch or 1, processes)
    rows = min(stage.micro_batch or share, share)
    return Pass(rows, prompt_tokens, stage.max_completion_tokens, stage.beta, usual_prompt_tokens)


def most_memory(train: TrainConfig, size: ModelSize, passes: Mapping[StageName, Pass], *, on_cpu: bool) -> Memory:
    """The memory of the stage that needs most, by the largest pass of each."""
    machine_gib = memory_of_machine() if on_cpu else None
    needed = (memory_of(train, size, name, largest, machine_gib=machine_gib) for name, largest in passes.items())
    return max(needed, key=lambda of: of.gib)


def memory_of(
    train: TrainConfig, size: ModelSize, stage: str, largest: Pass, *, machine_gib: float | None = None
) -> Memory:
    """The memory of a stage; activations are counted if the size says layers, width and vocabulary.

    `machine_gib` is what the machine has, if the training runs on its CPU.
    """
    on_cpu = machine_gib is not None
    parts = (
        *_of_weights(train, size, largest, on_cpu=on_cpu),
        *_of_activations(train, size, largest, on_cpu=on_cpu),
        *_of_vllm(train.trl, train.gpu_gib),
        *([Part("programs", _PROGRAMS_GIB, "Python, torch and transformers")] if on_cpu else []),
    )
    limit = train.gpu_gib if machine_gib is None else machine_gib
    return Memory(stage, tuple(part for part in parts if part.gib), limit, on_cpu)


def host_of(train: TrainConfig, size: ModelSize) -> Host:
    """The machine's memory of a training on GPUs, without that of programs and of vLLM."""
    frozen, trained = size.parameters / GIB, _trained(train, size) / GIB
    loading = (train.processes or 1) * (2 if half_frozen(train, on_cpu=False) else 4) * frozen
    kept = _offloaded(train, size) / GIB
    if _has_copies(train):  # DeepSpeed keeps its buffers of gradients, and each process writes its own moments
        return Host(loading, kept, kept + 4 * frozen, memory_of_machine())
    gathered = 4 * frozen + (8 * trained if divides(train) else 0.0)
    return Host(loading, kept, max(kept - 4 * trained, 0.0) + gathered, memory_of_machine())


def disk_of(train: TrainConfig, size: ModelSize, stages: Sequence[StageName], folder: Path) -> Disk:
    """The disk of checkpoints and of the models that stages leave."""
    counts = [_checkpoints(train, stage) for stage in stages]
    removes = any(written > kept for written, kept in counts)
    checkpoint = (16 if divides(train) else 12) * _trained(train, size) / GIB
    kept = sum(min(each) for each in counts) + removes
    return Disk(checkpoint, kept, 4 * size.parameters / GIB, len(stages), str(folder), _free_gib(folder))


def memory_of_machine() -> float:
    """The memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB


def divides(train: TrainConfig) -> bool:
    """Whether weights, gradients and moments are divided among processes: a plain process divides nothing."""
    return train.sharding != "none" and (train.processes or 1) > 1


def offloads(train: TrainConfig) -> bool:
    """Whether what is divided stays in the machine's memory."""
    return train.offload and divides(train)


def half_frozen(train: TrainConfig, *, on_cpu: bool) -> bool:
    """Whether the weights below adapters are kept in 16 bits: on a GPU that computes in 16 bits, if they are whole.

    FSDP and ZeRO-3 divide 32-bit weights. For vLLM, TRL 1.16 adds the adapters to the weights before each generation
    and takes them off again; rounding to 16 bits would change the weights a little each time.
    """
    rounds_well = train.sharding == "none" and not train.trl.get("use_vllm")
    return train.lora is not None and rounds_well and not on_cpu and bool(train.trl.get("bf16", True))


def recomputes(train: TrainConfig, *, on_cpu: bool) -> bool:
    """Whether activations are computed again on the way back, by FSDP or by transformers."""
    return train.sharding == "fsdp" or bool(train.trl.get("activation_checkpointing", not on_cpu))


def _trained(train: TrainConfig, size: ModelSize) -> float:
    if train.lora is None:
        return size.parameters
    if size.layers and size.width:
        return _LORA_WIDTHS * size.layers * size.width * train.lora.rank
    return _LORA_SHARE * size.parameters * train.lora.rank


def _has_copies(train: TrainConfig) -> bool:
    return train.sharding == "zero3" and divides(train)


def _offloaded(train: TrainConfig, size: ModelSize) -> float:
    """Bytes of weights, gradients and moments in the machine's memory.

    DeepSpeed has two buffers of gradients there: those of the passes, and those of its optimizer.
    """
    if not offloads(train):
        return 0.0
    adapters = 0 if train.lora is None else 4
    more = 4 + _COPY_BYTES if _has_copies(train) else 0
    return 4 * size.parameters + (12 + adapters + more) * _trained(train, size)


def _checkpoints(train: TrainConfig, stage: StageName) -> tuple[int, int]:
    """How many a stage writes, and how many it keeps at most; one is written at its end."""
    if stage == "sft":
        return -(-train.sft.steps // train.sft.save_every) if train.sft.save_every else 0, _KEPT_CHECKPOINTS
    grpo = train.grpo(stage)
    return -(-grpo.iterations // grpo.save_every), int(train.trl.get("save_total_limit", _KEPT_CHECKPOINTS))


def _free_gib(folder: Path) -> float:
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free / GIB


def _of_weights(train: TrainConfig, size: ModelSize, largest: Pass, *, on_cpu: bool) -> Iterator[Part]:
    shards = (train.processes or 1) if divides(train) else 1
    over = f", over {shards} GPUs" if shards > 1 else ""
    trained = _trained(train, size)
    unit = 0.0 if offloads(train) else 1 / (GIB * shards)
    if train.lora is not None:
        bits = 16 if half_frozen(train, on_cpu=on_cpu) else 32
        weights = bits // 8 * size.parameters + 4 * trained
        yield Part("weights", weights * unit, f"{bits} bits, and adapters in 32{over}")
    else:
        yield Part("weights", 4 * trained * unit, f"32 bits{over}")
    if _has_copies(train):
        yield Part("copies", _COPY_BYTES * trained * unit, f"DeepSpeed's own of trained weights, in 32 bits{over}")
    yield Part("gradients", 4 * trained * unit, f"32 bits{over}")
    yield Part("optimizer", 8 * trained * unit, f"two moments in 32 bits{over}")
    if largest.beta and train.lora is None:
        yield Part("reference", 4 * size.parameters / (GIB * shards), f"the stage's first weights in 32 bits{over}")


def _of_activations(train: TrainConfig, size: ModelSize, largest: Pass, *, on_cpu: bool) -> Iterator[Part]:
    if not (size.layers and size.width and size.vocabulary):
        return
    bits = 16 if train.trl.get("bf16", not on_cpu) else 32
    rows = f"{largest.rows} x {largest.row_tokens:,} tokens"
    if recomputes(train, on_cpu=on_cpu):
        of_layer = _LAYER_BYTES["all weights" if train.lora is None else "adapters"]
        bytes_each, how = size.layers * 2 + of_layer, f"{rows}, recomputed layer by layer"
    else:
        bytes_each, how = size.layers * _KEPT_BYTES[bits], f"{rows}, of all layers, in {bits} bits"
    yield Part("activations", largest.tokens * size.width * bytes_each / GIB, how)
    if bits == 16 and not (recomputes(train, on_cpu=on_cpu) or half_frozen(train, on_cpu=on_cpu)):
        yield Part("16-bit weights", 2 * size.parameters / GIB, "copies, with which the activations were computed")
    scored = min(_TILE[0], largest.rows * largest.completion_tokens)
    words = min(_TILE[1], size.vocabulary)
    logits = scored * words * _LOGIT_BYTES["CPU" if on_cpu else "GPU"]
    yield Part("logits", logits / GIB, f"{scored:,} tokens x {words:,} at a time")
    if divides(train):
        gathered = 2 * 2 * (size.parameters / size.layers) + 2 * 2 * size.vocabulary * size.width
        yield Part("gathered layers", gathered / GIB, "two layers and the embeddings in 16 bits")


def _of_vllm(extra: dict[str, Any], gpu_gib: float) -> Iterator[Part]:
    if extra.get("use_vllm") and extra.get("vllm_mode", "colocate") == "colocate":
        share = float(extra.get("vllm_gpu_memory_utilization", 0.3))  # TRL's default
        yield Part("vLLM", share * gpu_gib, f"vllm_gpu_memory_utilization {share:g} of {gpu_gib:g} GiB")
