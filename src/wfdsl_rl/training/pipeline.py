"""The pipeline of stages: which stages are run, the model that each starts from, and where an interrupted one resumes.

A stage is complete when its `final/` has `done.json`, which is written last.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers.integrations import get_reporting_integration_callbacks

from wfdsl.errors import UsageError, WfdslError
from wfdsl.files import write_whole
from wfdsl.interpreter.journal_file import lock_for_sole_use
from wfdsl_rl.training.checkpoints import import_gguf, newest_complete
from wfdsl_rl.training.config import GrpoStage, SftStage
from wfdsl_rl.training.data import read_rows
from wfdsl_rl.training.estimate import unusable
from wfdsl_rl.training.plan import DONE, JOURNAL, RESOLVED, Setup
from wfdsl_rl.training.stages import grpo_config, quiet_libraries, train_grpo, train_sft

_DISK_FULL = ("No space left on device", "Disk quota exceeded", "PytorchStreamWriter failed writing", "unexpected pos")
"""Messages of the system, safetensors and torch about a file that could not be written to its end."""
_REFUSING = ("trl", "transformers", "accelerate", "peft", "huggingface_hub", "wandb")
"""The libraries that look at options of [train.trl] only when a trainer is made or begins."""


class DiskFull(WfdslError):  # noqa: N818  (a state, as in ModuleNotFound)
    """The disk is full."""


def run_pipeline(
    setup: Setup, stages: Sequence[str], *, resume: bool = False, resolved: Mapping[str, Any] | None = None
) -> Path:
    """Run the stages that are not complete yet; the folder of the last model.

    Args:
        resolved: The options, which are written once nothing speaks against the training.

    Raises:
        UsageError: the folder has a training already, which is not to be resumed, or which another process runs; or
            something that the training needs is missing.
        DiskFull: the disk is full.
        Diverged: the loss or the gradient is not a finite number.
        NoScore: no completion of a batch could be graded.
    """
    quiet_libraries()
    on_first, names, model = setup.processes.on_first, list(setup.train.stages), setup.train.model
    with _disk_full_said(setup), ExitStack() as running:
        on_first(lambda: _begin(setup, stages, running, resume=resume, resolved=resolved))
        for at, name in enumerate(names[: names.index(stages[-1]) + 1]):
            final = setup.folder(name) / "final"
            is_done = on_first((final / DONE).is_file)
            if name in stages and is_done:
                setup.say(f"{name}: already complete, {final}")
            elif name in stages:
                model = on_first(partial(_start, setup, names[:at], model))
                setup.say(f"{name}: starts from {model}")
                _run(setup, name, model)
                on_first(partial(write_whole, final / DONE, json.dumps({"stage": name, "from": model}) + "\n"))
            if name in stages or is_done:
                model = str(final)
    return Path(model)


def _begin(
    setup: Setup, stages: Sequence[str], running: ExitStack, *, resume: bool, resolved: Mapping[str, Any] | None
) -> None:
    """What is done once before the stages: first, everything that is needed later is checked."""
    if not resume:
        _require_fresh(setup, stages)
    for problem in unusable(setup.train, setup.processes.count):
        raise UsageError(problem)
    require_arguments(setup, stages)
    setup.reward(stages[0])  # loads a function of one's own
    files = [each for name in stages if isinstance(each := setup.train.stages[name], SftStage) and not each.samples]
    for stage in files:
        read_rows(Path(stage.rows))
    if len(files) < len(stages) and any(task.kind == "code" for task in setup.all_tasks):
        from wfdsl.grading.code import shared_sandbox  # noqa: PLC0415  (only programs need it)

        asyncio.run(shared_sandbox().probe())  # without it every program is unjudged, and teaches nothing
    running.callback(os.close, lock_for_sole_use(setup.out / JOURNAL))
    if resolved is not None:
        write_whole(setup.out / RESOLVED, json.dumps(resolved, indent=2) + "\n")
    together = "" if setup.processes.count == 1 else f", {setup.processes.count} processes"
    setup.say(f"{', '.join(stages)}: everything goes to {setup.out}{together}")


def _require_fresh(setup: Setup, stages: Sequence[str]) -> None:
    """Refuse to overwrite a training that was begun: a stage that is there, or one that has not ended."""
    for name in setup.train.stages:
        ended = (setup.folder(name) / "final" / DONE).is_file()
        if any(map(Path.is_file, setup.folder(name).rglob("*"))) and (name in stages or not ended):
            state = f"has the stage {name} already" if ended else f"has begun the stage {name} and not finished it"
            raise UsageError(f"{setup.out} {state}; continue it with --resume {setup.out}, or use another --out")


def _start(setup: Setup, before: Sequence[str], model: str) -> str:
    """The folder of the model that a stage starts from. Checkpoints of the stages before lose their optimizers."""
    for stage in before:
        for path in setup.folder(stage).glob("checkpoint-*/optimizer.*"):
            path.unlink()
    return import_gguf(model, setup.out / "imported")


def _run(setup: Setup, name: str, model: str) -> None:
    checkpoint = setup.processes.on_first(lambda: newest_complete(setup, name))
    train: Callable[..., Path] = train_grpo
    if isinstance(setup.train.stages[name], SftStage):
        train = train_sft
    elif setup.overlap:
        from wfdsl_rl.training.asynchronous import train_async as train  # noqa: PLC0415  (an experimental part of TRL)
    logged: list[dict[str, Any]] = []
    with _refusals_said(setup, logged):
        train(replace(setup, listeners=(*setup.listeners, logged.append)), name, model, checkpoint=checkpoint)
    gc.unfreeze()  # vLLM in this process freezes all that there is when it starts, which would keep the trainer
    gc.collect()  # trainers refer to themselves, and the next stage needs their memory
    torch.cuda.empty_cache()  # of nothing, without a GPU
    if "wandb" in setup.train.trl.get("report_to", ()):  # else the next stage would add to this one's curves
        import_module("wandb").finish()


def require_arguments(setup: Setup, stages: Sequence[str]) -> None:
    """Refuse arguments of [train.trl] that TRL does not take, or that would fail once it trains.

    Raises:
        UsageError: there is one.
    """
    arguments: Callable[..., Any] = grpo_config
    with _refusals_said(setup):
        if setup.overlap:
            from wfdsl_rl.training.asynchronous import async_config as arguments  # noqa: PLC0415  (as in `_run`)
        for name in stages:
            if isinstance(stage := setup.train.stages[name], GrpoStage):
                transformers.Trainer.get_optimizer_cls_and_kwargs(arguments(stage, setup.train, setup.folder(name)))
        for callback in get_reporting_integration_callbacks(setup.train.trl.get("report_to", "none")):
            callback()


@contextmanager
def _refusals_said(setup: Setup, logged: Sequence[Any] = ()) -> Iterator[None]:
    """What TRL or a library of it raises before a step is logged is a mistake in [train.trl], unless memory is full."""
    try:
        yield
    except Exception as error:
        *_, (frame, _) = walk_tb(error.__traceback__)
        library = frame.f_globals["__name__"].partition(".")[0]
        if logged or library not in _REFUSING or not setup.train.trl or isinstance(error, torch.OutOfMemoryError):
            raise
        raise UsageError(f"train.trl ({', '.join(setup.train.trl)}): {library} refuses an option: {error}") from error


@contextmanager
def _disk_full_said(setup: Setup) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        if not any(said in str(error) for said in _DISK_FULL):
            raise
        raise DiskFull(f"{setup.out}: no space left; free some, then continue with --resume {setup.out}") from error
