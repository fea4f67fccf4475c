"""Trials: one task under one policy, run once; their names, seeds, results and the file `results.jsonl`.

A result holds everything that tables, comparisons and plots are made of. A run's id is made of the evaluation's id, the
policy, the task's content and the repeat, so that a repeated trial finds its own calls in the journal, and those of no
other evaluation. Seeds leave the policy out: compared policies draw the same random numbers on a task.

Results are written as they come. A line counts once it ends; what a kill has cut off is removed before the next line
is written. If a trial has several lines, because it failed at first, the last one counts.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pydantic import TypeAdapter, ValidationError

from wfdsl.conductor.policy import Policy
from wfdsl.errors import UsageError
from wfdsl.evaluation.workflow_statistics import asked_steps
from wfdsl.graph import graph_of
from wfdsl.interpreter.budget import NOTHING_SPENT, BudgetUsage
from wfdsl.interpreter.journal_reading import summaries
from wfdsl.interpreter.record import PlainWorkflow, as_unicode
from wfdsl.interpreter.running import RunOptions
from wfdsl.settings import problem_in
from wfdsl.tasks.task import Task
from wfdsl.workers.pool import Pool

TrialOutcome: TypeAlias = Literal["right", "wrong", "unjudged", "failed"]
"""`wrong`: also without an answer. `unjudged`: an answer could not be graded. `failed`: the outside world failed."""


class TrialKey(NamedTuple):
    """What tells a trial from all others of an evaluation."""

    policy: str
    task: str
    """The task's name within the evaluation: its source and id."""
    repeat: int
    """From 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What is to be evaluated: policies x tasks x repeats."""

    policies: Mapping[str, Policy]
    """By the names under which results list them."""
    tasks: Sequence[Task]
    """What is asked."""
    pool: Pool
    """The workers."""
    repeats: int = 1
    """How often each question is asked under each policy."""
    seed: int | None = 0
    """What the seeds of all runs follow from; None: workers draw as they like."""
    id: str = field(default_factory=lambda: f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(3)}")
    """Tells the runs of this evaluation from all others in the journal; by default the second, so that names sort, and
    six random hexadecimal digits."""
    options: RunOptions = field(default_factory=RunOptions)
    """Further options of every run, such as `timeout_s` or `max_depth`."""
    judge: int | None = None
    """The index of the worker that judges replies which state no answer; None: they are wrong."""
    sandbox_packages: str | None = None
    """What graded programs may import, see `Sandbox`."""

    def trials(self) -> list[TrialKey]:
        """The trials, in the order in which they are taken on.

        Raises:
            UsageError: two tasks have the same name.
        """
        rounds = product(named_tasks(self.tasks), range(self.repeats), self.policies)
        return [TrialKey(policy, task, repeat) for task, repeat, policy in rounds]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One result."""

    policy: str
    """The name of the policy."""
    task: str
    """The name of the task."""
    task_hash: str
    """Tells tasks apart by what they ask and how they are judged, so that evaluations can be compared."""
    source: str
    """The data set of the task."""
    domain: str
    """The domain of the task."""
    repeat: int
    """Which of the repeats it is, from 0."""
    outcome: TrialOutcome
    """The verdict, or `failed` if the outside world did."""
    answer: str | None = None
    """The policy's answer as it stands."""
    extracted: str | None = None
    """What the grader took as the final answer."""
    reason: str = ""
    """Why it was judged so, or why there is no answer."""
    input_tokens: int = 0
    """Tokens of what was sent."""
    output_tokens: int = 0
    """Includes thinking."""
    list_usd: float | None = 0.0
    """US dollars by the price list; None if a price is not known."""
    paid_usd: float | None = 0.0
    """US dollars paid, by all processes together; None if a price is not known."""
    latency_s: float | None = None
    """Seconds from question to answer; None if a part was answered from the journal."""
    calls: int = 0
    """Workers' answers, those inside Conductor nodes included."""
    completions: int = 0
    """What a Conductor wrote itself: workflows, and those it was asked to correct."""
    invalid: int = 0
    """Those of them that were not valid."""
    kept: int = 0
    """Rounds in which the Conductor kept the answer."""
    unchanged: int = 0
    """Later rounds that gave the answer of the round before."""
    replayed: int = 0
    """Workers' answers that came from the journal."""
    workers: Mapping[str, int]
    """Answers by worker, by name."""
    rounds: tuple[PlainWorkflow, ...] = ()
    """The workflows that ran, one a round; one for a fixed workflow."""
    run_id: str = ""
    """The run in the journal."""

    @property
    def key(self) -> TrialKey:
        """What tells it from all others."""
        return TrialKey(self.policy, self.task, self.repeat)

    @property
    def judged(self) -> bool:
        """Whether it is right or wrong."""
        return self.outcome in ("right", "wrong")

    @property
    def right(self) -> bool | None:
        """Whether it is right; None if it is not judged."""
        return self.outcome == "right" if self.judged else None

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.input_tokens + self.output_tokens

    @property
    def steps(self) -> int:
        """Live steps of all rounds that a worker is asked for."""
        return sum(len(asked_steps(workflow)) for workflow in self.rounds)

    @property
    def topology(self) -> str:
        """The topology class of the first round; empty if there was none."""
        return graph_of(self.rounds[0]).topology if self.rounds else ""

    def to_json(self) -> str:
        """The trial as one line; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD."""
        plain = {**_TRIAL.dump_python(self), "steps": self.steps, "topology": self.topology}
        return as_unicode(json.dumps(plain, ensure_ascii=False))


