"""Read a preset or a TOML file: the pool, the tasks, the prompt and the options of a training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.listing import offered_workers
from wfdsl.conductor.prompt import Prompt
from wfdsl.errors import UsageError
from wfdsl.evaluation.fingerprints import is_simulated
from wfdsl.experiment import Experiment, read_experiment
from wfdsl.experiment import run_options as options_of
from wfdsl.interpreter.budget import UNLIMITED
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.limits import ConcurrencyLimiter
from wfdsl.interpreter.running import RunOptions
from wfdsl.language.check import DEFAULT_MAX_STEPS
from wfdsl.settings import did_you_mean, first_problem, to_table
from wfdsl.tasks.loading import load_tasks
from wfdsl.tasks.rows import is_data_file
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.reward_maker import budget_tracker
from wfdsl_rl.training.config import NO_PRICES, StageName, TrainConfig

JOURNAL = "journal.db"
_PRESETS = files("wfdsl_rl.training") / "presets"
_Options = TypeVar("_Options", bound=BaseModel)
_HONOURED: Final = ("prompt", "examples", "max_steps", "access", "without")
"""The keys of [conductor] that shape a training."""
_INSTEAD: Final = {"pick": "train.pools.pick", "shuffle": "train.pools.shuffle", "seed": "train.seed"}
"""The keys of a training that do what a key of [conductor] does elsewhere."""


class Plan(NamedTuple):
    """All that a training needs, except where it writes to."""

    name: str
    experiment: Experiment
    train: TrainConfig
    pool: Pool
    prompt: Prompt
    max_steps: int

    def tasks(self) -> tuple[Task, ...]:
        """The training tasks.

        Raises:
            UsageError: they cannot be read.
        """
        train = self.train
        return _load("tasks", train.tasks, train.task_count, train.seed, split="train")

    def stage_tasks(self, stages: Iterable[StageName]) -> dict[StageName, tuple[Task, ...]]:
        """The training tasks of the stages that have tasks of their own.

        Raises:
            UsageError: they cannot be read.
        """
        own = {name: self.train.grpo(name) for name in stages if name != "sft"}
        return {
            name: _load(
                f"{name}.tasks", stage.tasks, stage.task_count or self.train.task_count, self.train.seed, split="train"
            )
            for name, stage in own.items()
            if stage.tasks
        }

    def eval_tasks(self) -> tuple[Task, ...]:
        """The tasks of the evaluations.

        Raises:
            UsageError: they cannot be read.
        """
        train = self.train
        source = train.eval_tasks or (train.tasks if _is_gym(train.tasks) else "")
        if not source or not train.eval_count:
            return ()
        return _load("eval_tasks", source, train.eval_count, train.seed, split="test")

    def resolved(self) -> dict[str, Any]:
        """Every option as plain values."""
        experiment = self.experiment
        return {
            "experiment": self.name,
            "pool": {"name": self.pool.name, "workers": [entry.model_dump(mode="json") for entry in self.pool]},
            "prompt": {**self.prompt.fingerprint, "max_steps": self.max_steps},
            "access": experiment.conductor.access,
            "budget": to_table(experiment.budget),
            "run": to_table(experiment.run),
            "train": self.train.model_dump(mode="json"),
        }


def preset_names() -> tuple[str, ...]:
    """The presets that come with the package, sorted."""
    return tuple(sorted(Path(each.name).stem for each in _PRESETS.iterdir() if each.name.endswith(".toml")))


def read_plan(name: str, settings: Iterable[str] = ()) -> Plan:
    """Read a preset or a file, overridden by settings such as `train.base.iterations=20`.

    Raises:
        UsageError: there is no such preset or file, a key is not known, or a value does not fit.
    """
    path = _path(name)
    experiment = read_experiment(path, settings)
    table, train = experiment.conductor, dict(experiment.train)
    if not train:
        raise UsageError(f"{path}: the table [train] is missing; it says what is trained, and on which tasks")
    config = _validated(TrainConfig, train, f"{path}: train")
    _require_honoured(path, table)
    prompt = Prompt.load(table.prompt or "paper", examples=table.examples)
    if config.prices != NO_PRICES and not prompt.says_effort:
        raise UsageError(
            f'{path}: train.prices: the template set "{prompt.name}" does not say the effort; '
            "write {effort} into its `ask`, and a text for each effort"
        )
    steps = table.max_steps or DEFAULT_MAX_STEPS
    pool = offered_workers(ConductorConfig(without=table.without), experiment.with_pool()[0], "")
    return Plan(name, experiment, config, pool, prompt, steps)


@contextmanager
def run_options(experiment: Experiment, pool: Pool, out: Path) -> Iterator[RunOptions]:
    """What all workflow runs share: the journal, open inside the block, the budget and the limit of calls.

    The budget counts all sessions. Simulated workers have no journal, which would cost more than their calls.

    Raises:
        JournalFailure: the journal cannot be opened.
    """
    run = experiment.run
    options = options_of(run, without=("concurrency", "seed", "reuse"))
    if run.concurrency is not None:
        options["limiter"] = ConcurrencyLimiter(run.concurrency)
    journal: Journal | None = None
    with ExitStack() as stack:
        if run.journal and not is_simulated(pool):
            out.mkdir(parents=True, exist_ok=True)
            journal = stack.enter_context(Journal(out / JOURNAL))
            options["journal"] = journal
        if experiment.budget != UNLIMITED:
            options["budget"] = budget_tracker(experiment.budget, journal)
        yield options


def _require_honoured(path: Path, table: ConductorConfig) -> None:
    """Refuse keys of [conductor] that a training would ignore.

    Raises:
        UsageError: there is one; the message names it.
    """
    for option in fields(table):
        given = getattr(table, option.name)
        if option.name not in _HONOURED and given != getattr(ConductorConfig(), option.name):
            instead = _INSTEAD.get(option.name)
            raise UsageError(
                f"{path}: conductor.{option.name} has no effect in a training: "
                + (f"set {instead} instead" if instead else "remove it")
            )


def _path(name: str) -> Path:
    if name in preset_names():
        return Path(str(_PRESETS / f"{name}.toml"))
    path = Path(name)
    if not path.is_file():
        known = ", ".join(preset_names())
        raise UsageError(f"there is no preset and no file {name!r}; presets are {known}; or give a .toml file")
    return path


def _validated(kind: type[_Options], table: Any, place: str) -> _Options:
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        if unknown := [one["loc"] for one in error.errors() if one["type"] == "extra_forbidden"]:
            *tables, key = map(str, unknown[0])
            table = ".".join([place, *tables])
            raise UsageError(f'{table} has no key "{key}". {did_you_mean(key, _keys_of(kind, tables))}') from None
        key, reason = first_problem(error)
        raise UsageError(f"{place}.{key}: {reason}") from None


def _keys_of(kind: type[BaseModel], tables: Sequence[str]) -> Iterable[str]:
    """The keys of a table inside the table of a class."""
    for table in tables:
        parts = (kind.model_fields[table].annotation, *get_args(kind.model_fields[table].annotation))
        kind = next(part for part in parts if isinstance(part, type) and issubclass(part, BaseModel))
    return kind.model_fields


def _is_gym(name: str) -> bool:
    return name.startswith("gym/")


def _load(key: str, source: str, count: int, seed: int, *, split: Literal["train", "test"]) -> tuple[Task, ...]:
    path = Path(source)
    try:
        return tuple(
            load_tasks(f"{source}@{split}" if _is_gym(source) and "@" not in source else source, limit=count, seed=seed)
        )
    except UsageError as error:
        advice = ""
        if is_data_file(path) and not path.exists():  # such as the mix of tasks that the paper's presets name
            advice = f"; write it with `wfdsl data select`, or set another with --set train.{key}=FILE or =gym/seven"
        raise UsageError(f"train.{key}: {error}{advice}") from None
