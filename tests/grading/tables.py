"""The tables of replies in the folder `data`, whose README says who wrote them: task, form, truth and reply."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from wfdsl import Task
from wfdsl.tasks.conversion import lettered

DATA = Path(__file__).parent / "data"
_NAMES = ("replies", "independent", "exam", "blind", "unseen", "fresh")
TABLES = [name + half for name in _NAMES for half in ("", "_kept")]
Form = Literal["form", "prose"]


class Case(NamedTuple):
    """A reply, and whether a person takes it as right. `form`: it follows the form that was asked for."""

    task: Task
    form: Form
    is_right: bool
    reply: str


def cases(table: str) -> Iterator[Case]:
    """The replies of a table."""
    for row in rows(table):
        if isinstance(row, list):
            number, truth, form, _, reply = row
            yield Case(_questions()[number], form, truth == "right", reply)
        else:
            yield Case(_task(row), "form" if row["form"] == "asked" else "prose", row["right"], row["reply"])


def rows(name: str) -> list[Any]:
    """The lines of a file of the folder `data`."""
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()]


@cache
def _questions() -> dict[int, Task]:
    return {row["id"]: _task(row) for row in rows("reply_questions")}


def _task(row: dict[str, Any]) -> Task:
    question, options = row["question"], tuple(row.get("options") or ())
    if options:
        question = lettered(question, options)
    elif row["kind"] == "choice":
        options = tuple(line[3:] for line in question.split("\n")[1:])
    gold, *accepted = row["gold"] if isinstance(row["gold"], list) else [row["gold"]]
    return Task(
        id=str(row["id"]), question=question, gold=gold, accepted=tuple(accepted), kind=row["kind"], choices=options
    )
