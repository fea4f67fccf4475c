"""What a training is: a preset or a TOML file, and what all of its stages share.

OUT/resolved.json             the experiment as it was run
OUT/journal.db                every worker call; its lock is held while a process trains
OUT/STAGE/                    checkpoints, samples, every log entry, and `final/`, which loads as a Conductor
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.listing import offered_workers
from wfdsl.conductor.prompt import Prompt
from wfdsl.errors import UsageError
from wfdsl.evaluation.manifest import is_simulated
from wfdsl.experiment import Experiment, read_experiment
from wfdsl.experiment import run_options as options_of
from wfdsl.interpreter.budget import UNLIMITED
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.limits import ConcurrencyLimiter
from wfdsl.interpreter.running import RunOptions
from wfdsl.language.check import DEFAULT_MAX_STEPS
from wfdsl.own_code import load_function
from wfdsl.settings import not_default, to_table
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
RESOLVED: Final = "resolved.json"
JOURNAL: Final = "journal.db"
METRICS: Final = "metrics.jsonl"
"""In the folder of a stage: its log entries."""
_PRESETS: Final = files("wfdsl_rl.training") / "presets"
_HONOURED: Final = ("prompt", "examples", "max_steps", "access", "without")
"""The keys of [conductor] that shape a training."""
_INSTEAD: Final = {"pick": "train.stages.NAME.pick", "shuffle": "train.stages.NAME.pick", "seed": "train.seed"}
"""The keys of a training that do what a key of [conductor] does elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A training: its options, what its stages share, and where it writes to."""

    name: str = ""
    """The preset or the file."""
    experiment: Experiment = field(default_factory=Experiment)
    """What its file says: in prompts as in rewards, `[conductor]` says what an access entry may be."""
    train: TrainConfig
    pool: Pool
    prompt: Prompt
    max_steps: int
    tasks: tuple[Task, ...] = ()
    stage_tasks: Mapping[str, tuple[Task, ...]] = field(default_factory=dict)
    """The training tasks of stages that do not use `tasks`."""
    out: Path = Path()
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

    def with_tasks(self, stages: Iterable[str], missing: list[str] | None = None) -> Setup:
        """With the tasks of these stages, which are read now.

        Args:
            missing: Gets a line for each reason why tasks cannot be read; unless given, that is an error.

        Raises:
            UsageError: tasks cannot be read.
        """

        def read(key: str, source: str) -> tuple[Task, ...]:
            named = f"{source}@train" if source.startswith("gym/") and "@" not in source else source
            try:
                return tuple(load_tasks(named, limit=self.train.task_count, seed=self.train.seed))
            except UsageError as error:
                problem, path = f"train.{key}: {error}", Path(source)
                if is_data_file(path) and not path.exists():  # such as the mix of tasks that the paper's presets name
                    other = f"set another with --set train.{key}=FILE or =gym/seven"
                    problem += f"; write it with `wfdsl data select`, or {other}"
                if missing is None:
                    raise UsageError(problem) from None
                missing.append(f"tasks: {problem}")
                return ()

        tasks = read("tasks", self.train.tasks)
        own = {name: source for name in stages if (source := getattr(self.train.stages[name], "tasks", ""))}
        own_tasks = {name: read(f"stages.{name}.tasks", source) for name, source in own.items()}
        return replace(self, tasks=tasks, stage_tasks=own_tasks)

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

    @property
    def all_tasks(self) -> tuple[Task, ...]:
        """The tasks of all stages."""
        return (*self.tasks, *(task for tasks in self.stage_tasks.values() for task in tasks))

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
            self.all_tasks,
            prompt=self.prompt,
            max_steps=self.max_steps,
            conductor=self.experiment.conductor,
            values=load_function(train.reward_function) if train.reward_function else train.reward,
            ablation=train.ablation,
            executions=train.stages[stage].executions,
            end_of_text=end_of_text,
            concurrency=train.concurrency,
            deadline_s=train.deadline_s,
            options={**self.options, "question_for": self.experiment.run.question_for},
            seed=f"{train.seed}/{stage}",
            listeners=listeners,
            on_wait=self.on_wait,
            processes=self.processes,
        )


def preset_names() -> tuple[str, ...]:
    """The presets that come with the package, sorted."""
    return tuple(sorted(Path(each.name).stem for each in _PRESETS.iterdir() if each.name.endswith(".toml")))


def read_plan(name: str, settings: Iterable[str] = ()) -> Setup:
    """Read a preset or a file without its tasks, overridden by settings such as `train.stages.base.max_steps=20`.

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
    return Setup(name=name, experiment=experiment, train=config, pool=pool, prompt=prompt, max_steps=steps)


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
    keeps = run.journal and not is_simulated(pool)
    with Journal(out / JOURNAL) if keeps else nullcontext() as journal:
        options["journal"] = journal
        if experiment.budget != UNLIMITED:
            options["budget"] = budget_tracker(experiment.budget, journal)
        yield options


def _require_honoured(path: Path, table: ConductorConfig) -> None:
    """Refuse keys of [conductor] that a training would ignore.

    Raises:
        UsageError: there is one; the message names it.
    """
    for key in not_default(table):
        if key not in _HONOURED:
            advice = f"set {_INSTEAD[key]} instead" if key in _INSTEAD else "remove it"
            raise UsageError(f"{path}: conductor.{key} has no effect in a training: {advice}")


def _path(name: str) -> Path:
    if name in preset_names():
        return Path(str(_PRESETS / f"{name}.toml"))
    path = Path(name)
    if not path.is_file():
        known = ", ".join(preset_names())
        raise UsageError(f"there is no preset and no file {name!r}; presets are {known}; or give a .toml file")
    return path
