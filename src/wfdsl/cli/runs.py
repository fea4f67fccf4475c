"""List the runs of the journal; show, resume, export and remove them; ask one step of a run again.

`wfdsl runs` lists the newest runs, those of an evaluation in one line. A cost after <= is the most that the run may
have cost: calls that were in flight when it stopped are charged in full.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from wfdsl.cli.display.streams import terminal_width, visible
from wfdsl.cli.options import (
    INPUT,
    OUTPUT,
    add_action,
    add_config_options,
    add_options,
    add_pool_option,
    add_trace_options,
    argument,
    complete_runs,
    count,
    experiment_of,
    group,
    require_no_parameters,
    some_text,
)
from wfdsl.cli.output import OK, USAGE, print_json, print_now, print_run
from wfdsl.errors import JournalFailure, UsageError
from wfdsl.experiment import Experiment, RunSettings, pool_of_run
from wfdsl.interpreter.budget import UNLIMITED, Budget
from wfdsl.interpreter.config import RunRequest
from wfdsl.own_code import file_of
from wfdsl.render.status import dollars
from wfdsl.render.text import shorten
from wfdsl.settings import not_default

if TYPE_CHECKING:  # start-up time
    from pathlib import Path

    from wfdsl.conductor.policy import Policy
    from wfdsl.interpreter.journal_reading import RunSummary
    from wfdsl.interpreter.redoing import Redo
    from wfdsl.interpreter.running import RunOptions
    from wfdsl.interpreter.worker_profile import RunEstimate
    from wfdsl.workers.pool import Pool

    _Asked: TypeAlias = tuple[RunRequest, Pool, Policy | None]

EXAMPLES = (
    "wfdsl runs --status failed --limit 5",
    "wfdsl runs show last",
    "wfdsl runs resume 20261123-1341 --budget-usd 2",
    "wfdsl runs redo last --step solve --worker careful",
    "wfdsl runs export > runs.jsonl",
)
_DAY_S = 86_400
_SHOWN = 20  # lines of a list; our choice
_LONGEST_WORD = 28  # characters of a pool or a Conductor in the list
_WIDTH = 120  # columns where there is no terminal
_STATUSES = ("done", "failed", "budget", "stopped", "suspended", "interrupted", "running")
_HEAD = ("RUN", "STARTED", "STATUS", "BY", "POOL", "CALLS", "COST", "QUESTION")
_RIGHT = ("CALLS", "COST")
_CHANGEABLE = ("concurrency", "timeout_s", "step_timeout_s", "ask_again")
"""Options that may change when a run is resumed."""
_RUN = "the run's id, or how it begins; `last` is the newest"
_KEPT = "the run keeps the parameters that it was started with"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl runs`."""
    parser.add_argument("--status", choices=_STATUSES, help="only runs in this state")
    parser.add_argument("--limit", type=count, metavar="N", help=f"at most N (default: {_SHOWN}; with --json, all)")
    parser.add_argument("--json", action="store_true", help="print a JSON object a line for each run")
    parser.set_defaults(act=_list)
    actions = parser.add_subparsers(metavar="ACTION")
    _add_run_options(add_action(actions, "resume", _resume))
    redo = add_action(actions, "redo", _redo)
    _add_run_options(redo)
    asked = group(redo, INPUT)
    asked.add_argument("--step", metavar="STEP", required=True, help="the name or index of the step")
    asked.add_argument(
        "--round", type=argument(int, least=0), metavar="N", help="of a Conductor's run: the round, from 0"
    )
    asked.add_argument("--subtask", type=some_text, metavar="TEXT", help="what the step is to do instead")
    asked.add_argument("--worker", metavar="NAME|INDEX", help="the worker that is to do it")
    about = "call no worker: print what is asked again and the most that it costs"
    group(redo, OUTPUT).add_argument("--dry-run", action="store_true", help=about)
    shown = add_action(actions, "show", _show)
    complete_runs(shown.add_argument("run", metavar="RUN", help=_RUN))
    shown.add_argument("--json", action="store_true", help="print the record as JSON, with all messages")
    removal = add_action(actions, "rm", _remove)
    complete_runs(removal.add_argument("runs", metavar="RUN", nargs="*", help="a run's id, or how it begins"))
    removal.add_argument("--days", type=argument(float, least=0), metavar="N", help="those older than N days")
    about = "a run's id, or how it begins (default: all)"
    export = add_action(actions, "export", _export)
    complete_runs(export.add_argument("runs", metavar="RUN", nargs="*", help=about))


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add what says which run is continued, and how."""
    complete_runs(group(parser, INPUT).add_argument("run", metavar="RUN", help=_RUN))
    add_pool_option(parser, "the pool of workers (default: the run's)")
    add_config_options(parser)
    add_trace_options(parser)
    add_options(parser, Budget, "budget")
    add_options(parser, RunSettings, "run", only=_CHANGEABLE)


def execute(args: argparse.Namespace) -> int:
    """Do what the action says."""
    from wfdsl.interpreter.journal_file import default_path

    return int(args.act(default_path(), args))


def _show(path: Path, args: argparse.Namespace) -> int:
    """Show everything that happened in a run, as Markdown."""
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
    """Remove runs and their calls."""
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
    """Print run records as JSON, one a line.

    Those that cannot be read are named, and make the exit code 2.
    """
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
        shorten(", ".join(sorted({run.by for run in runs})), width=_LONGEST_WORD, measure=len),
        shorten(first.pool, width=_LONGEST_WORD, measure=len),
        f"{sum(run.charged.calls for run in runs):,}",
        f"{'<=' if is_bound else ''}{dollars(usd)}" if usd else "",
        f"an evaluation: {len(runs):,} runs" if many else first.title,
    )


def _table(lines: Sequence[tuple[str, ...]]) -> list[str]:
    """The lines with their columns aligned; the last column takes what the terminal has left."""
    shown = [tuple(map(visible, line)) for line in lines]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    columns = terminal_width() if sys.stdout.isatty() else _WIDTH
    widths[-1] = max(columns - sum(widths[:-1]) - 2 * len(widths[:-1]), len(_HEAD[-1]))
    return [
        "  ".join(
            cell.rjust(width) if head in _RIGHT else shorten(cell, width=width, measure=len).ljust(width)
            for head, cell, width in zip(_HEAD, line, widths, strict=True)
        ).rstrip()
        for line in shown
    ]


def _resume(path: Path, args: argparse.Namespace) -> int:
    """Resume a run that was interrupted.

    Calls whose replies are in the journal are not made again. What was spent before counts towards the budget. If the
    run is done, its answer is printed. Workflow, question, pool and Conductor are the run's.
    """
    from wfdsl.interpreter.journal_reading import full_id, run_of

    require_no_parameters(args, _KEPT)
    before, note = run_of(path, full_id(path, args.run)), (lambda _: None) if args.quiet else print_now
    if before.status == "done":
        note(f"run {before.id} is done: this is its answer")
        print_run(before, as_json=args.json)
        return 0
    experiment = experiment_of(args)
    for call in before.lost if before.status != "running" else ():  # one that is running will be refused
        charge = f"up to {call.tokens} tokens" + (f", {dollars(call.usd)}" if call.usd else "")
        where = "/".join(map(str, call.path))
        note(f"step {where}, {call.worker_name}: was in flight; stays charged at {charge}")
    return _continue(path, before.id, _asked_again(path, before.id, experiment), experiment, args)


def _redo(path: Path, args: argparse.Namespace) -> int:
    """Ask one step of a run again, and the steps that depend on it, in a new run.

    Kept replies are not paid for again, and the budget counts from zero. In a Conductor's run, --round says which round
    has the step; the Conductor is asked again for the rounds after it. Pool, workflow, Conductor and question are the
    run's.
    """
    from wfdsl.cli.run import show_estimate
    from wfdsl.conductor.conductor import Conductor
    from wfdsl.interpreter.execution import require_runnable
    from wfdsl.interpreter.journal_reading import full_id, request_of
    from wfdsl.interpreter.redoing import prepare_redo

    require_no_parameters(args, _KEPT)
    experiment, run_id = experiment_of(args), full_id(path, args.run)
    request, pool, policy = _asked_again(path, run_id, experiment)
    worker = None if args.worker is None else pool.called(args.worker)
    if args.worker is not None and worker is None:
        raise UsageError(f"pool {pool.name!r} has no worker {args.worker!r}: its workers are {', '.join(pool.names)}")
    prepared = prepare_redo(path, run_id, args.step, round_number=args.round, subtask=args.subtask, worker=worker)
    require_runnable(prepared.workflow, pool, request.config.max_depth)
    has_later = isinstance(policy, Conductor) and args.round < policy.settings.max_rounds
    found = prepared.estimate(pool)
    if args.dry_run:
        show_estimate(found, names=prepared.names, as_json=args.json)
        if has_later and not args.json:
            print("the Conductor's later rounds are asked again too; their cost is not known")
        return 0
    if not args.quiet:
        print_now(_told(prepared, found, has_later=has_later))
    new_id = prepared.start(path)
    return _continue(path, new_id, (request_of(path, new_id), pool, policy), experiment, args)


def _asked_again(path: Path, run_id: str, experiment: Experiment) -> _Asked:
    """What a run was asked, its workers, and who answers: a Conductor or an own policy; None: a workflow does."""
    from wfdsl.conductor.named import conductor_of_run, own_policy
    from wfdsl.conductor.policy import ROOT_WORKFLOW
    from wfdsl.interpreter.journal_reading import request_of

    request = request_of(path, run_id)
    pool, name = experiment.pool or pool_of_run(request), request.origin.get("solve", "")
    if file_of(name) is not None:
        return request, pool, own_policy(name)
    is_rooted = request.workflow == ROOT_WORKFLOW
    return request, pool, conductor_of_run(request, experiment.conductor, pool) if is_rooted else None


def _continue(path: Path, run_id: str, asked: _Asked, experiment: Experiment, args: argparse.Namespace) -> int:
    """Continue the run and print its answer."""
    from wfdsl.cli.display.live import followed
    from wfdsl.conductor.policy import resume_policy
    from wfdsl.interpreter.running import resume

    request, pool, policy = asked
    set_now = not_default(experiment.run)  # others stay as they were
    options: dict[str, Any] = {
        "journal": path,
        "budget": None if experiment.budget == UNLIMITED else experiment.budget,
        **{name: value for name, value in set_now.items() if name in _CHANGEABLE},
    }
    if policy is None:
        ask = partial(resume, run_id, pool, **options)
    else:
        ask = partial(resume_policy, policy, run_id, request, pool, **options)
    about: RunOptions = {"journal": path, "run_id": run_id, "origin": request.origin}
    print_run(followed(ask, pool, args, about), as_json=args.json)
    return 0


def _told(prepared: Redo, found: RunEstimate, *, has_later: bool) -> str:
    """What is asked again and what it costs at most."""
    names, count = prepared.names, len(prepared.kept)
    asked = ", ".join(names[each.step] if names else f"step {each.step}" for each in found.steps)
    price = "not known" if found.usd is None else f"at most {dollars(found.usd)}"
    later = ", and the Conductor's later rounds, whose cost is not known" if has_later else ""
    free = "1 kept reply costs" if count == 1 else f"{count} kept replies cost"
    return f"asked again: {asked} (cost: {price}){later}; {free} nothing"
