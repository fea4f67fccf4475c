"""The pipeline of stages: which stages are run, the model that each starts from, and where an interrupted one resumes.

A stage is complete when its `final/` has `done.json`, which is written last.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers.integrations import get_reporting_integration_callbacks

from wfdsl.errors import UsageError, WfdslError
from wfdsl.files import write_whole
from wfdsl.interpreter.journal_file import lock_for_sole_use
from wfdsl.own_code import load_function
from wfdsl_rl.training.checkpoints import (
    ADAPTER,
    WEIGHTS,
    drop_optimizers,
    gguf_of,
    import_gguf,
    newest_complete,
    step_of,
)
from wfdsl_rl.training.config import GrpoStage, SftStage, TrainConfig
from wfdsl_rl.training.data import read_rows
from wfdsl_rl.training.estimate import unusable
from wfdsl_rl.training.grpo import grpo_config, quiet_libraries
from wfdsl_rl.training.plan import DONE, JOURNAL, RESOLVED, Setup
from wfdsl_rl.training.stages import drop_lines_after, train_grpo, train_sft

_DISK_FULL = ("No space left on device", "Disk quota exceeded", "PytorchStreamWriter failed writing", "unexpected pos")
"""Messages of safetensors and torch about a file that could not be written to its end."""


class DiskFull(WfdslError):  # noqa: N818  (a state, as in ModuleNotFound)
    """The disk is full."""


def run_pipeline(
    setup: Setup, stages: Sequence[str], *, resume: bool = False, resolved: Mapping[str, Any] | None = None
) -> Path:
    """Run the stages that are not complete yet; the folder of the last model.

    Args:
        resolved: The options, which are written once nothing speaks against the training.

    Raises:
        UsageError: the folder has a training already, which is not to be resumed, or which another process runs; a
            stage before the first one has not been run; or something that the training needs is missing.
        DiskFull: the disk is full.
        Diverged: the loss or the gradient is not a finite number.
        NoScore: no completion of a batch could be graded.
    """
    quiet_libraries()
    logging.getLogger("trl.trainer.grpo_trainer").addFilter(_is_news)
    on_first = setup.processes.on_first
    with _disk_full_said(setup), ExitStack() as running:
        model = on_first(lambda: _begin(setup, stages, running, resume=resume, resolved=resolved))
        for name in stages:
            final = setup.folder(name) / "final"
            if on_first((final / DONE).is_file):
                setup.say(f"{name}: already complete, {final}")
            else:
                setup.say(f"{name}: starts from {model}")
                for earlier in _before(setup, name):
                    on_first(partial(drop_optimizers, setup.folder(earlier)))
                _run(setup, name, model)
                on_first(partial(write_whole, final / DONE, json.dumps({"stage": name, "from": model}) + "\n"))
            model = str(final)
    return setup.folder(stages[-1]) / "final"


def _begin(
    setup: Setup, stages: Sequence[str], running: ExitStack, *, resume: bool, resolved: Mapping[str, Any] | None
) -> str:
    """What is done once before the stages, checks first; the model that the first one starts from."""
    if not resume:
        _require_fresh(setup, stages)
    model = _start(setup, stages[0])
    _require_all(setup, stages)
    running.callback(os.close, lock_for_sole_use(setup.out / JOURNAL))
    if resolved is not None:
        write_whole(setup.out / RESOLVED, json.dumps(resolved, indent=2) + "\n")
    together = "" if setup.processes.count == 1 else f", {setup.processes.count} processes"
    setup.say(f"{', '.join(stages)}: everything goes to {setup.out}{together}")
    return import_gguf(model, setup.out / "imported")


def _require_fresh(setup: Setup, stages: Sequence[str]) -> None:
    """Refuse to overwrite a training that was begun: a stage that is there, or one that has not ended."""
    for name in setup.train.stages:
        folder = setup.folder(name)
        if not folder.exists():
            continue
        unfinished = not (folder / "final" / DONE).is_file()
        if unfinished or name in stages:
            state = "has begun the stage {} and not finished it" if unfinished else "has the stage {} already"
            raise UsageError(
                f"{setup.out} {state.format(name)}; continue it with --resume {setup.out}, or use another --out"
            )


def _run(setup: Setup, name: str, model: str) -> None:
    checkpoint = setup.processes.on_first(lambda: _checkpoint(setup, name))
    if isinstance(setup.train.stages[name], SftStage):
        train_sft(setup, name, model, checkpoint=checkpoint)
    elif setup.overlap:
        from wfdsl_rl.training.asynchronous import train_async  # noqa: PLC0415  (an experimental part of TRL)

        train_async(setup, name, model, checkpoint=checkpoint)
    else:
        train_grpo(setup, name, model, checkpoint=checkpoint)
    gc.unfreeze()  # vLLM in this process freezes all that there is when it starts, which would keep the trainer
    gc.collect()  # trainers refer to themselves, and the next stage needs their memory
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if "wandb" in setup.train.trl.get("report_to", ()):  # else the next stage would add to this one's curves
        import_module("wandb").finish()


def _checkpoint(setup: Setup, name: str) -> Path | None:
    """The checkpoint that a stage resumes from; its later metrics are dropped."""
    count = setup.processes.count
    found = newest_complete(setup.folder(name), count, say=lambda line: setup.say(f"{name}: {line}"))
    if found is not None:
        setup.say(f"{name}: resumes from {found}")
    drop_lines_after(setup.metrics_file, name, -1 if found is None else step_of(found))
    return found


def _start(setup: Setup, first: str) -> str:
    """The model that the first stage starts from: the latest earlier stage's, else the experiment's."""
    for name in reversed(_before(setup, first)):
        final = setup.folder(name) / "final"
        if (final / DONE).is_file():
            return str(final)
    return setup.train.model


def _before(setup: Setup, name: str) -> list[str]:
    """The stages before one, in their order."""
    names = list(setup.train.stages)
    return names[: names.index(name)]


def _require_all(setup: Setup, stages: Sequence[str]) -> None:
    """Refuse to begin without something that is needed later."""
    setup.train.require_feasible(setup.pool, stages)
    for problem in unusable(setup.train, setup.processes.count):
        raise UsageError(problem)
    require_arguments(setup.train, stages, setup.out, overlap=setup.overlap)
    if setup.train.reward_function:
        load_function(setup.train.reward_function)
    begun = [setup.train.stages[name] for name in stages]
    for stage in begun:
        if isinstance(stage, SftStage) and not stage.samples:
            read_rows(Path(stage.rows))
    _require_model(setup.train.model)
    if setup.has_programs and any(isinstance(stage, GrpoStage) or stage.samples for stage in begun):
        from wfdsl.grading.code import shared_sandbox  # noqa: PLC0415  (only programs need it)

        asyncio.run(shared_sandbox().probe())  # without it every program is unjudged, and teaches nothing


def require_arguments(train: TrainConfig, stages: Sequence[str], out: Path, *, overlap: bool) -> None:
    """Refuse arguments of [train.trl] that TRL does not take, or that would fail once it trains.

    Args:
        out: The folder of the training; nothing is written.
        overlap: Whether the stages are trained with TRL's asynchronous trainer.

    Raises:
        UsageError: there is one.
    """
    for name in stages:
        stage = train.stages[name]
        if not isinstance(stage, GrpoStage):
            continue
        try:
            if overlap:
                from wfdsl_rl.training.asynchronous import async_config  # noqa: PLC0415  (as in `_run`)

                config = async_config(stage, train, out / name)
            else:
                config = grpo_config(stage, train, out / name, evaluate=False, resumed=False)
            transformers.Trainer.get_optimizer_cls_and_kwargs(config)
        except (TypeError, ValueError, ImportError) as error:
            raise UsageError(f"train.stages.{name}, train.trl: TRL does not take these arguments: {error}") from error
    try:
        for callback in get_reporting_integration_callbacks(train.trl.get("report_to", "none")):
            callback()
    except (ValueError, RuntimeError, ImportError) as error:
        raise UsageError(f"train.trl.report_to: {error}") from error


def _require_model(model: str) -> None:
    if (Path(model) / ADAPTER).is_file() or gguf_of(model) is not None:
        return
    try:
        transformers.AutoConfig.from_pretrained(model)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UsageError(
            f"train.model: {model!r} is neither a local directory nor a Hugging Face model id: {reason}"
        ) from error
    if Path(model).is_dir() and not any(next(Path(model).glob(kind), None) for kind in WEIGHTS):
        raise UsageError(
            f"train.model: the folder {model} has no weights ({', '.join(WEIGHTS)}); copy them there, or set "
            "train.model to another folder"
        )


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a message of trl is new: we count and report ungraded completions ourselves."""
    return "reward functions returned None" not in record.getMessage()


@contextmanager
def _disk_full_said(setup: Setup) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if not full and not any(said in str(error) for said in _DISK_FULL):
            raise
        raise DiskFull(f"{setup.out}: no space left; free some, then continue with --resume {setup.out}") from error
