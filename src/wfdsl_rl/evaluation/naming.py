"""What cells, tasks and runs are called, and the seeds that follow from their names.

A run's name is made of the evaluation's id, the policy, the task's content and the repeat, so that the same cell finds
its own calls in the journal again, and no other evaluation's. Seeds leave the policy out: policies that are compared on
a task see the same luck.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from typing import TYPE_CHECKING, Any
from zlib import crc32

from wfdsl.errors import UsageError
from wfdsl.interpreter.budget import NOTHING_SPENT
from wfdsl.interpreter.journal_reading import summaries

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from wfdsl.interpreter.budget import BudgetUsage
    from wfdsl_rl.evaluation.cell import CellKey
    from wfdsl_rl.tasks.task import Task

_DESCRIPTIVE = {"source", "split", "metadata", "id"}


def new_evaluation_id() -> str:
    """A name for an evaluation: the second when it was made, so that names sort, and six random hexadecimal digits."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"


def hash_of(plain: Any) -> str:
    """SHA-256 of plain values, in hexadecimal."""
    text = json.dumps(plain, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def task_name(task: Task) -> str:
    """What a task is called in an evaluation: its source and its id."""
    return task.id if not task.source or task.id.startswith(task.source) else f"{task.source}/{task.id}"


def task_hash(task: Task) -> str:
    """What a task asks and how it is judged, as 16 hexadecimal digits; its names do not count."""
    return hash_of(task.model_dump(mode="json", exclude=_DESCRIPTIVE))[:16]


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


def domain_of(task: Task) -> str:
    """The kind of question: `metadata["domain"]` if there is one, else the task's kind."""
    return str(task.metadata.get("domain") or task.kind)


def run_id_of(evaluation: str, key: CellKey, content: str) -> str:
    """The run of a cell; `content` is the task's hash."""
    return f"{run_prefix(evaluation)}{hash_of([*key, content])[:20]}"


def run_prefix(evaluation: str) -> str:
    """How the names of all runs of an evaluation begin."""
    return f"eval-{evaluation}-"


def spent_on(evaluation: str, journal: Path) -> BudgetUsage:
    """What all runs of an evaluation have been charged so far, by a journal; lost calls at the most they may have cost.

    Raises:
        JournalFailure: the journal cannot be read.
    """
    prefix, spent = run_prefix(evaluation), NOTHING_SPENT
    for summary in summaries(journal):
        if summary.id.startswith(prefix):
            spent = spent.plus(summary.charged)
    return spent


def seed_of(seed: int | None, key: CellKey) -> int | None:
    """The seed of a cell's run: the same for every policy; None stays None."""
    return None if seed is None else crc32(json.dumps([seed, key.task, key.repeat]).encode()) & 0x7FFFFFFF
