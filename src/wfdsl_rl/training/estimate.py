"""Estimate of a training before it starts (dry run): runs, calls, cost, memory, the wait for workers, what is missing.

The estimate uses few numbers, and prints them: the paper's mean of 3 steps (arXiv 2512.04388, section 5), the tokens
and the time of a call, and the pool's price list.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import math
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from wfdsl.conductor.listing import WorkerListing
from wfdsl.errors import UsageError
from wfdsl.evaluation.manifest import is_simulated
from wfdsl.grading.sandbox.isolation import INSTALL
from wfdsl.installation import install_command
from wfdsl.protocols import Usage
from wfdsl.tasks.task import Task
from wfdsl.workers.model_folder import SHIPPED_MODEL, shipped_file
from wfdsl.workers.pool import Pool
from wfdsl_rl.training.config import GrpoStage, SftStage, TrainConfig
from wfdsl_rl.training.data import TOGETHER
from wfdsl_rl.training.plan import Setup

STEPS: Final = 3
"""Calls of a workflow. Source: arXiv 2512.04388, section 5."""
OUTPUT_TOKENS: Final = 500
INPUT_TOKENS: Final = 700
"""Tokens of a call; our choice. The paper counts 1820 a sample, and does not say of what (section 5)."""
PAPER_USD: Final = 0.0238
"""What a workflow costs in US dollars. Source: arXiv 2512.04388, section 5."""
LATENCY_S: Final = 20.0
"""Mean seconds of a call; our choice."""
LATENCY_SPREAD: Final = 0.8
"""Standard deviation of a call's logarithm: one call in twenty takes 2.7 times the mean. Our choice."""
GIB: Final = 1 << 30
_LORA_WIDTHS: Final = 25
"""Weights of adapters for each rank and layer, in units of its width: 25.1 in Qwen2.5-7B, 17.7 in SmolLM2-135M."""
_BATCHES, _MOST_SIMULATED = 50, 2048
"""Batches that are simulated, and the most workflows of one."""
_PACKAGES: Final = ("torch", "transformers", "trl", "datasets", "accelerate", "peft")
_VLLM: Final = "'vllm>=0.22.0,<=0.31.0'"
"""The versions that TRL 1.16 supports."""


