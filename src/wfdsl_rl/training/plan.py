"""What a training is: a preset or a TOML file as it is read (`Plan`), and what all of its stages share (`Setup`).

OUT/resolved.json             the experiment as it was run
OUT/journal.db                every worker call; its lock is held while a process trains
OUT/metrics.jsonl             every log entry of every stage
OUT/STAGE/                    checkpoints, samples, and `final/`, which loads as a Conductor
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.listing import offered_workers
from wfdsl.conductor.prompt import Prompt
from wfdsl.errors import UsageError
from wfdsl.evaluation.manifest import is_simulated
from wfdsl.experiment import Experiment, read_experiment
from wfdsl.experiment import run_options as options_of
from wfdsl.interpreter.budget import UNLIMITED
from wfdsl.interpreter.context import QuestionFor
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.limits import ConcurrencyLimiter
from wfdsl.interpreter.running import RunOptions
from wfdsl.language.check import DEFAULT_MAX_STEPS
from wfdsl.own_code import load_function
from wfdsl.settings import to_table
from wfdsl.tasks.loading import load_tasks
from wfdsl.tasks.rows import is_data_file
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.processes import ALONE, Processes
from wfdsl_rl.reward import Listener, Reward
from wfdsl_rl.scoring import budget_tracker
from wfdsl_rl.training.config import TrainConfig

DONE: Final = "done.json"
"""In `STAGE/final`, written last: the stage is complete."""
METRICS: Final = "metrics.jsonl"
RESOLVED: Final = "resolved.json"
JOURNAL: Final = "journal.db"
_PRESETS: Final = files("wfdsl_rl.training") / "presets"
_HONOURED: Final = ("prompt", "examples", "max_steps", "access", "without")
"""The keys of [conductor] that shape a training."""
_INSTEAD: Final = {"pick": "train.stages.NAME.pick", "shuffle": "train.stages.NAME.pick", "seed": "train.seed"}
"""The keys of a training that do what a key of [conductor] does elsewhere."""


class Plan(NamedTuple):
    """All that a training needs, except where it writes to."""

    name: str
    experiment: Experiment
    train: TrainConfig
    pool: Pool
    prompt: Prompt
    max_steps: int

    def tasks(self, stage: str = "") -> tuple[Task, ...]:
        """The training tasks: of a stage, if it has tasks of its own.

        Raises:
            UsageError: they cannot be read.
        """
        train, own = self.train, getattr(self.train.stages.get(stage), "tasks", "")
        key = f"stages.{stage}.tasks" if own else "tasks"
        return _load(key, own or train.tasks, train.task_count, train.seed, split="train")

    def with_own_tasks(self, stages: Iterable[str]) -> list[str]:
        """The stages that have tasks of their own."""
        return [name for name in stages if getattr(self.train.stages[name], "tasks", "")]

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
            "train": asdict(self.train),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What all stages of a training share."""

    train: TrainConfig
    prompt: Prompt
    max_steps: int
    conductor: ConductorConfig = field(default_factory=ConductorConfig)
    """Its `access` says what an access entry may be, in prompts as in rewards."""
    question_for: QuestionFor = "all"
    """Which steps are shown the question."""
    pool: Pool
    tasks: tuple[Task, ...]
    eval_tasks: tuple[Task, ...]
    stage_tasks: Mapping[str, tuple[Task, ...]] = field(default_factory=dict)
    """The training tasks of stages that do not use `tasks`."""
    out: Path
    overlap: bool = False
    """Whether workflows run while the model is updated."""
    processes: Processes = ALONE
    options: RunOptions = field(default_factory=RunOptions)
    """How workflows are run: the journal, the budget and the limits that all runs share."""
    listeners: tuple[Callable[[dict[str, Any]], None], ...] = ()
    """Called with every log entry."""
    on_wait: Callable[[int, int], None] | None = None
    """Called while workflows run, with the number that is waited for and with all of them."""
    say: Callable[[str], None] = print
    """Prints a line for people."""

    @property
    def metrics_file(self) -> Path:
        """The log entries of all stages, as JSON lines."""
        return self.out / METRICS

    @property
    def has_programs(self) -> bool:
        """Whether there are answers that are programs, which have to be run."""
        return any(task.kind == "code" for task in self.all_tasks)

    @property
    def all_tasks(self) -> tuple[Task, ...]:
        """The tasks of all stages and of the evaluations."""
        own = (task for tasks in self.stage_tasks.values() for task in tasks)
        return (*self.tasks, *own, *self.eval_tasks)

    def folder(self, stage: str) -> Path:
        """The folder of a stage."""
        return self.out / stage

    def reward(
        self, stage: str, *, end_of_text: Collection[int] | None = None, listeners: Iterable[Listener] = ()
    ) -> Reward:
        """The reward of a stage: what users of `wfdsl_rl.Reward` get, with the options of the training."""
        train = self.train
        return Reward(
            self.pool,
            {task.id: task for task in self.all_tasks}.values(),
            prompt=self.prompt,
            max_steps=self.max_steps,
            conductor=self.conductor,
            values=load_function(train.reward_function) if train.reward_function else train.reward,
            ablation=train.ablation,
            executions=train.stages[stage].executions,
            end_of_text=end_of_text,
            concurrency=train.concurrency,
            deadline_s=train.deadline_s,
            options={**self.options, "question_for": self.question_for},
            seed=f"{train.seed}/{stage}",
            listeners=listeners,
            on_wait=self.on_wait,
            processes=self.processes,
        )


def preset_names() -> tuple[str, ...]:
    """The presets that come with the package, sorted."""
    return tuple(sorted(Path(each.name).stem for each in _PRESETS.iterdir() if each.name.endswith(".toml")))


def read_plan(name: str, settings: Iterable[str] = ()) -> Plan:
    """Read a preset or a file, overridden by settings such as `train.stages.base.max_steps=20`.

    Raises:
        UsageError: there is no such preset or file, a key is not known, or a value does not fit.
    """
    path = _path(name)
    experiment = read_experiment(path, settings)
    table, train = experiment.conductor, dict(experiment.train)
    if not train:
        raise UsageError(f"{path}: the table [train] is missing; it says what is trained, and on which tasks")
    config = TrainConfig.read(train, f"{path}: train")
    _require_honoured(path, table)
    prompt = Prompt.load(table.prompt or "paper", examples=table.examples)
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
    options = options_of(run, without=("concurrency", "seed"))
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
