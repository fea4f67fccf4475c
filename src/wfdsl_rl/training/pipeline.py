"""A training from its beginning to its end: which stages are run, from what they start, and where one goes on.

A stage is over when its `final/` has `done.json`, which is written last. So whatever ends a training, the next one
finds what is whole and goes on behind it.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import transformers
from safetensors import SafetensorError
from transformers.integrations import get_reporting_integration_callbacks

from wfdsl.conductor.checkpoint import FILE
from wfdsl.errors import UsageError, WfdslError
from wfdsl_rl.files import write_whole
from wfdsl_rl.gym.tiny.sft import new_model, warm_up
from wfdsl_rl.training.checkpoints import newest_whole
from wfdsl_rl.training.config import STAGES
from wfdsl_rl.training.feasible import require_feasible
from wfdsl_rl.training.grpo import grpo_config, quiet_libraries
from wfdsl_rl.training.records import drop_lines_after
from wfdsl_rl.training.stages import reinforce
from wfdsl_rl.training.watching import measure_alone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wfdsl_rl.training.config import StageName
    from wfdsl_rl.training.setting import Setting

DONE = "done.json"
_FULL = ("No space left on device", "Disk quota exceeded", "PytorchStreamWriter failed writing", "unexpected pos")
"""What safetensors and torch say where a file could not be written to its end."""


class DiskFull(WfdslError):  # noqa: N818  (a state, as in ModuleNotFound)
    """There is no room for what a training leaves behind."""


def run_course(setting: Setting, stages: Sequence[StageName], *, resume: bool = False) -> Path:
    """Run the stages that are not over yet; the folder of the model that came out last.

    Raises:
        UsageError: there is something in the folder already, and it is not to be gone on with; a stage that comes
            before the first one has not been run; or something that the training needs is not there.
        DiskFull: there is no room for its files.
        Diverged: the loss or the gradient is not a finite number.
        NoOutcome: nothing in a batch has an outcome.
    """
    require_fresh(setting, stages, resume=resume)
    _require_all(setting, stages)
    quiet_libraries()
    logging.getLogger("trl.trainer.grpo_trainer").addFilter(_is_news)
    setting.out.mkdir(parents=True, exist_ok=True)
    setting.say(f"{', '.join(stages)}: everything goes to {setting.out}")
    with _disk_full_said(setting):
        if _graded(stages):
            measure_alone(setting)
        model = _start(setting, stages[0])
        for name in stages:
            final = setting.folder(name) / "final"
            if (final / DONE).is_file():
                setting.say(f"{name}: is over already, {final}")
            else:
                setting.say(f"{name}: starts from {model}")
                final = _run(setting, name, model)
                write_whole(final / DONE, json.dumps({"stage": name, "from": model}) + "\n")
            model = str(final)
    return setting.folder(stages[-1]) / "final"


def require_fresh(setting: Setting, stages: Sequence[StageName], *, resume: bool) -> None:
    """Refuse to overwrite a training that was begun.

    Raises:
        UsageError: the folder has one of the stages already, and it is not to be gone on with.
    """
    begun = [name for name in stages if setting.folder(name).exists()]
    if begun and not resume:
        raise UsageError(
            f"{setting.out} has the stage {begun[0]} already: go on with --resume {setting.out}, or take another --out"
        )


def _run(setting: Setting, name: StageName, model: str) -> Path:
    metrics = setting.metrics_file
    if name == "warmup":
        drop_lines_after(metrics, name, -1)
        return warm_up(setting, model)
    found = newest_whole(setting.folder(name))
    for problem in found.skipped:
        setting.say(f"{name}: skipped a checkpoint: {problem}")
    if found.path is not None:
        setting.say(f"{name}: goes on from {found.path}")
    else:
        drop_lines_after(metrics, name, -1)
    return reinforce(setting, name, model, checkpoint=found.path)


def _start(setting: Setting, first: StageName) -> str:
    """The model that the first stage starts from: that of the latest stage before it, else the experiment's."""
    for name in reversed(STAGES[: STAGES.index(first)]):
        final = setting.folder(name) / "final"
        if (final / DONE).is_file():
            return str(final)
    if setting.train.model != "new":
        return setting.train.model
    if first not in ("warmup", "base"):
        raise UsageError(f"the stage {first} starts from the model of an earlier one, and {setting.out} has none")
    folder = setting.out / "new"
    return str(folder if (folder / FILE).is_file() else new_model(setting))  # the prompt is written last


def _require_all(setting: Setting, stages: Sequence[StageName]) -> None:
    """Refuse to begin without something that would be missed only later."""
    require_feasible(setting.train, setting.pool, stages)
    _require_arguments(setting, stages)
    _require_model(setting.train.model)
    if _graded(stages):
        _require_sandbox(setting)


def _require_arguments(setting: Setting, stages: Sequence[StageName]) -> None:
    for name in stages:
        if name == "warmup":
            continue
        stage = getattr(setting.train, name)
        try:
            grpo_config(stage, setting.train, setting.folder(name), cpu=setting.cpu, evaluate=False, resumed=False)
        except (TypeError, ValueError) as error:
            raise UsageError(f"train.{name}, train.extra: TRL does not take these arguments: {error}") from error
    try:
        for callback in get_reporting_integration_callbacks(list(setting.train.report_to)):
            callback()
    except (ValueError, RuntimeError, ImportError) as error:
        raise UsageError(f"train.report_to: {error}") from error


def _require_model(model: str) -> None:
    if model == "new" or (Path(model) / "adapter_config.json").is_file():
        return
    try:
        transformers.AutoConfig.from_pretrained(model)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UsageError(f"train.model: {model!r} is no folder and no name of the hub: {reason}") from error


def _graded(stages: Sequence[StageName]) -> bool:
    """Whether anything is graded: a warm-up looks at no answer."""
    return any(name != "warmup" for name in stages)


def _require_sandbox(setting: Setting) -> None:
    """Without the sandbox every program is unjudged, and a whole kind of question would silently teach nothing."""
    if setting.has_programs:
        from wfdsl_rl.grading.code import shared_sandbox  # noqa: PLC0415  (only programs need it)

        asyncio.run(shared_sandbox().probe())


def _is_news(record: logging.LogRecord) -> bool:
    """Whether trl tells something that we do not: completions without an outcome are counted and told by us."""
    return "reward functions returned None" not in record.getMessage()


@contextmanager
def _disk_full_said(setting: Setting) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if not full and not any(said in str(error) for said in _FULL):
            raise
        raise DiskFull(f"{setting.out}: no space left; make room, and go on with --resume {setting.out}") from error
