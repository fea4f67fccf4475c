"""What a training needs and this machine does not have: keys, packages, GPUs, memory, files, each with what to do.

Options with which a training would start and then fail are here too.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from wfdsl.errors import UsageError
from wfdsl.grading.sandbox.isolation import INSTALL
from wfdsl.installation import install_command
from wfdsl.tasks.task import Task
from wfdsl.workers.model_folder import SHIPPED_MODEL, shipped_file
from wfdsl_rl.training.config import StageName, TrainConfig
from wfdsl_rl.training.memory import Disk, Host, Pass, divides
from wfdsl_rl.training.plan import Plan

_PACKAGES: Final = ("torch", "transformers", "trl", "datasets", "accelerate")
_WANTED: Final = {"vllm": "'vllm>=0.22.0,<=0.31.0'", "deepspeed": "deepspeed"}
"""What to install for a package. Source of the versions of vLLM: those that TRL 1.16 supports."""
_STEP: Final = 1024
"""What a length for vLLM is rounded up to. Our choice."""
_ON_ONE_GPU: Final = ("processes=1", "sharding=none", "offload=false", "lora.rank=32")
"""Settings for adapters on one GPU. Our choice."""
_ADAPTERS_RATE: Final = "1e-5"
"""Their learning rate, ten times the paper's, which is for all weights. Our choice, after Schulman et al. 2025."""


def missing_for(
    plan: Plan, tasks: Sequence[Task], passes: Mapping[StageName, Pass], host: Host | None, disk: Disk | None
) -> list[str]:
    """One line for each thing that is missing; tasks that cannot be read are the caller's to tell."""
    return [
        *_packages(plan.train),
        *_gpus(plan),
        *_space(plan.train, host, disk),
        *_sharding(plan.train),
        *_vllm_length(plan.train, passes),
        *_model(plan),
        *asyncio.run(_workers(plan)),
        *_sandbox(tasks),
    ]


def unusable(train: TrainConfig, processes: int) -> Iterator[str]:
    """Of these, what a training of so many processes cannot start without, whatever the machine."""
    yield from _packages(train)
    yield from _sharding(train.model_copy(update={"processes": processes}))


def _packages(train: TrainConfig) -> Iterator[str]:
    absent = [name for name in _PACKAGES if find_spec(name) is None]
    if train.lora is not None and find_spec("peft") is None:
        absent.append("peft")
    if absent:
        yield f"packages: {', '.join(absent)}; {install_command('rl')}"
    for name, used in (("vllm", train.trl.get("use_vllm")), ("deepspeed", train.sharding == "zero3")):
        if used and find_spec(name) is None:
            yield f"package: {name}; pip install {_WANTED[name]}"


def runs_on_cpu(train: TrainConfig) -> bool:
    """Whether it would run on the CPU of this machine: there is no GPU, and nothing asks for one."""
    return _allows_cpu(train) and not _found_gpus()


def _allows_cpu(train: TrainConfig) -> bool:
    return not train.trl.get("use_vllm") and train.sharding == "none"


def _gpus(plan: Plan) -> Iterator[str]:
    count = plan.train.processes or 1
    if _allows_cpu(plan.train):
        return
    server = has_server(plan.train)
    found = _found_gpus()
    if found < count + server:
        more = ", and one for the vLLM server" if server else ""
        needed = f"GPUs: {count} of {plan.train.gpu_gib:g} GiB{more}; this machine has {found}"
        smaller = "" if count == 1 and plan.train.lora is not None else f", or {_adapters(plan.train)}"
        yield f"{needed}; use a machine that has them{smaller}"


def _adapters(train: TrainConfig) -> str:
    rates = [f"{name}.learning_rate={_ADAPTERS_RATE}" for name in train.stages() if name != "sft"]
    settings = " ".join(f"--set train.{setting}" for setting in (*_ON_ONE_GPU, *rates))
    return f"train adapters on one: {settings}"


def has_server(train: TrainConfig) -> bool:
    """Whether vLLM is a server, on a GPU of its own."""
    return bool(train.trl.get("use_vllm")) and train.trl.get("vllm_mode") == "server"


def _found_gpus() -> int:
    if find_spec("torch") is None:
        return 0
    import torch  # noqa: PLC0415  (a dry run works without it)

    return int(torch.cuda.device_count())


def _space(train: TrainConfig, host: Host | None, disk: Disk | None) -> Iterator[str]:
    smaller = ", or train adapters (train.lora)" if train.lora is None else ""
    if host is not None and not host.fits:
        needed = f"memory: {host.gib:,.0f} GiB for all processes; this machine has {host.limit_gib:,.0f}"
        yield f"{needed}; use a machine that has as much{smaller}"
    if disk is not None and not disk.fits:
        needed = f"disk: {disk.gib:,.0f} GiB; {disk.folder} has {disk.free_gib:,.0f} free"
        yield f"{needed}; use another --out, keep fewer checkpoints (train.trl.save_total_limit=1){smaller}"


def _sharding(train: TrainConfig) -> Iterator[str]:
    if train.sharding != "none" and not divides(train):
        cure = "set train.processes to the number of GPUs, or train.sharding = none and train.offload = false"
        yield f"train.sharding: one process divides and offloads nothing; {cure}"


def _vllm_length(train: TrainConfig, passes: Mapping[StageName, Pass]) -> Iterator[str]:
    """The context of a vLLM beside the training; a server has its own."""
    length = train.trl.get("vllm_max_model_length")
    if not train.trl.get("use_vllm") or has_server(train) or length is None:
        return
    name, longest = max(passes.items(), key=lambda item: item[1].row_tokens)
    if longest.row_tokens > length:
        needed = f"{longest.prompt_tokens:,} of the longest prompt and {longest.completion_tokens:,} of its completion"
        yield (
            f"train.trl.vllm_max_model_length: {length:,} tokens are fewer than {needed}, as estimated for the stage "
            f"{name}; set it to {-(-longest.row_tokens // _STEP) * _STEP}"
        )


def _model(plan: Plan) -> Iterator[str]:
    model = plan.train.model
    if Path(model).exists():
        return
    if model == SHIPPED_MODEL:
        try:
            shipped_file()
        except UsageError as error:
            yield f"model: {error}"
        return
    if find_spec("huggingface_hub") is not None:
        from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415  (an optional package)

        if isinstance(try_to_load_from_cache(model, "config.json"), str):
            return
    yield f"model: {model} is not on this machine; it is downloaded at the start, or set train.model to a folder"


async def _workers(plan: Plan) -> list[str]:
    """Workers that cannot be built, for want of a key or a package; a line for all with the same reason."""
    found: dict[str, list[str]] = {}
    async with plan.pool.open() as pool:
        for index in pool.indices:
            try:
                pool.worker(index)
            except UsageError as error:
                name = f'"{pool.entry(index).name}"'
                found.setdefault(str(error).replace(name, "{}"), []).append(name)
    return [_of_workers(reason, names) for reason, names in found.items()]


def _of_workers(reason: str, names: Sequence[str]) -> str:
    if len(names) == 1:
        return reason.replace("{}", names[0])
    return reason.replace("worker {}", f"each of the workers {', '.join(names)}")


def _sandbox(tasks: Sequence[Task]) -> Iterator[str]:
    if any(task.kind == "code" for task in tasks) and shutil.which("bwrap") is None:
        yield f"sandbox for programs: {INSTALL}"
