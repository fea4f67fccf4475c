"""List the runs of the journal; show, resume, export and remove them; ask one step of a run again.

`wfdsl runs` lists the newest runs, those of an evaluation in one line. A cost after <= is the most that the run may
have cost: calls that were in flight when it stopped are charged in full.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from textwrap import dedent
from typing import TYPE_CHECKING

from wfdsl.cli import runs_again
from wfdsl.cli.display.streams import visible
from wfdsl.cli.options import argument, complete_runs, count
from wfdsl.cli.output import OK, USAGE, print_json, print_now
from wfdsl.errors import JournalFailure, UsageError
from wfdsl.render.status import dollars

if TYPE_CHECKING:  # start-up time
    from pathlib import Path

    from wfdsl.interpreter.journal_reading import RunSummary

EXAMPLES = (
    "wfdsl runs --status failed --limit 5",
    "wfdsl runs show last",
    "wfdsl runs resume 20261123-1341 --budget-usd 2",
    "wfdsl runs redo last --step solve --worker careful",
    "wfdsl runs export > runs.jsonl",
)
_ACTIONS = {
    "resume": ("resume a run that was interrupted", runs_again.configure_resume, runs_again.execute_resume),
    "redo": ("ask one step of a run again, in a new run", runs_again.configure_redo, runs_again.execute_redo),
}
_DAY_S = 86_400
_SHOWN = 20  # lines of a list; our choice
_LONGEST_WORD = 28  # characters of a pool or a Conductor in the list
_WIDTH = 120  # columns where there is no terminal
_STATUSES = ("done", "failed", "budget", "stopped", "suspended", "interrupted", "running")
_HEAD = ("RUN", "STARTED", "STATUS", "BY", "POOL", "CALLS", "COST", "QUESTION")
_RIGHT = ("CALLS", "COST")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl runs`."""
    parser.add_argument("--status", choices=_STATUSES, help="only runs in this state")
    about = f"at most N (default: {_SHOWN}; with --json, all)"
    parser.add_argument("--limit", type=count, metavar="N", help=about)
    parser.add_argument("--json", action="store_true", help="print a JSON object a line for each run")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for name, (about, configure_action, _) in _ACTIONS.items():
        configure_action(actions.add_parser(name, help=about, description=dedent(configure_action.__doc__ or "")))
    shown = actions.add_parser("show", help="show everything that happened in a run, as Markdown")
    complete_runs(shown.add_argument("run", metavar="RUN", help="the run's id, or how it begins; `last` is the newest"))
    shown.add_argument("--json", action="store_true", help="print the record as JSON, with all messages")
    removal = actions.add_parser("rm", help="remove runs and their calls")
    complete_runs(removal.add_argument("runs", metavar="RUN", nargs="*", help="a run's id, or how it begins"))
    removal.add_argument("--days", type=argument(float, least=0), metavar="N", help="those older than N days")
    export = actions.add_parser("export", help="print run records as JSON, one a line")
    about = "a run's id, or how it begins (default: all)"
    complete_runs(export.add_argument("runs", metavar="RUN", nargs="*", help=about))


def execute(args: argparse.Namespace) -> int:
    """Do what the action says."""
    if args.action in _ACTIONS:
        return _ACTIONS[args.action][2](args)
    from wfdsl.interpreter.journal_file import default_path

    path = default_path()
    return {"show": _show, "rm": _remove, "export": _export}.get(args.action, _list)(path, args)


def _show(path: Path, args: argparse.Namespace) -> int:
    """Print the record; a terminal shows what the Markdown means."""
    from wfdsl.cli.display.consoles import stdout_console
    from wfdsl.interpreter.journal_reading import full_id, run_of
    from wfdsl.viewer.markdown import markdown_of

    run, console = run_of(path, full_id(path, args.run)), stdout_console()
    if args.json:
        print(run.to_json(indent=2))
    elif console.is_terminal:
        from rich.markdown import Markdown

        console.print(Markdown(markdown_of(run, as_written=False)))
    else:
        print(markdown_of(run), end="")
    return OK


