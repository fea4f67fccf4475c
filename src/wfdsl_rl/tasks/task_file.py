"""Files of tasks: JSON lines that `load_tasks` reads back as the same tasks."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

from wfdsl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

    from wfdsl_rl.tasks.task import Task


def task_line(task: Task) -> str:
    """A task as one line of JSON, without what is empty."""
    return task.model_dump_json(exclude_defaults=True) if task.kind != "math" else _with_kind(task)


def save_tasks(path: str | PathLike[str], tasks: Iterable[Task]) -> int:
    """Write tasks to a `.jsonl` or `.jsonl.gz` file; how many.

    Raises:
        UsageError: the file has another name, or cannot be written.
    """
    file = Path(path)
    if not file.name.lower().endswith((".jsonl", ".jsonl.gz")):
        raise UsageError(f"{file}: tasks are written to a file that ends in .jsonl or .jsonl.gz")
    data = "".join(_lines(tasks)).encode()
    try:
        # A fixed time, so that equal tasks give equal files.
        file.write_bytes(gzip.compress(data, mtime=0) if file.suffix.lower() == ".gz" else data)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror or error}") from error
    return data.count(b"\n")


def _lines(tasks: Iterable[Task]) -> Iterator[str]:
    for task in tasks:
        yield task_line(task) + "\n"


def _with_kind(task: Task) -> str:
    """The kind `math` is the default, but files name it: a reader recognises them by it."""
    return task.model_dump_json(exclude_defaults=True).removesuffix("}") + ',"kind":"math"}'
