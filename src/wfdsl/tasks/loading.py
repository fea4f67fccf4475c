"""`load_tasks`: tasks from files, folders, the Hugging Face hub and installed task sources such as the gym.

Rows are read and sampled before they are converted, so that a sample of a large file is cheap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from itertools import islice
from os import PathLike
from pathlib import Path
from random import Random
from typing import Protocol, cast

from wfdsl.errors import UsageError
from wfdsl.tasks import formats
from wfdsl.tasks.conversion import BadRow, Origin, to_task, with_columns
from wfdsl.tasks.rows import SHORT_NAMES, Row, hub_name, is_data_file, read_folder, read_hub, read_rows
from wfdsl.tasks.task import Task

PLUGIN_GROUP = "wfdsl.tasks"
"""The group of entry points that are task sources. The name of one is what names of its tasks begin with: `gym/...`."""
GENERATED = 1000
"""How many tasks a source generates without a limit: our choice, a standard error of about 1.5 points."""
_SPLITS = ("train", "test", "validation", "valid", "dev")


class TaskSource(Protocol):
    """What an entry point of the group `wfdsl.tasks` names: it generates tasks."""

    def __call__(
        self, name: str, count: int, seed: int, *, split: str = "", kinds: Sequence[str] | None = None
    ) -> list[Task]:
        """The first `count` tasks of a series; an empty split is the source's usual one, no kinds are all kinds.

        Raises:
            UsageError: it has no such name, split or kind.
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


def generate_tasks(
    name: str, count: int, seed: int, *, split: str = "", kinds: Sequence[str] | None = None
) -> list[Task]:
    """Tasks of an installed source, such as `gym/seven`.

    Raises:
        UsageError: there is no such source, or it has no such name, split or kind.
    """
    source = _task_source(name)
    if source is None:
        known = ", ".join(f"{plugin.name}/..." for plugin in entry_points(group=PLUGIN_GROUP)) or "none"
        raise UsageError(f"{name}: no installed task source has this name (installed: {known})")
    return source(name, count, seed, split=split, kinds=kinds)


def _task_source(name: str) -> TaskSource | None:
    head, slash, _ = name.partition("/")
    plugins = entry_points(group=PLUGIN_GROUP, name=head) if slash else ()
    return next((cast("TaskSource", plugin.load()) for plugin in plugins), None)


def _rows(name: str) -> tuple[Iterable[Row], str]:
    """The rows of a file, folder or data set, and the name of the split."""
    path, split = _path_and_split(name)
    if path.is_dir():
        return read_folder(path, split), split or _split_in(path.name)
    if path.exists():
        return read_rows(path), _split_in(path.name)
    looks_like_a_file = name.startswith((".", "/", "~")) or is_data_file(Path(name))
    wanted = None if looks_like_a_file else hub_name(name)
    if wanted is not None:
        return read_hub(wanted), wanted.split or ""
    if looks_like_a_file:
        raise UsageError(f"{name}: there is no such file")
    known = ", ".join(SHORT_NAMES)
    raise UsageError(f"{name}: not a file, a gym (gym/seven) or a data set (OWNER/NAME, or one of {known})")


def _path_and_split(name: str) -> tuple[Path, str | None]:
    whole = Path(name).expanduser()
    folder, sign, split = name.rpartition("@")
    if sign and not whole.exists() and Path(folder).expanduser().is_dir():
        return Path(folder).expanduser(), split
    return whole, None


def _split_in(file_name: str) -> str:
    words = re.split(r"[^a-z]+", file_name.lower())
    return next((split for split in _SPLITS if split in words), "")


def _sampled(rows: Iterable[Row], limit: int | None, seed: int | None) -> Iterable[Row]:
    if limit is None:
        return rows
    if seed is None:
        return islice(rows, limit)
    every = list(rows)
    order = list(range(len(every)))
    Random(seed).shuffle(order)
    return [every[index] for index in sorted(order[:limit])]


def _tasks(
    rows: Iterable[Row], split: str, *, name: str, format_name: str | None, columns: Mapping[str, str] | None
) -> list[Task]:
    chosen: formats.Format | None = None
    origin = Origin("", split)
    tasks: dict[str, Task] = {}
    places: dict[str, str] = {}
    for row in rows:
        if chosen is None:
            chosen = _format(row, name, format_name, columns)
            reader = with_columns(chosen.read, columns) if format_name and columns else chosen.read
            origin = Origin(re.split(r"[.#@]", Path(name).name)[0] if chosen.named_by_file else chosen.name, split)
        try:
            task = to_task(reader, row.values, origin)
        except BadRow as error:
            of_format = f" of the format {chosen.name}" if chosen.name in formats.FORMATS else ""
            raise UsageError(f"{row.place}: no task{of_format}: {error}") from error
        if task.id in tasks:
            task = _renumbered(task, row, tasks, places, origin)
        tasks[task.id], places[task.id] = task, row.place
    if not tasks:
        raise UsageError(f"{name}: it has no rows")
    return list(tasks.values())


def _format(row: Row, name: str, format_name: str | None, columns: Mapping[str, str] | None) -> formats.Format:
    if format_name is not None:
        return formats.format_named(format_name)
    if columns:
        return formats.mapping_format(columns)
    return formats.recognise(row.values, place=row.place, name=name)


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
    number = 2
    while f"{task.id}#{number}" in tasks:
        number += 1
    return task.model_copy(update={"id": f"{task.id}#{number}"})
