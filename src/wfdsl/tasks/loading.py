"""`load_tasks`: tasks from files, folders, the Hugging Face hub and installed task sources such as the gym.

Rows are read and sampled before they are converted, so that a sample of a large file is cheap.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import entry_points
from itertools import count, islice
from os import PathLike
from pathlib import Path
from random import Random
from typing import Protocol, cast

from wfdsl.errors import UsageError
from wfdsl.own_code import load_object
from wfdsl.tasks.conversion import BadRow, Origin, mapped
from wfdsl.tasks.formats import FORMATS, recognise
from wfdsl.tasks.rows import SHORT_NAMES, Rows, hub_name, is_data_file, read_hub, read_rows
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
    head, slash, _ = name.partition("/")
    plugins = entry_points(group=PLUGIN_GROUP, name=head) if slash and not Path(name).exists() else ()
    for plugin in plugins:
        if format is not None or columns:
            raise UsageError(f"{name}: its tasks are generated, not read: leave out the format and the mapping")
        base, _, split = name.partition("@")
        source = cast("TaskSource", load_object(plugin.value, installed=True))
        return source(base, limit or GENERATED, seed or 0, split=split)
    rows, split = _rows(name)
    if format is not None and format not in FORMATS:
        raise UsageError(f"there is no format {format!r}: choose one of {', '.join(FORMATS)}")
    chosen = FORMATS.get(format or ("fields" if columns else ""))
    if limit is not None and seed is not None:
        every = list(rows)
        order = list(range(len(every)))
        Random(seed).shuffle(order)
        rows = (every[index] for index in sorted(order[:limit]))
    tasks: dict[str, Task] = {}
    places: dict[str, str] = {}
    for place, values in islice(rows, limit):
        chosen = chosen or recognise(values, place=place)
        origin = Origin(re.split(r"[.#@]", Path(name).name)[0] if chosen.named_by_file else chosen.name, split)
        try:
            # Of the fields of tasks, or with a format, of the columns that it reads.
            row = {**(values if format else {}), **mapped(values, columns)} if columns else values
            task = chosen.read(row, origin)
        except BadRow as error:
            raise UsageError(f"{place}: no task of the format {chosen.name}: {error}") from error
        if task.id in tasks and task.id != origin.identify(None, task.question, task.gold):
            raise UsageError(
                f"{place}: the id {task.id!r} is also the id of {places[task.id]}; ids must be unique. Fix the "
                "file, or map the columns without an id (--map question=...,gold=...) to get ids from the content"
            )
        if task.id in tasks:
            number = next(number for number in count(2) if f"{task.id}#{number}" not in tasks)
            task = task.model_copy(update={"id": f"{task.id}#{number}"})
        if answer_formats and not task.answer_format:
            task = task.model_copy(update={"answer_format": answer_formats.get(task.kind, "")})
        tasks[task.id], places[task.id] = task, place
    if not tasks:
        raise UsageError(f"{name}: it has no rows")
    return list(tasks.values())


def _rows(name: str) -> tuple[Rows, str]:
    """The rows of a file, folder or data set, and the name of the split."""
    path = Path(name).expanduser()
    if path.exists():
        words = re.split(r"[^a-z]+", path.name.lower())
        return read_rows(path), next((split for split in _SPLITS if split in words), "")
    if name.startswith((".", "/", "~")) or is_data_file(path):
        raise UsageError(f"{name}: there is no such file")
    if wanted := hub_name(name):
        return read_hub(wanted), wanted.partition("@")[2]
    known = ", ".join(SHORT_NAMES)
    raise UsageError(f"{name}: not a file, a gym (gym/seven) or a data set (OWNER/NAME, or one of {known})")
