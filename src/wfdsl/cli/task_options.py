"""The options that say which tasks a command takes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from wfdsl.cli.options import INPUT, argument, count, group
from wfdsl.errors import UsageError

if TYPE_CHECKING:  # start-up time: tasks import pydantic
    from wfdsl.tasks.task import Task


def add_task_options(parser: argparse.ArgumentParser) -> None:
    """Add `--tasks`, and what says which of its tasks are taken."""
    asked = group(parser, INPUT)
    asked.add_argument(
        "--tasks", action="append", default=[], metavar="NAME", help="a file, a data set or a gym; may be repeated"
    )
    asked.add_argument("--limit", type=count, metavar="N", help="at most N tasks of each --tasks, the first ones")
    asked.add_argument(
        "--sample-seed",
        type=argument(int, least=0),
        metavar="N",
        help="draw the tasks of --limit with this seed instead of taking the first; for a gym: which questions it asks",
    )
    add_row_options(asked)


def add_row_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add what says how the rows of files are read."""
    parser.add_argument(
        "--task-format", metavar="NAME", help="the format of the rows (default: recognised by the columns)"
    )
    parser.add_argument(
        "--map", metavar="FIELD=COLUMN,...", help="which columns to use, such as question=prompt,gold=answer"
    )


def tasks_of(args: argparse.Namespace) -> list[Task]:
    """The tasks that the options name.

    Raises:
        UsageError: they cannot be read, or there are none.
    """
    if not args.tasks:
        raise UsageError("give --tasks: FILE.jsonl, a data set or gym/seven")
    formats = None
    if "answer_format" in args:
        from wfdsl.tasks.task import ANSWER_FORMATS

        formats = dict(ANSWER_FORMATS) if args.protocol != "paper" else {}
        if args.answer_format is not None:
            formats = dict.fromkeys(ANSWER_FORMATS, args.answer_format)
    found = [task for name in args.tasks for task in read_tasks(name, args, args.sample_seed, formats)]
    if not found:
        raise UsageError(f"--tasks {' '.join(args.tasks)}: there are no tasks")
    return found


def read_tasks(
    name: str, args: argparse.Namespace, seed: int | None, answer_formats: dict[str, str] | None = None
) -> list[Task]:
    """The tasks of a file, a data set or a gym, whose rows are read as the options say.

    Raises:
        UsageError: they cannot be read.
    """
    from wfdsl.tasks.conversion import parse_mapping
    from wfdsl.tasks.loading import load_tasks

    return load_tasks(
        name,
        format=args.task_format,
        limit=args.limit,
        seed=seed,
        columns=parse_mapping(args.map) if args.map else None,
        answer_formats=answer_formats,
    )
