"""A training from its beginning to its end: which stages are run, from what they start, and where one goes on.

A stage is over when its `final/` has `done.json`, which is written last. So whatever ends a training, the next one
finds what is whole and goes on behind it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wfdsl.errors import UsageError
from wfdsl_rl.training.checkpoints import newest_whole
from wfdsl_rl.training.settings import STAGES
from wfdsl_rl.training.stages import new_model, reinforce, warm_up
from wfdsl_rl.training.trainer import quiet_libraries
from wfdsl_rl.training.watching import measure_alone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wfdsl_rl.training.setting import Setting
    from wfdsl_rl.training.settings import StageName

DONE = "done.json"


def run_course(setting: Setting, stages: Sequence[StageName], *, resume: bool = False) -> Path:
    """Run the stages that are not over yet; the folder of the model that came out last.

    Raises:
        UsageError: there is something in the folder already, and it is not to be gone on with; or a stage that comes
            before the first one has not been run.
    """
    _require_fresh(setting, stages, resume=resume)
    quiet_libraries()
    setting.out.mkdir(parents=True, exist_ok=True)
    measure_alone(setting)
    model = _start(setting, stages[0])
    for name in stages:
        final = setting.folder(name) / "final"
        if (final / DONE).is_file():
            setting.say(f"{name}: is over already, {final}")
        else:
            setting.say(f"{name}: starts from {model}")
            final = _run(setting, name, model)
            (final / DONE).write_text(json.dumps({"stage": name, "from": model}) + "\n", encoding="utf-8")
        model = str(final)
    return setting.folder(stages[-1]) / "final"


def _run(setting: Setting, name: StageName, model: str) -> Path:
    if name == "warmup":
        return warm_up(setting, model)
    found = newest_whole(setting.folder(name))
    for problem in found.skipped:
        setting.say(f"{name}: skipped a checkpoint: {problem}")
    if found.path is not None:
        setting.say(f"{name}: goes on from {found.path}")
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
    return str(folder if (folder / "config.json").is_file() else new_model(setting))


def _require_fresh(setting: Setting, stages: Sequence[StageName], *, resume: bool) -> None:
    begun = [name for name in stages if setting.folder(name).exists()]
    if begun and not resume:
        raise UsageError(
            f"{setting.out} has the stage {begun[0]} already: go on with --resume {setting.out}, or take another --out"
        )
