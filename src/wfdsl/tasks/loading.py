"""`load_tasks`: tasks from files, folders, the Hugging Face hub and installed task sources such as the gym.

Rows are read and sampled before they are converted, so that a sample of a large file is cheap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from itertools import count, islice
from os import PathLike
from pathlib import Path
from random import Random
from typing import Protocol, cast

from wfdsl.errors import UsageError
from wfdsl.tasks import formats
from wfdsl.tasks.conversion import BadRow, Origin, mapped, to_task
from wfdsl.tasks.rows import SHORT_NAMES, Row, hub_name, is_data_file, read_folder, read_hub, read_rows
from wfdsl.tasks.task import Task

PLUGIN_GROUP = "wfdsl.tasks"
"""The group of entry points that are task sources. The name of one is what names of its tasks begin with: `gym/...`."""
GENERATED = 1000
"""How many tasks a source generates without a limit: our choice, a standard error of about 1.5 points."""
_SPLITS = ("train", "test", "validation", "valid", "dev")


class TaskSource(Protocol):
    """What an entry point of the group `wfdsl.tasks` names: it generates tasks."""

    def __call__(self, name: str, count: int, seed: int, *, split: str = "") -> list[Task]:
        """The first `count` tasks of a series; an empty split is the source's usual one.

        Raises:
            UsageError: it has no such name or split.
        """
        ...


def load_tasks(
    path_or_name: str | PathLike[str],
    *,
    format: str | None = None,  # noqa: A002  (the public name)
    limit: int | None = None,
    seed: int | None = None,
    columns: Mapping[str, str] | None = None,
    answer_formats: Mapping[str, str] | None = None,
) -> list[Task]:
    """Tasks of a file, a folder, a data set of the hub (`openai/gsm8k#main@test`, `gsm8k`) or a gym (`gym/seven`).

    `format` names one of `FORMATS`; by default it is recognised by the columns. `limit` takes the first rows, with a
    `seed` a sample of that size; a smaller sample of the same seed is part of a larger one. For a gym, `seed` chooses
    the series of questions. `columns` maps fields of tasks to columns (`{"question": "prompt", "gold": "answer"}`), or,
    with a format, the format's own columns to those of the file.

    `answer_formats` are sentences by kind, for tasks that are read and have none; `ANSWER_FORMATS` are the usual ones.

    Ids are prefixed with the name of the data set. Rows without one get an id from their content, equal rows a number.

    Raises:
        UsageError: it cannot be read, a row cannot be converted, or an id occurs twice. The message says where.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"limit must be at least 1 (got {limit})")
    name = str(path_or_name)
    source = None if Path(name).exists() else _task_source(name)
    if source is not None:
        if format is not None or columns:
            raise UsageError(f"{name}: its tasks are generated, not read: leave out the format and the mapping")
        base, _, split = name.partition("@")
        return source(base, limit or GENERATED, seed or 0, split=split)
    rows, split = _rows(name)
    tasks = _tasks(_sampled(rows, limit, seed), split, name=name, format_name=format, columns=columns)
    if answer_formats is None:
        return tasks
    return [
        task if task.answer_format else task.model_copy(update={"answer_format": answer_formats.get(task.kind, "")})
        for task in tasks
    ]


def _task_source(name: str) -> TaskSource | None:
    head, slash, _ = name.partition("/")
    plugins = entry_points(group=PLUGIN_GROUP, name=head) if slash else ()
    return next((cast("TaskSource", plugin.load()) for plugin in plugins), None)


def _rows(name: str) -> tuple[Iterable[Row], str]:
    """The rows of a file, folder or data set, and the name of the split."""
    path = Path(name).expanduser()
    if path.exists():
        words = re.split(r"[^a-z]+", path.name.lower())
        split = next((split for split in _SPLITS if split in words), "")
        return (read_folder(path) if path.is_dir() else read_rows(path)), split
    if name.startswith((".", "/", "~")) or is_data_file(path):
        raise UsageError(f"{name}: there is no such file")
    if wanted := hub_name(name):
        return read_hub(wanted), wanted.split or ""
    known = ", ".join(SHORT_NAMES)
    raise UsageError(f"{name}: not a file, a gym (gym/seven) or a data set (OWNER/NAME, or one of {known})")


def _sampled(rows: Iterable[Row], limit: int | None, seed: int | None) -> Iterable[Row]:
    if limit is None or seed is None:
        return islice(rows, limit)
    every = list(rows)
    order = list(range(len(every)))
    Random(seed).shuffle(order)
    return [every[index] for index in sorted(order[:limit])]


def _tasks(
    rows: Iterable[Row], split: str, *, name: str, format_name: str | None, columns: Mapping[str, str] | None
) -> list[Task]:
    chosen = formats.FORMATS["fields"] if columns else None
    if format_name is not None:
        chosen = formats.format_named(format_name)
    tasks: dict[str, Task] = {}
    places: dict[str, str] = {}
    for row in rows:
        chosen = chosen or formats.recognise(row.values, place=row.place)
        origin = Origin(re.split(r"[.#@]", Path(name).name)[0] if chosen.named_by_file else chosen.name, split)
        try:
            values = row.values
            if columns:  # of the fields of tasks, or with a format, of the columns that it reads
                values = {**(values if format_name else {}), **mapped(values, columns)}
            task = to_task(chosen.read, values, origin)
        except BadRow as error:
            raise UsageError(f"{row.place}: no task of the format {chosen.name}: {error}") from error
        if task.id in tasks:
            task = _renumbered(task, row, tasks, places, origin)
        tasks[task.id], places[task.id] = task, row.place
    if not tasks:
        raise UsageError(f"{name}: it has no rows")
    return list(tasks.values())


def _renumbered(task: Task, row: Row, tasks: Mapping[str, Task], places: Mapping[str, str], origin: Origin) -> Task:
    """A task that is equal to an earlier one, with a number.

    Raises:
        UsageError: the data set itself gives the id to two rows.
    """
    if task.id != origin.identify(None, task.question, task.gold):
        raise UsageError(
            f"{row.place}: the id {task.id!r} is also the id of {places[task.id]}; ids must be unique in a data set. "
            "Fix the file, or map the columns without an id (--map question=...,gold=...) to get ids from the content"
        )
    number = next(number for number in count(2) if f"{task.id}#{number}" not in tasks)
    return task.model_copy(update={"id": f"{task.id}#{number}"})
