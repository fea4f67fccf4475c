"""What a training needs and this machine does not have: keys, packages, GPUs and files, each with what to do."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from wfdsl.errors import UsageError
from wfdsl.installation import install_command
from wfdsl.workers.model_folder import SHIPPED_MODEL, shipped_file
from wfdsl_rl.grading.sandbox.isolation import INSTALL
from wfdsl_rl.tasks.task import Task
from wfdsl_rl.training.config import TrainConfig
from wfdsl_rl.training.plan import Plan

_PACKAGES = ("torch", "transformers", "trl", "datasets", "accelerate")


def missing_for(plan: Plan, tasks: Sequence[Task]) -> list[str]:
    """One line for each thing that is missing; tasks that cannot be read are the caller's to tell."""
    return [*_packages(plan), *_gpus(plan), *_model(plan), *asyncio.run(_workers(plan)), *_sandbox(tasks)]


def _packages(plan: Plan) -> Iterator[str]:
    train = plan.train
    absent = [name for name in _PACKAGES if find_spec(name) is None]
    if train.lora is not None and find_spec("peft") is None:
        absent.append("peft")
    if absent:
        yield f"packages: {', '.join(absent)}; {install_command('rl')}"
    for name, used in (("vllm", train.extra.get("use_vllm")), ("deepspeed", train.sharding == "zero3")):
        if used and find_spec(name) is None:
            yield f"package: {name}; pip install {name}"


def runs_on_cpu(train: TrainConfig) -> bool:
    """Whether it would run on the CPU of this machine: there is no GPU, and nothing asks for one."""
    return _allows_cpu(train) and not _found_gpus()


def _allows_cpu(train: TrainConfig) -> bool:
    return not train.extra.get("use_vllm") and train.sharding == "none"


def _gpus(plan: Plan) -> Iterator[str]:
    extra, count = plan.train.extra, plan.train.processes or 1
    if _allows_cpu(plan.train):
        return
    server = extra.get("use_vllm") and extra.get("vllm_mode") == "server"
    found = _found_gpus()
    if found < count + bool(server):
        more = ", and one for the vLLM server" if server else ""
        yield f"GPUs: {count} of {plan.train.gpu_gib:g} GiB{more}; this machine has {found}"


def _found_gpus() -> int:
    if find_spec("torch") is None:
        return 0
    import torch  # noqa: PLC0415  (a dry run works without it)

    return int(torch.cuda.device_count())


def _model(plan: Plan) -> Iterator[str]:
    model = plan.train.model
    if model == "new" or Path(model).exists():
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
    """Workers that cannot be built, for want of a key or a package."""
    found: list[str] = []
    async with plan.pool.open() as pool:
        for index in pool.indices:
            try:
                pool.worker(index)
            except UsageError as error:
                found.append(str(error))
    return found


def _sandbox(tasks: Sequence[Task]) -> Iterator[str]:
    if any(task.kind == "code" for task in tasks) and shutil.which("bwrap") is None:
        yield f"sandbox for programs: {INSTALL}"
