"""From the name of a preset or a file to what a training needs: the pool, the tasks, the prompt, the settings."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import ValidationError

from wfdsl.conductor.prompt import Prompt
from wfdsl.config import to_table
from wfdsl.errors import UsageError
from wfdsl.experiment import read_experiment
from wfdsl.language.check import DEFAULT_MAX_STEPS
from wfdsl.workers.entry import first_problem
from wfdsl_rl.tasks.loading import load_tasks
from wfdsl_rl.tasks.rows import is_data_file
from wfdsl_rl.training.config import TrainSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wfdsl.experiment import Experiment
    from wfdsl.workers.pool import Pool
    from wfdsl_rl.tasks.task import Task

_PRESETS = files("wfdsl_rl.training") / "presets"


class Planned(NamedTuple):
    """All that a training needs, but for where it goes."""

    name: str
    experiment: Experiment
    train: TrainSettings
    pool: Pool
    prompt: Prompt
    max_steps: int

    def tasks(self) -> tuple[Task, ...]:
        """What is trained on.

        Raises:
            UsageError: it cannot be read.
        """
        train = self.train
        return _load("tasks", train.tasks, train.task_count, train.seed, split="train")

    def eval_tasks(self) -> tuple[Task, ...]:
        """What evaluations ask.

        Raises:
            UsageError: it cannot be read.
        """
        train = self.train
        source = train.eval_tasks or (train.tasks if _is_gym(train.tasks) else "")
        if not source or not train.eval_count:
            return ()
        return _load("eval_tasks", source, train.eval_count, train.seed, split="test")

    def resolved(self) -> dict[str, Any]:
        """Everything that was decided, as plain values."""
        experiment = self.experiment
        return {
            "experiment": self.name,
            "pool": {"name": self.pool.name, "workers": [entry.model_dump(mode="json") for entry in self.pool]},
            "prompt": {**self.prompt.fingerprint, "max_steps": self.max_steps},
            "budget": to_table(experiment.budget),
            "run": to_table(experiment.run),
            "train": self.train.model_dump(mode="json"),
        }


def preset_names() -> tuple[str, ...]:
    """The presets that come with the package, sorted."""
    return tuple(sorted(Path(each.name).stem for each in _PRESETS.iterdir() if each.name.endswith(".toml")))


def plan_training(name: str, settings: Iterable[str] = ()) -> Planned:
    """Read a preset or a file, with settings such as `train.base.iterations=20` over it.

    Raises:
        UsageError: there is no such preset or file, a key is not known, or a value does not fit.
    """
    path = _path(name)
    experiment = read_experiment(path, settings)
    table = experiment.conductor
    return Planned(
        name,
        experiment,
        _train_settings(dict(experiment.train), str(path)),
        experiment.with_pool()[0],
        Prompt.load(table.prompt or "paper", examples=table.examples),
        table.max_steps or DEFAULT_MAX_STEPS,
    )


def _path(name: str) -> Path:
    if name in preset_names():
        return Path(str(_PRESETS / f"{name}.toml"))
    path = Path(name)
    if not path.is_file():
        known = ", ".join(preset_names())
        raise UsageError(f"there is no preset and no file {name!r}; presets are {known}; or give a .toml file")
    return path


def _train_settings(table: dict[str, Any], source: str) -> TrainSettings:
    if not table:
        raise UsageError(f"{source}: there is no table [train]; it says what is trained, and on which tasks")
    try:
        return TrainSettings.model_validate(table)
    except ValidationError as error:
        key, reason = first_problem(error)
        raise UsageError(f"{source}: train.{key}: {reason}") from None


def _is_gym(name: str) -> bool:
    return name.startswith("gym/")


def _load(key: str, source: str, count: int, seed: int, *, split: Literal["train", "test"]) -> tuple[Task, ...]:
    path = Path(source)
    try:
        return tuple(load_tasks(f"{source}@{split}" if _is_gym(source) else source, limit=count, seed=seed))
    except UsageError as error:
        advice = ""
        if is_data_file(path) and not path.exists():  # such as the mix that the paper's presets name
            advice = f"; write it with wfdsl-data select, or name others with --set train.{key}=FILE or =gym/paper7"
        raise UsageError(f"train.{key}: {error}{advice}") from None