def _remove(path: Path, args: argparse.Namespace) -> int:
    from wfdsl.interpreter.journal_reading import full_id, remove, summaries

    if bool(args.runs) == (args.days is not None):
        raise UsageError("give the RUNs to remove, or --days N")
    chosen = [full_id(path, name) for name in args.runs]
    if args.days is not None:
        before = time.time() - args.days * _DAY_S
        chosen = [found.id for found in summaries(path) if found.created < before and found.status != "running"]
    print_now(f"{remove(path, chosen)} removed")
    return OK


def _export(path: Path, args: argparse.Namespace) -> int:
    """Print the records; those that cannot be read are named, and make the exit code 2."""
    from wfdsl.interpreter.journal_reading import full_id, run_of, summaries

    code = OK
    for run_id in [full_id(path, name) for name in args.runs] or [found.id for found in summaries(path)]:
        try:
            print(run_of(path, run_id).to_json())
        except JournalFailure as error:
            print_now(f"wfdsl runs: {error}")
            code = USAGE
    return code


def _list(path: Path, args: argparse.Namespace) -> int:
    from wfdsl.interpreter.journal_reading import summaries

    everything = summaries(path) if path.exists() else []
    runs = [run for run in everything if args.status in {None, run.status}]
    if args.json:
        for run in runs[: args.limit]:
            about = {name: getattr(run, name) for name in ("id", "created", "status", "title", "pool", "by")}
            about |= {"evaluation": run.origin.get("evaluation"), **run.charged._asdict(), "is_bound": run.is_bound}
            print_json(about | ({"usd": None} if run.is_unpriced else {}))
        return OK
    folded: dict[str, list[RunSummary]] = {}
    for run in runs:
        folded.setdefault(run.origin.get("evaluation") or run.id, []).append(run)
    lines, limit = [_line_of(each) for each in folded.values()], args.limit or _SHOWN
    if lines:
        print("\n".join(_table([_HEAD, *lines[:limit]])))
    if len(lines) > limit:
        print_now(f"{limit} of {len(lines)}; --limit N shows more")
    elif not lines:
        print_now("there are no such runs" if everything else "there are no runs")
    return OK


def _line_of(runs: Sequence[RunSummary]) -> tuple[str, ...]:
    """A run, or the runs of an evaluation, in the columns of the list."""
    first, statuses = runs[0], Counter(run.status for run in runs)
    usd, is_bound = sum(run.charged.usd for run in runs), any(run.is_bound for run in runs)
    many = len(runs) > 1
    return (
        first.origin["evaluation"] if many else first.id,
        time.strftime("%Y-%m-%d %H:%M", time.localtime(runs[-1].created)),
        ", ".join(f"{number:,} {status}" for status, number in statuses.most_common()) if many else first.status,
        _short(", ".join(sorted({run.by for run in runs})), _LONGEST_WORD),
        _short(first.pool, _LONGEST_WORD),
        f"{sum(run.charged.calls for run in runs):,}",
        f"{'<=' if is_bound else ''}{dollars(usd)}" if usd else "",
        f"an evaluation: {len(runs):,} runs" if many else first.title,
    )


def _table(lines: Sequence[tuple[str, ...]]) -> list[str]:
    """The lines with their columns aligned; the last column takes what the terminal has left."""
    shown = [tuple(map(visible, line)) for line in lines]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH
    widths[-1] = max(columns - sum(widths[:-1]) - 2 * len(widths[:-1]), len(_HEAD[-1]))
    return [
        "  ".join(
            cell.rjust(width) if head in _RIGHT else _short(cell, width).ljust(width)
            for head, cell, width in zip(_HEAD, line, widths, strict=True)
        ).rstrip()
        for line in shown
    ]


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