@dataclass(frozen=True, slots=True)
class StageTime:
    """How long a stage waits for workers: workflows and calls of a step, of which rejection sampling has one, and
    seconds for its slowest workflow."""

    stage: str
    steps: int
    runs: int
    calls: int
    waiting_s: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """What would be run, and what it needs."""

    resolved: dict[str, Any]
    prompt: str
    """The first prompt that the model would get."""
    completions: int
    """The completions that GRPO trains on."""
    runs: int
    calls: int
    """Worker calls, at three steps per workflow or fewer: an estimate, as is all that follows from it."""
    usd: float | None
    """Their cost by the price list, in US dollars; None if a price is not known."""
    simulated: bool
    memory: dict[str, float]
    """GiB of each process by purpose, in the stage that needs most; empty if the model's shape is not known."""
    in_flight: int
    """The most calls at the same time: the training's concurrency, and the workers' limits."""
    times: tuple[StageTime, ...]
    missing: tuple[str, ...]
    """What this machine does not have, and options that would fail, each with what to do."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values, with what is assumed."""
        assumed = {"steps": STEPS, "input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS, "call_s": LATENCY_S}
        return {**asdict(self), "assumed": assumed}


def estimate_of(setup: Setup, stages: Sequence[str]) -> Estimate:
    """Estimate a training. Tasks that cannot be read are among what is missing."""
    missing: list[str] = []
    setup = setup.with_tasks(stages, missing)
    train, pool, per_workflow = setup.train, setup.pool, min(STEPS, setup.max_steps)
    unknown = Task(id="none", question="(the first question; the tasks are missing)", gold="none", kind="text")
    row = setup.reward(stages[0]).row(next(iter(setup.tasks), unknown), 0, WorkerListing.of(pool))
    in_flight = int(min(train.concurrency, sum(entry.limits.concurrency or math.inf for entry in pool)))
    times = tuple(_time_of(setup, name, per_workflow, in_flight) for name in stages)
    runs = sum(each.steps * each.runs for each in times)
    costs = [entry.cost_usd(Usage(INPUT_TOKENS, OUTPUT_TOKENS)) for entry in pool]  # training decides who is asked
    known = [cost for cost in costs if cost is not None]
    shape = shape_of(train.model)
    needed = [{} if shape is None else memory_of(train, shape, name) for name in stages]
    trained = [stage for name in stages if isinstance(stage := train.stages[name], GrpoStage)]
    return Estimate(
        resolved=setup.resolved(),
        prompt="\n".join(f"[{message['role']}]\n{message['content']}" for message in row["prompt"]),
        completions=sum(stage.max_steps * stage.batch_size for stage in trained),
        runs=runs,
        calls=per_workflow * runs,
        usd=per_workflow * runs * fmean(known) if len(known) == len(costs) else None,
        simulated=is_simulated(pool),
        memory=max(needed, key=lambda parts: sum(parts.values())),
        in_flight=in_flight,
        times=times,
        missing=(*missing, *_missing(setup)),
    )


def shape_of(model: str) -> dict[str, Any] | None:
    """The config.json of a model on this machine; None if there is none."""
    path = Path(model) / "config.json"
    if not Path(model).exists() and model.count("/") <= 1 and find_spec("huggingface_hub") is not None:
        path = Path(str(import_module("huggingface_hub").try_to_load_from_cache(model, "config.json")))
    if not path.is_file():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found if {"hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size"} <= found.keys() else None


def memory_of(train: TrainConfig, shape: Mapping[str, Any], stage: str) -> dict[str, float]:
    """GiB of each process: 4 bytes for each weight, 4 for its gradient and 8 for Adam's moments, by the share of a
    process, or nothing if offloaded; and vLLM's share of a GPU of 80 GB. Activations come on top of it."""
    shards = 1 if train.fsdp == "off" else train.processes or 1
    unit = 0.0 if train.fsdp == "offload" and shards > 1 else 1 / (GIB * shards)  # one process divides nothing
    trained, frozen = _weights(shape), 0.0
    if train.lora is not None:
        frozen, trained = trained, _LORA_WIDTHS * shape["num_hidden_layers"] * shape["hidden_size"] * train.lora.r
    elif getattr(train.stages[stage], "beta", 0.0):
        frozen = trained  # the reference of the KL term
    parts = {"weights": 4 * (trained + frozen) * unit, "gradients": 4 * trained * unit, "optimizer": 8 * trained * unit}
    if train.trl.get("use_vllm") and not _has_server(train):
        parts["vLLM"] = float(train.trl.get("vllm_gpu_memory_utilization", 0.3)) * 80  # TRL's default
    return {name: part for name, part in parts.items() if part}


def unusable(train: TrainConfig, processes: int) -> Iterator[str]:
    """What a training of so many processes cannot start without, whatever the machine."""
    if absent := [name for name in _PACKAGES if find_spec(name) is None]:
        yield f"packages: {', '.join(absent)}; {install_command('rl')}"
    if train.trl.get("use_vllm") and find_spec("vllm") is None:
        yield f"package: vllm; pip install {_VLLM}"
    if train.fsdp != "off" and processes < 2:
        yield "train.fsdp: one process divides nothing; set train.processes to the number of GPUs, or train.fsdp = off"


def _time_of(setup: Setup, name: str, calls: int, in_flight: int) -> StageTime:
    """The wait of a stage, as if calls were spread evenly over the workers."""
    stage, waiting_s = setup.train.stages[name], 0.0
    is_sft = isinstance(stage, SftStage)
    steps, completions = (1, stage.questions * stage.candidates) if is_sft else (stage.max_steps, stage.batch_size)
    runs, batches = completions * stage.executions, math.ceil(stage.questions / TOGETHER) if is_sft else 1
    if runs and not is_simulated(setup.pool):
        limits = [(each.limits.requests_per_minute, each.limits.tokens_per_minute) for each in setup.pool]
        tokens = INPUT_TOKENS + OUTPUT_TOKENS
        per_minute = sum(min(asked or math.inf, (spent or math.inf) / tokens) for asked, spent in limits)
        waited = max(_slowest_s(runs // batches, in_flight, calls), 60 * calls * runs / batches / per_minute)
        waiting_s = batches * min(waited, setup.train.deadline_s or math.inf)
    return StageTime(name, steps, runs, calls * runs, waiting_s)


def _slowest_s(runs: int, at_once: int, calls: int) -> float:
    """Seconds until the last of some workflows has ended: the mean of simulated batches, in which each workflow begins
    as soon as another one has ended."""
    mean, total = math.log(LATENCY_S) - LATENCY_SPREAD**2 / 2, 0.0
    for seed in range(_BATCHES):
        chance, free = random.Random(seed), [0.0] * min(at_once, runs)
        for _ in range(min(runs, _MOST_SIMULATED)):
            chain = sum(chance.lognormvariate(mean, LATENCY_SPREAD) for _ in range(calls))
            heapq.heapreplace(free, free[0] + chain)
        total += max(free)
    return max(1.0, runs / _MOST_SIMULATED) * total / _BATCHES


def _has_server(train: TrainConfig) -> bool:
    """Whether vLLM is a server, on a GPU of its own."""
    return bool(train.trl.get("use_vllm")) and train.trl.get("vllm_mode") == "server"


def _weights(shape: Mapping[str, Any]) -> float:
    """The number of weights of a model like Llama and Qwen2, without norms and biases: less than a thousandth."""
    width, heads = shape["hidden_size"], shape["num_attention_heads"]
    keys = width // heads * shape.get("num_key_value_heads", heads)
    layer = 2 * width * width + 2 * width * keys + 3 * width * shape["intermediate_size"]
    embeddings = shape["vocab_size"] * width * (1 if shape.get("tie_word_embeddings", False) else 2)
    return float(shape["num_hidden_layers"] * layer + embeddings)


def _missing(setup: Setup) -> Iterator[str]:
    """One line for each thing that is missing."""
    train = setup.train
    yield from unusable(train, train.processes or 1)
    needed, found = (train.processes or 1) + _has_server(train), _found_gpus()
    if (train.trl.get("use_vllm") or train.fsdp != "off") and found < needed:
        yield f"GPUs: {needed}; this machine has {found}; use a machine that has them, or train adapters on one"
    try:
        if train.model == SHIPPED_MODEL:
            shipped_file()
        elif not Path(train.model).exists() and shape_of(train.model) is None:
            yield f"model: {train.model} is not on this machine; it is downloaded at the start, or set train.model"
    except UsageError as error:
        yield f"model: {error}"
    yield from asyncio.run(_workers(setup.pool))
    if any(task.kind == "code" for task in setup.all_tasks) and shutil.which("bwrap") is None:
        yield f"sandbox for programs: {INSTALL}"


def _found_gpus() -> int:
    return 0 if find_spec("torch") is None else int(import_module("torch").cuda.device_count())


async def _workers(pool: Pool) -> list[str]:
    """Workers that cannot be built, for want of a key or a package."""
    found = []
    async with pool.open() as opened:
        for index in opened.indices:
            try:
                opened.worker(index)
            except UsageError as error:
                found.append(str(error))
    return found
