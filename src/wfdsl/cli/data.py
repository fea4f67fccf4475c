"""Look at tasks, convert them, choose a training mix, check gold answers; few-shot examples.

`check` exits with 1 if a gold answer is graded wrong or a wrong one right, and with 3 if one could not be graded.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

from wfdsl.cli.display.streams import print_utf8
from wfdsl.cli.options import add_action, count
from wfdsl.cli.output import OK
from wfdsl.cli.task_options import add_row_options, read_tasks
from wfdsl.errors import UsageError
from wfdsl.files import read_json_lines
from wfdsl.render.text import counted, shorten

if TYPE_CHECKING:  # start-up time: tasks import pydantic
    from wfdsl.tasks.task import Task

EXAMPLES = (
    "wfdsl data show gsm8k --limit 3",
    "wfdsl data convert rows.csv --map question=prompt,gold=answer --out tasks.jsonl",
    "wfdsl data select gsm8k mbpp --count 100 --out mix.jsonl",
    "wfdsl data convert gym/seven --limit 50 --out tasks.jsonl",
    "wfdsl data examples extract answers.jsonl > mine.toml",
)
WRONG, UNJUDGED = 1, 3

_SHOWN = 5  # tasks
_QUESTION_CHARS = 300
_GOLD_CHARS = 60


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl data`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show, convert, check = (add_action(actions, act.__name__[1:], act) for act in (_show, _convert, _check))
    for each in (show, convert, check):
        each.add_argument(
            "tasks", metavar="FILE|NAME", help="a file, a folder, a data set (gsm8k, OWNER/NAME#CONFIG@SPLIT) or a gym"
        )
        add_row_options(each)
        each.add_argument("--limit", type=count, metavar="N", help="only the first N, or with --seed a sample of N")
        each.add_argument("--seed", type=int, metavar="S", help="which sample, or which tasks of a gym")
    convert.add_argument("-o", "--out", metavar="FILE", help="a .jsonl or .jsonl.gz file (default: standard output)")
    _configure_select(add_action(actions, "select", _select))
    _configure_examples(add_action(actions, "examples", _examples))


def _configure_select(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE|NAME", help="where to choose from")
    parser.add_argument(
        "-n",
        "--count",
        metavar="N|DOMAIN=N,...",
        help="how many: N is shared equally among the domains (default: 960, as in the paper, or all there are)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="which mix of this kind (default: 0)")
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="FILE|NAME",
        help="test tasks that no chosen task may be similar to; repeatable",
    )
    parser.add_argument(
        "-o", "--out", required=True, metavar="FILE", help="a .jsonl file; its manifest is written next to it"
    )


def _configure_examples(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION")
    add_action(actions, "list", _examples)
    show = add_action(actions, "show", _show_examples)
    show.add_argument("set", metavar="NAME|FILE", help="a shipped set, or a file")
    extract = add_action(actions, "extract", _extract_examples)
    extract.add_argument("files", metavar="FILE", nargs="+", help="JSON lines that `wfdsl solve --out` wrote")
    extract.add_argument("--right", default="right", metavar="FIELD", help="true where an answer is right (right)")
    extract.add_argument("--most", type=count, default=4, metavar="N", help="most examples (default: 4)")
    extract.add_argument("--name", default="extracted", help="the set's name (default: %(default)s)")


def _read(args: argparse.Namespace) -> list[Task]:
    """The tasks; which formats they have and what they are graded as is said, such as `gsm8k: 3 math`."""
    tasks = read_tasks(args.tasks, args, args.seed)
    counts = sorted(Counter((task.source or "unnamed", task.kind) for task in tasks).items())
    told = ", ".join(f"{source}: {count} {kind}" for (source, kind), count in counts)
    print(f"{args.tasks}: read as {told}", file=sys.stderr)
    return tasks


def _show(args: argparse.Namespace) -> int:
    """Look at tasks: how many of what kind, and the first few."""
    tasks = read_tasks(args.tasks, args, args.seed)
    print(counted(len(tasks), "task"))
    for name, values in (
        ("kinds", Counter(task.kind for task in tasks)),
        ("sources", Counter(f"{task.source or 'unnamed'}{task.split and ' ' + task.split}" for task in tasks)),
        ("levels", Counter(str(task.metadata["level"]) for task in tasks if "level" in task.metadata)),
    ):
        if values:
            print(f"  {name}: " + ", ".join(f"{value} {count}" for value, count in sorted(values.items())))
    for task in tasks[: args.limit or _SHOWN]:
        question = indent(shorten(task.question, width=_QUESTION_CHARS, measure=len), "  ")
        gold = shorten(" ".join(task.gold.split()) or "none", width=_GOLD_CHARS, measure=len)
        print(f"\n{task.id}  ({task.kind})\n{question}\n  gold: {gold}")
    return OK


def _convert(args: argparse.Namespace) -> int:
    """Write tasks as JSON lines that every command reads."""
    from wfdsl.tasks.task import save_tasks, task_line

    tasks = _read(args)
    if args.out in (None, "-"):
        for task in tasks:
            print(task_line(task))
    else:
        print(f"{counted(save_tasks(args.out, tasks), 'task')} -> {args.out}", file=sys.stderr)
    return OK


def _select(args: argparse.Namespace) -> int:
    """Choose a training mix: difficult, diverse, without repeats."""
    from wfdsl.tasks.loading import load_tasks
    from wfdsl.tasks.selection import manifest, parse_counts, select
    from wfdsl.tasks.task import save_tasks

    counts = None if args.count is None else parse_counts(args.count)
    inputs = {name: load_tasks(name) for name in args.files}
    against = {name: load_tasks(name) for name in args.against}
    candidates = [task for tasks in inputs.values() for task in tasks]
    tested = [task for tasks in against.values() for task in tasks]
    mix = select(candidates, counts, against=tested, seed=args.seed)
    save_tasks(args.out, mix.tasks)
    made = manifest(mix, seed=args.seed, inputs=inputs, against=against)
    path = Path(f"{args.out}.manifest.json")
    path.write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    out, kept = (
        ", ".join(f"{name} {count}" for name, count in made[part].items()) or "none" for part in ("left_out", "chosen")
    )
    print(f"{counted(len(candidates), 'candidate')}; left out: {out}; chosen: {kept}", file=sys.stderr)
    print(f"{counted(len(mix.tasks), 'task')} -> {args.out}, manifest -> {path}", file=sys.stderr)
    return OK


def _check(args: argparse.Namespace) -> int:
    """Grade each gold answer, and a wrong one."""
    from wfdsl.grading.gold_check import check_gold

    tasks = _read(args)
    checked, misses = check_gold(tasks)
    for task, found, verdict in misses:
        gold = shorten(task.gold, width=_GOLD_CHARS, measure=len)
        print(f"{task.id}: {found}: gold {gold!r}: {verdict.reason or 'no reason given'}")
    counts = ", ".join(f"{count} {outcome}" for outcome, count in checked.items() if count)
    print(f"{counted(len(tasks), 'task')}: {counts}")
    if checked["wrong"] or checked["accepts a wrong answer"]:
        return WRONG
    return UNJUDGED if checked["unjudged"] else OK


def _examples(_args: argparse.Namespace) -> int:
    """List the sets of few-shot examples for Conductors, with the shapes of their workflows."""
    from wfdsl.conductor.examples import load_examples, shipped_sets
    from wfdsl.graph import graph_of

    for name in shipped_sets():
        shapes = ", ".join(graph_of(example.workflow).topology for example in load_examples(name).examples)
        print(f"{name:<20}  {shapes}")
    return OK


def _show_examples(args: argparse.Namespace) -> int:
    """Print the examples of a set."""
    from wfdsl.conductor.examples import load_examples

    shown = [f"Question: {each.question}\n\n{each.completion}" for each in load_examples(args.set).examples]
    print("\n\n\n".join(shown))
    return OK


def _extract_examples(args: argparse.Namespace) -> int:
    """Make a set out of solved questions.

    Reads what `wfdsl solve --out` wrote, after a grader has added a field that says whether each answer is right. It
    keeps right answers with strictly valid workflows, one for each shape of workflow, and prints a set.
    """
    from wfdsl.conductor.examples import extract_examples, to_toml

    rows = (row for file in args.files for row in _solved_rows(file))
    found = extract_examples(rows, right=args.right, most=args.most)
    if not found:
        raise UsageError(
            f"no line has a right answer with a strictly valid workflow; mark right answers with {args.right!r}: true"
        )
    print_utf8(to_toml(args.name, found))
    print(counted(len(found), "example"), file=sys.stderr)
    return OK


def _solved_rows(file: str) -> Iterator[dict[str, Any]]:
    """The lines of a file, with their questions as texts."""
    for number, row in read_json_lines(file):
        question, rounds = row.get("question"), row.get("rounds", [])
        if isinstance(question, list) and question and isinstance(question[-1], dict):
            question = question[-1].get("content")
        is_solved = isinstance(question, str) and "answer" in row and isinstance(rounds, list)
        if not is_solved or not all(map(_is_round, rounds)):
            raise UsageError(f"{file}:{number}: not a line that `wfdsl solve --out` wrote")
        yield {**row, "question": question}


def _is_round(plain: Any) -> bool:
    """Whether a round is what `wfdsl solve` writes, as far as examples are made of it."""
    match plain:
        case {"completions": []}:
            return bool(plain.get("result") == "kept-failed")
        case {"completions": [*written]}:
            return all(isinstance(each, dict) and isinstance(each.get("text"), str) for each in written)
    return False
