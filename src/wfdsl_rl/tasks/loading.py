"""`load_tasks`: tasks from files, folders, the Hugging Face hub and the gym, through one door.

Rows are read, one in so many is chosen, and only then are rows made into tasks: a sample of a large file costs little.
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from wfdsl.errors import UsageError
from wfdsl_rl.tasks import formats
from wfdsl_rl.tasks.hub import SHORT_NAMES, hub_name, read_folder, read_hub
from wfdsl_rl.tasks.origin import BadRow, Origin
from wfdsl_rl.tasks.own_rows import renamed
from wfdsl_rl.tasks.rows import is_data_file, read_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike

    from wfdsl_rl.tasks.formats import Format
    from wfdsl_rl.tasks.rows import Row
    from wfdsl_rl.tasks.task import Task

GYM = "gym/"
GYM_TASKS = 1000
"""How many tasks of a gym are made if no limit is given: our choice, a standard error of about 1.5 points."""
_SPLITS = ("train", "test", "validation", "valid", "dev")


def load_tasks(
    path_or_name: str | PathLike[str],
    *,
    format: str | None = None,  # noqa: A002  (the public name)
    limit: int | None = None,
    seed: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> list[Task]:
    """Tasks of a file, a folder, a data set of the hub (`openai/gsm8k#main@test`, `gsm8k`) or a gym (`gym/paper7`).

    `format` names one of `FORMATS`; by default it is recognised by the columns. `limit` takes the first so many, with a
    `seed` a sample of so many; a smaller sample of the same seed is part of a larger one. Of a gym, `seed` says which
    questions are drawn. `columns` maps fields of tasks to columns (`{"question": "prompt", "gold": "answer"}`), or,
    with a format, the format's own columns to those of the file.

    Ids are those of the data set below its name. Rows without one get an id from their content, equal rows a number.

    Raises:
        UsageError: it cannot be read, a row is no task, or an id occurs twice. The message says where.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"limit is {limit}: it is a number from 1")
    name = str(path_or_name)
    if name.startswith(GYM) and not Path(name).exists():
        if format is not None or columns:
            raise UsageError(f"{name}: a gym makes tasks, not rows: leave out the format and the mapping")
        return _of_gym(name, limit, seed)
    rows, origin = _rows(name)
    return _tasks(_chosen(rows, limit, seed), origin, name=name, format_name=format, columns=columns)


def _of_gym(name: str, limit: int | None, seed: int | None) -> list[Task]:
    from wfdsl_rl.gym import make  # noqa: PLC0415  (files need no gym)

    preset, _, split = name.partition("@")
    if split not in ("", "train", "test"):
        raise UsageError(f"{name}: a gym has the splits train and test")
    return list(
        make(
            preset,
            GYM_TASKS if limit is None else limit,
            0 if seed is None else seed,
            split="train" if split == "train" else "test",
        )
    )


def _rows(name: str) -> tuple[Iterable[Row], str]:
    """The rows that a name stands for, and the name of their part."""
    path, split = _path_and_split(name)
    if path.is_dir():
        return read_folder(path, split), split or _split_in(path.name)
    if path.exists():
        return read_rows(path), _split_in(path.name)
    wanted = None if _looks_like_a_file(name) else hub_name(name)
    if wanted is None:
        raise UsageError(_unknown(name))
    return read_hub(wanted), wanted.split or ""


def _path_and_split(name: str) -> tuple[Path, str | None]:
    whole = Path(name).expanduser()
    folder, sign, split = name.rpartition("@")
    if sign and not whole.exists() and Path(folder).expanduser().is_dir():
        return Path(folder).expanduser(), split
    return whole, None


def _looks_like_a_file(name: str) -> bool:
    return name.startswith((".", "/", "~")) or is_data_file(Path(name))


def _unknown(name: str) -> str:
    if _looks_like_a_file(name):
        return f"{name}: there is no such file"
    known = ", ".join(SHORT_NAMES)
    return f"{name}: no file, no gym (gym/paper7) and no data set: names are OWNER/NAME, or one of {known}"


def _split_in(file_name: str) -> str:
    words = re.split(r"[^a-z]+", file_name.lower())
    return next((split for split in _SPLITS if split in words), "")


def _chosen(rows: Iterable[Row], limit: int | None, seed: int | None) -> Iterable[Row]:
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
    chosen: Format | None = None
    origin = Origin("", split)
    tasks: list[Task] = []
    seen: dict[str, str] = {}
    for row in rows:
        if chosen is None:
            chosen = _format(row, name, format_name, columns)
            origin = Origin(_source(chosen, name), split)
        task = _task(row, chosen, origin, columns if format_name else None)
        tasks.append(_with_own_id(task, row, seen, origin))
    if not tasks:
        raise UsageError(f"{name}: there are no rows in it")
    return tasks


def _format(row: Row, name: str, format_name: str | None, columns: Mapping[str, str] | None) -> Format:
    if format_name is not None:
        return formats.format_named(format_name)
    if columns:
        return formats.mapping_format(columns)
    return formats.recognise(row.values, place=row.place, name=name)


def _source(chosen: Format, name: str) -> str:
    return re.split(r"[.#@]", Path(name).name)[0] if chosen.named_by_file else chosen.name


def _task(row: Row, chosen: Format, origin: Origin, columns: Mapping[str, str] | None) -> Task:
    try:
        return chosen.read(renamed(row.values, columns) if columns else row.values, origin)
    except BadRow as error:
        of_format = f" of the format {chosen.name}" if chosen.name in formats.FORMATS else ""
        raise UsageError(f"{row.place}: no task{of_format}: {error}") from error


def _with_own_id(task: Task, row: Row, seen: dict[str, str], origin: Origin) -> Task:
    """The task, numbered if an equal one came before it.

    Raises:
        UsageError: the data set itself gives the id to two rows.
    """
    if task.id not in seen:
        seen[task.id] = row.place
        return task
    if task.id != origin.identify(None, task.question, task.gold):
        raise UsageError(
            f"{row.place}: the id {task.id!r} is also that of {seen[task.id]}: ids are unique in a data set. Mend the "
            "file, or map the columns without an id (--map question=...,gold=...), and ids are made from the content"
        )
    number = 2
    while f"{task.id}#{number}" in seen:
        number += 1
    renumbered = task.model_copy(update={"id": f"{task.id}#{number}"})
    seen[renumbered.id] = row.place
    return renumbered
