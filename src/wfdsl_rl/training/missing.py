"""What a training needs and this machine does not have: keys, packages, GPUs, files, each with what to do.

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
from wfdsl_rl.training.plan import Plan

_PACKAGES: Final = ("torch", "transformers", "trl", "datasets", "accelerate")
_WANTED: Final = {"vllm": "'vllm>=0.22.0,<=0.31.0'", "deepspeed": "deepspeed"}
"""What to install for a package. Source of the versions of vLLM: those that TRL 1.16 supports."""


def missing_for(plan: Plan, tasks: Sequence[Task], longest: Mapping[StageName, int]) -> list[str]:
    """One line for each thing that is missing; tasks that cannot be read are the caller's to tell.

    `longest` has the tokens of each stage's longest prompt and completion.
    """
    return [
        *_packages(plan.train),
        *_gpus(plan.train),
        *_sharding(plan.train),
        *_vllm_length(plan.train, longest),
        *_model(plan.train.model),
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


def _gpus(train: TrainConfig) -> Iterator[str]:
    count, server, found = train.processes or 1, has_server(train), _found_gpus()
    if not _allows_cpu(train) and found < count + server:
        more = ", and one for the vLLM server" if server else ""
        smaller = "" if train.lora else ", or train adapters on one, as docs/examples/gpus/1-gpu-lora.sh does"
        needed = f"GPUs: {count} of {train.gpu_gib:g} GiB{more}; this machine has {found}"
        yield f"{needed}; use a machine that has them{smaller}"


def has_server(train: TrainConfig) -> bool:
    """Whether vLLM is a server, on a GPU of its own."""
    return bool(train.trl.get("use_vllm")) and train.trl.get("vllm_mode") == "server"


def _found_gpus() -> int:
    if find_spec("torch") is None:
        return 0
    import torch  # noqa: PLC0415  (a dry run works without it)

    return int(torch.cuda.device_count())


def _sharding(train: TrainConfig) -> Iterator[str]:
    if train.sharding != "none" and not train.divides:
        cure = "set train.processes to the number of GPUs, or train.sharding = none and train.offload = false"
        yield f"train.sharding: one process divides and offloads nothing; {cure}"


def _vllm_length(train: TrainConfig, longest: Mapping[StageName, int]) -> Iterator[str]:
    """The context of a vLLM beside the training; a server has its own."""
    length = train.trl.get("vllm_max_model_length")
    if not train.trl.get("use_vllm") or has_server(train) or length is None:
        return
    name, tokens = max(longest.items(), key=lambda item: item[1])
    if tokens > length:
        needed = f"{tokens:,} of the longest prompt and completion, as estimated for the stage {name}"
        yield f"train.trl.vllm_max_model_length: {length:,} tokens are fewer than {needed}; set it to {tokens}"


def _model(model: str) -> Iterator[str]:
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
