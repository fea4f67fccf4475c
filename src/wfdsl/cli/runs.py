"""List the runs of the journal; show, resume, export and remove them; ask one step of a run again.

`wfdsl runs` lists the newest runs, those of an evaluation in one line; `--evaluation ID` lists them one by one. A cost
after <= is the most that the run may have cost: calls that were in flight when it stopped are charged in full.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wfdsl.cli import runs_redo, runs_resume, runs_show
from wfdsl.cli.display.streams import visible
from wfdsl.cli.options import argument, count
from wfdsl.cli.output import OK, USAGE, print_json
from wfdsl.errors import JournalFailure, UsageError

if TYPE_CHECKING:  # start-up time
    from pathlib import Path

    from wfdsl.interpreter.journal_reading import RunSummary

EXAMPLES = (
    "wfdsl runs --status failed --limit 5",
    "wfdsl runs --by openai:gpt-5 --pool paper",
    "wfdsl runs show last --messages",
    "wfdsl runs resume 20261123-1341 --budget-usd 2",
    "wfdsl runs redo last --step solve --worker careful",
    "wfdsl runs export > runs.jsonl",
)
_ACTIONS = {
    "show": ("show everything that happened in a run", runs_show),
    "resume": ("resume a run that was interrupted", runs_resume),
    "redo": ("ask one step of a run again, in a new run", runs_redo),
}
_DAY_S = 86_400
_SHOWN = 20  # lines of a list; our choice
_LONGEST_WORD = 28  # characters of a pool or a Conductor in the list
_WIDTH = 120  # columns where there is no terminal
_STATUSES = ("done", "failed", "budget", "stopped", "suspended", "interrupted", "running", "damaged")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl runs`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    listing = actions.add_parser("list", help="list runs, newest first (the default)")
    for each in (parser, listing):
        _add_list_options(each)
    for name, (about, module) in _ACTIONS.items():
        module.configure(actions.add_parser(name, help=about, description=module.__doc__))
    removal = actions.add_parser("rm", help="remove runs and their calls")
    removal.add_argument("runs", metavar="RUN", nargs="*", help="a run's id, or how it begins")
    removal.add_argument("--days", type=argument(float, least=0), metavar="N", help="those that are older than N days")
    export = actions.add_parser("export", help="print run records as JSON, one a line")
    export.add_argument("runs", metavar="RUN", nargs="*", help="a run's id, or how it begins (default: all)")


def _add_list_options(parser: argparse.ArgumentParser) -> None:
    """Add the filters; an option that is not given leaves no trace, since `wfdsl runs` and its action share them."""
    filters: dict[str, dict[str, Any]] = {
        "--status": {"choices": _STATUSES, "help": "only runs in this state"},
        "--pool": {"metavar": "NAME", "help": "only runs on this pool"},
        "--by": {"metavar": "NAME", "help": "only runs of this Conductor, policy or workflow file"},
        "--evaluation": {"metavar": "ID", "help": "the runs of an evaluation, one by one; its id, or how it begins"},
        "--limit": {"type": count, "metavar": "N", "help": f"at most N lines (default: {_SHOWN}; with --json, all)"},
        "--json": {"action": "store_true", "help": "print a JSON object a line for each run"},
    }
    for option, settings in filters.items():
        parser.add_argument(option, default=argparse.SUPPRESS, **settings)


def execute(args: argparse.Namespace) -> int:
    """Do what the action says."""
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import DAMAGED, full_id, remove, summaries

    if args.action in _ACTIONS:
        return int(_ACTIONS[args.action][1].execute(args))
    path = default_path()
    if args.action in (None, "list"):
        _list(path, summaries(path) if path.exists() else [], vars(args))
        return 0
    if args.action == "rm" and bool(args.runs) == (args.days is not None):
        raise UsageError("give the RUNs to remove, or --days N")
    if args.action == "rm" and args.days is not None:
        before = time.time() - args.days * _DAY_S
        kept = ("running", DAMAGED)  # how old a damaged one is cannot be known
        old = [found.id for found in summaries(path) if found.created < before and found.status not in kept]
        print(f"{remove(path, old)} removed", file=sys.stderr)
        return 0
    wanted = [full_id(path, name) for name in args.runs] or [found.id for found in summaries(path)]
    if args.action == "rm":
        print(f"{remove(path, wanted)} removed", file=sys.stderr)
        return 0
    return _export(path, wanted)


def _export(path: Path, run_ids: list[str]) -> int:
    """Print the records; those that cannot be read are named, and make the exit code 2."""
    from wfdsl.interpreter.journal_reading import run_of

    code = OK
    for run_id in run_ids:
        try:
            print(run_of(path, run_id).to_json())
        except JournalFailure as error:
            print(f"wfdsl runs: {error}", file=sys.stderr)
            code = USAGE
    return code


def _list(path: Path, runs: list[RunSummary], asked: dict[str, Any]) -> None:
    found = [run for run in runs if _is_asked_for(run, asked)]
    if asked.get("json"):
        _print_as_json(path, found[: asked.get("limit")])
        return
    lines = [_line_of(each) for each in (_folded(found) if "evaluation" not in asked else [[run] for run in found])]
    limit = asked.get("limit", _SHOWN)
    if lines:
        print("\n".join(_table([_HEAD, *lines[:limit]])))
    if len(lines) > limit:
        print(f"{limit} of {len(lines)}; --limit N shows more", file=sys.stderr)
    elif not lines:
        print("there are no such runs" if runs else "there are no runs", file=sys.stderr)


def _print_as_json(path: Path, runs: list[RunSummary]) -> None:
    from wfdsl.interpreter.journal_reading import runs_of_unknown_price

    unknown = runs_of_unknown_price(path) if runs else ()
    for run in runs:
        print_json(_plain(run) | ({"usd": None} if run.id in unknown else {}))


def _is_asked_for(run: RunSummary, asked: dict[str, Any]) -> bool:
    return (
        asked.get("status", run.status) == run.status
        and asked.get("pool", run.pool) == run.pool
        and asked.get("by", "") in run.by
        and run.origin.get("evaluation", "").startswith(asked.get("evaluation", ""))
    )


def _folded(runs: Iterable[RunSummary]) -> list[list[RunSummary]]:
    """The runs of each evaluation together, where the newest of them is; all others alone."""
    groups: dict[str, list[RunSummary]] = {}
    for run in runs:
        groups.setdefault(run.origin.get("evaluation") or run.id, []).append(run)
    return list(groups.values())


class _Line(NamedTuple):
    run: str
    started: str
    status: str
    by: str
    pool: str
    calls: str
    cost: str
    question: str


_HEAD = _Line("RUN", "STARTED", "STATUS", "BY", "POOL", "CALLS", "COST", "QUESTION")
_RIGHT = ("calls", "cost")


def _line_of(runs: Sequence[RunSummary]) -> _Line:
    first = runs[0]
    usd, is_bound = sum(run.charged.usd for run in runs), any(run.is_bound for run in runs)
    policies = sorted({run.by for run in runs})
    return _Line(
        run=first.id if len(runs) == 1 else first.origin["evaluation"],
        started=time.strftime("%Y-%m-%d %H:%M", time.localtime(runs[-1].created)),
        status=_counted(Counter(run.status for run in runs)),
        by=_short(", ".join(policies) if len(policies) < 3 else f"{len(policies)} policies", _LONGEST_WORD),
        pool=_short(first.pool, _LONGEST_WORD),
        calls=f"{sum(run.charged.calls for run in runs):,}",
        cost=f"{'<=' if is_bound else ''}${usd:.4f}" if usd else "",
        question=first.title if len(runs) == 1 else f"an evaluation: {len(runs):,} runs",
    )


def _counted(statuses: Counter[str]) -> str:
    if statuses.total() == 1:
        return next(iter(statuses))
    return ", ".join(f"{number:,} {status}" for status, number in statuses.most_common())


def _table(lines: Sequence[_Line]) -> list[str]:
    """The lines with their columns aligned; the last column takes what the terminal has left."""
    shown = [_Line(*map(visible, line)) for line in lines]
    widths = [max(len(cell) for cell in column) for column in zip(*shown, strict=True)]
    left = max(_columns() - sum(widths[:-1]) - 2 * len(widths[:-1]), len(_HEAD.question))
    return ["  ".join(_cells(line, [*widths[:-1], left])).rstrip() for line in shown]


def _cells(line: _Line, widths: Sequence[int]) -> list[str]:
    cells = zip(_Line._fields, _short_last(line, widths[-1]), widths, strict=True)
    return [cell.rjust(width) if name in _RIGHT else cell.ljust(width) for name, cell, width in cells]


def _short_last(line: _Line, width: int) -> _Line:
    return line._replace(question=_short(line.question, width))


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _columns() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH


def _plain(run: RunSummary) -> dict[str, object]:
    return {
        "id": run.id,
        "created": run.created,
        "status": run.status,
        "title": run.title,
        "pool": run.pool,
        "by": run.by,
        "evaluation": run.origin.get("evaluation"),
        **run.charged._asdict(),
        "is_bound": run.is_bound,
    }
