"""What all stages of a training share (`Setup`), and the hooks by which an extension changes a training.

An extension is a package that the entry point NAME of the group `wfdsl.training` names, and that a table [train.NAME]
attaches. Its options are an `ExtensionConfig`, its hooks an `Extension`. The classes here change nothing.

OUT/resolved.json             the experiment as it was run
OUT/running/                  a file that is locked while a process trains
OUT/metrics.jsonl             every log entry of every stage
OUT/STAGE/                    checkpoints, samples, and `final/`, which loads as a Conductor
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, Final

from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.prompt import Prompt
from wfdsl.errors import UsageError
from wfdsl.interpreter.context import QuestionFor
from wfdsl.interpreter.running import RunOptions
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.processes import ALONE, Processes
from wfdsl_rl.scoring import Sample
from wfdsl_rl.training.config import ModelSize, StageName, Table, TrainConfig

DONE: Final = "done.json"
"""In `STAGE/final`, written last: the stage is complete."""
METRICS: Final = "metrics.jsonl"
RESOLVED: Final = "resolved.json"
RUNNING: Final = "running"


class ExtensionConfig(Table):
    """The table of an extension. Everything here works without torch, because a dry run uses it."""

    hooks: ClassVar[str] = "wfdsl_rl.training.setup:Extension"
    """The class with the hooks, which is loaded when a training starts."""

    def problems(self, train: TrainConfig, pool: Pool, stages: Sequence[StageName]) -> Iterable[str]:  # noqa: ARG002
        """Options that cannot be run, one message each."""
        if "sft" in stages and not (train.sft.candidates or train.sft.rows):
            yield "train.sft: nothing provides rows; set rows or candidates, or add an extension, such as [train.tiny]"
        if train.model == "new":
            yield 'train.model: "new" needs an extension that makes the model, such as [train.tiny]'

    def size(self) -> ModelSize | None:
        """The size of a `new` model; None: not known."""
        return None

    def runs(self, train: TrainConfig, stages: Sequence[StageName], evaluated: int) -> int:  # noqa: ARG002
        """Workflow runs that the extension adds; an evaluation asks `evaluated` tasks."""
        return 0

    def sft_rows(self, stages: Sequence[StageName]) -> Mapping[StageName, int]:  # noqa: ARG002
        """Rows of SFT that the extension adds to stages, each time that they are trained on."""
        return {}

    def build(self, setup: Setup) -> Extension:
        """The hooks for one training."""
        made: Extension = resolve_name(self.hooks)(setup, self)
        return made


class Extension:
    """The hooks of an extension. Each process of a training calls them, and only the first one may write."""

    def __init__(self, setup: Setup, config: Any) -> None:
        self.setup = setup
        self.config = config

    def before(self, stage: StageName, model: str) -> str:  # noqa: ARG002
        """The model that a stage starts from; `new` must become a folder."""
        return model

    def rows(self, stage: StageName, rows: Sequence[dict[str, Any]], tokenizer: Any) -> Sequence[Any]:  # noqa: ARG002
        """The training rows of a stage. The stage `sft` needs `prompt` and `completion`, and gets none without
        rejection sampling."""
        return rows

    def on_trainer(self, stage: StageName, trainer: Any) -> None:
        """Change TRL's trainer before it trains."""

    def on_samples(self, samples: Sequence[Sample]) -> Mapping[str, float]:  # noqa: ARG002
        """Look at a scored batch; the result is logged with the other metrics."""
        return {}

    def after(self, stage: StageName, folder: Path) -> bool:  # noqa: ARG002
        """Change the model that a stage left in a folder; whether it did and is to be evaluated again."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What all stages of a training share."""

    train: TrainConfig
    extension: ExtensionConfig = field(default_factory=ExtensionConfig)
    prompt: Prompt
    max_steps: int
    conductor: ConductorConfig = field(default_factory=ConductorConfig)
    """Its `access` says what an access entry may be, in prompts as in rewards."""
    question_for: QuestionFor = "all"
    """Which steps are shown the question."""
    pool: Pool
    tasks: tuple[Task, ...]
    eval_tasks: tuple[Task, ...]
    stage_tasks: Mapping[StageName, tuple[Task, ...]] = field(default_factory=dict)
    """The training tasks of stages that do not use `tasks`."""
    out: Path
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

    def folder(self, stage: StageName) -> Path:
        """The folder of a stage."""
        return self.out / stage


def require_feasible(train: TrainConfig, extension: ExtensionConfig, pool: Pool, stages: Sequence[StageName]) -> None:
    """Refuse options that are well-formed and cannot be run. This needs no torch.

    Raises:
        UsageError: an option names something that does not exist, or a stage has nothing to do.
    """
    for problem in (*train.problems(pool, stages), *extension.problems(train, pool, stages)):
        raise UsageError(problem)
