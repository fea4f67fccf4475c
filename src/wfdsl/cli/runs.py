"""List, remove and export the runs of the journal."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from wfdsl.cli.options import number_or_zero
from wfdsl.cli.output import OK, USAGE, print_json
from wfdsl.errors import JournalFailure

if TYPE_CHECKING:  # start-up time
    from pathlib import Path

    from wfdsl.interpreter.journal_reading import RunSummary

_DAY_S = 86_400


EXAMPLES = (
    "wfdsl runs",
    "wfdsl runs export > runs.jsonl",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl runs`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    listing = actions.add_parser("list", help="list runs, newest first (the default)")
    listing.add_argument("--json", action="store_true", help="one JSON object a line")
    removal = actions.add_parser("rm", help="remove runs and their calls")
    removal.add_argument("runs", metavar="RUN", nargs="+", help="a run's id, or how it begins")
    pruning = actions.add_parser("prune", help="remove runs that are older than a number of days")
    pruning.add_argument("--days", type=number_or_zero, default=30.0, metavar="N", help="how many (default: 30)")
    export = actions.add_parser("export", help="print run records as JSON, one a line")
    export.add_argument("runs", metavar="RUN", nargs="*", help="a run's id, or how it begins (default: all)")


def execute(args: argparse.Namespace) -> int:
    """Do what the action says."""
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import DAMAGED, full_id, remove, summaries

    path = default_path()
    if args.action in (None, "list"):
        if path.exists():
            _print(summaries(path), as_json=args.action == "list" and args.json)
        return 0
    if args.action == "prune":
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


def _print(found: list[RunSummary], *, as_json: bool) -> None:
    for summary in found:
        if as_json:
            print_json(_plain(summary))
        else:
            print(_line(summary))


def _plain(summary: RunSummary) -> dict[str, object]:
    return {
        "id": summary.id,
        "created": summary.created,
        "status": summary.status,
        "title": summary.title,
        **summary.charged._asdict(),
    }


def _line(summary: RunSummary) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(summary.created))
    calls = f"{summary.charged.calls} call{'' if summary.charged.calls == 1 else 's'}"
    cost = f"${summary.charged.usd:.4f}" if summary.charged.usd else ""
    title = summary.title if len(summary.title) <= 50 else summary.title[:49] + "…"
    return f"{summary.id}  {when}  {summary.status:<11}  {calls:>9}  {cost:>9}  {title}"