_TRIAL: Final = TypeAdapter(Trial)


def hash_of(plain: Any) -> str:
    """SHA-256 of plain values, in hexadecimal."""
    text = json.dumps(plain, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def task_name(task: Task) -> str:
    """What a task is called in an evaluation: its source and its id."""
    return task.id if not task.source or task.id.startswith(task.source) else f"{task.source}/{task.id}"


def task_hash(task: Task) -> str:
    """What a task asks and how it is judged, as 16 hexadecimal digits; its names do not count."""
    return hash_of(task.model_dump(mode="json", exclude={"source", "split", "metadata", "id"}))[:16]


def named_tasks(tasks: Iterable[Task]) -> dict[str, Task]:
    """Tasks by their names.

    Raises:
        UsageError: two have the same name.
    """
    named: dict[str, Task] = {}
    for task in tasks:
        name = task_name(task)
        if name in named:
            raise UsageError(f"two tasks are called {name!r}: ids have to be unique within a source")
        named[name] = task
    return named


def spent_on(evaluation: str, journal: Path) -> BudgetUsage:
    """What all runs of an evaluation have been charged so far, by a journal; lost calls at the most they may have cost.

    Raises:
        JournalFailure: the journal cannot be read.
    """
    spent = (each.charged for each in summaries(journal) if each.origin.get("evaluation") == evaluation)
    return reduce(BudgetUsage.plus, spent, NOTHING_SPENT)


RESULTS: Final = "results.jsonl"
"""The file of an evaluation's trials, in its folder."""


def read_trials(folder: Path) -> dict[TrialKey, Trial]:
    """The trials of a folder, by key; none if there are no results.

    Raises:
        UsageError: a line that ends is not a trial.
    """
    path = folder / RESULTS
    if not path.exists():
        return {}
    trials: dict[TrialKey, Trial] = {}
    for number, line in enumerate(whole_lines(path).splitlines(), start=1):
        try:
            trial = _TRIAL.validate_json(line)
        except ValidationError as error:
            raise UsageError(f"{path}:{number}: this is not a result ({problem_in(error)}); remove the line") from error
        trials[trial.key] = trial
    return trials


def whole_lines(path: Path) -> bytes:
    """What a file holds up to the end of its last whole line."""
    data = path.read_bytes()
    return data[: data.rfind(b"\n") + 1]
