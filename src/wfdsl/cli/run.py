"""Run a workflow on a question.

The answer goes to standard output, progress to standard error. Each call is kept in the journal before it is used, so
that `wfdsl resume` goes on after whatever stopped a run.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wfdsl.cli.inputs import add_input_options, count, load_pool, read_checked
from wfdsl.errors import JournalFailure, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Coroutine

    from wfdsl.api import Checked
    from wfdsl.interpreter.budget import Budget
    from wfdsl.interpreter.events import Event, Listener
    from wfdsl.interpreter.forecast import Forecast
    from wfdsl.interpreter.record import Run

DEFAULT_POOL = "local"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl run`."""
    parser.add_argument("file", metavar="FILE", help="a .wf file or a completion; - reads standard input")
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("-q", "--question", metavar="TEXT", help="the question to answer")
    asked.add_argument("--question-file", metavar="FILE", help="a text file that holds the question")
    parser.add_argument("--dry-run", action="store_true", help="ask nobody: print the messages and the cost ceiling")
    parser.add_argument("--seed", type=int, metavar="N", help="make workers that honour a seed repeatable")
    parser.add_argument("--all-steps", action="store_true", help="also run steps that cannot change the answer")
    parser.add_argument(
        "--question-for", choices=["all", "first"], default="all", help="which steps are shown the question"
    )
    parser.add_argument("--max-depth", type=int, default=1, metavar="N", help="levels of Conductor nodes (default: 1)")
    parser.add_argument("--no-journal", action="store_true", help="keep nothing: the run cannot be resumed")
    add_input_options(parser)
    add_run_options(parser)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add what `run` and `resume` share."""
    parser.add_argument("--json", action="store_true", help="print the whole trace as JSON in place of the answer")
    parser.add_argument("--concurrency", type=count, metavar="N", help="the most calls in flight at once")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="the most seconds for the whole run")
    parser.add_argument("--step-timeout", type=seconds, metavar="S", help="the most seconds for a step")
    parser.add_argument("--budget-calls", type=int, metavar="N", help="the most calls")
    parser.add_argument("--budget-tokens", type=int, metavar="N", help="the most tokens, input and output")
    parser.add_argument("--budget-usd", type=float, metavar="USD", help="the most US dollars")
    parser.add_argument("--budget-seconds", type=seconds, metavar="S", help="the most seconds of wall time")
    parser.add_argument("--otel", action="store_true", help="send OpenTelemetry spans, as the environment sets it up")
    parser.add_argument("--reuse", action="store_true", help="use replies again that other runs have in the journal")


def seconds(text: str) -> float:
    """An argument that is a number of seconds above 0."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError(text)
    return number


def execute(args: argparse.Namespace) -> int:
    """Run the workflow and print its answer."""
    checked = read_checked(args.file, args, default_pool=DEFAULT_POOL)
    pool, question = load_pool(args, default=DEFAULT_POOL), _question(args)
    if args.dry_run:
        _print_forecast(checked, question, pool, args)
        return 0
    print_run(_run(checked, question, pool, args), as_json=args.json)
    return 0


def print_run(run: Run, *, as_json: bool) -> None:
    """The answer, or the trace, on standard output."""
    print(run.to_json(indent=2) if as_json else run.answer)


def budget_of(args: argparse.Namespace) -> Budget | None:
    """The budget that the options say; None if they say none."""
    from wfdsl.interpreter.budget import Budget

    given = Budget(calls=args.budget_calls, tokens=args.budget_tokens, usd=args.budget_usd, wall_s=args.budget_seconds)
    return None if given == Budget() else given


def followed(run_id: str, work: Coroutine[Any, Any, Run], display: Any, *, as_json: bool, kept: bool) -> Run:
    """Wait for a run, showing it; a run that ends without an answer is printed if JSON was asked for."""
    from wfdsl.errors import BudgetExhausted, RunFailed

    try:
        with display:
            return asyncio.run(_stopped_by_sigterm(work))
    except (RunFailed, BudgetExhausted) as error:
        if as_json:
            print_run(error.run, as_json=True)
        raise
    except (KeyboardInterrupt, asyncio.CancelledError):
        if kept:
            print(f"`wfdsl resume {run_id}` goes on from here", file=sys.stderr)
        raise KeyboardInterrupt from None


async def _stopped_by_sigterm(work: Coroutine[Any, Any, Run]) -> Run:
    """Let SIGTERM, which a system sends that shuts down, end a run as Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None  # asyncio.run has made it
    # Windows has no such signal, and only the main thread may listen to one.
    if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


def listener_for(display: Any, args: argparse.Namespace) -> Listener:
    """Who hears the events: the display, and OpenTelemetry if it was asked for.

    Raises:
        UsageError: OpenTelemetry was asked for and is not installed.
    """
    if not args.otel:
        listener: Listener = display
        return listener
    from wfdsl.interpreter.telemetry import SpanListener

    spans = SpanListener()

    def both(event: Event) -> None:
        display(event)
        spans(event)

    return both


def display_for_stderr() -> Any:
    """What shows events: a live table if standard error is a terminal, plain lines otherwise."""
    from wfdsl.cli.live import PlainDisplay, TerminalDisplay

    if not sys.stderr.isatty():
        return PlainDisplay(sys.stderr)
    from rich.console import Console

    return TerminalDisplay(Console(stderr=True))


def _run(checked: Checked, question: str, pool: Any, args: argparse.Namespace) -> Run:
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.running import new_run_id, run

    assert checked.workflow is not None, "read_checked returns a workflow or raises"
    run_id, display = new_run_id(), display_for_stderr()
    work = run(
        checked.workflow,
        question,
        pool,
        budget=budget_of(args),
        journal=None if args.no_journal else default_path(),
        concurrency=args.concurrency,
        seed=args.seed,
        timeout_s=args.timeout,
        step_timeout_s=args.step_timeout,
        names=_names(checked),
        question_for=args.question_for,
        run_dead_steps=args.all_steps,
        max_depth=args.max_depth,
        on_event=listener_for(display, args),
        run_id=run_id,
        reuse=args.reuse,
        origin={"file": args.file, "pool": args.pool or DEFAULT_POOL},
    )
    try:
        return followed(run_id, work, display, as_json=args.json, kept=not args.no_journal)
    except JournalFailure as error:
        raise JournalFailure(f"{error}; or keep nothing, with --no-journal") from error


def _names(checked: Checked) -> tuple[str, ...] | None:
    return None if checked.tree is None else checked.tree.names


def _question(args: argparse.Namespace) -> str:
    if args.question_file is None:
        return str(args.question)
    try:
        return Path(args.question_file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{args.question_file}: the question cannot be read: {error}") from error


def _print_forecast(checked: Checked, question: str, pool: Any, args: argparse.Namespace) -> None:
    from wfdsl.interpreter.forecast import forecast
    from wfdsl.interpreter.runnable import require_runnable

    assert checked.workflow is not None, "read_checked returns a workflow or raises"
    require_runnable(checked.workflow, pool, args.max_depth)
    found = forecast(checked.workflow, question, pool, question_for=args.question_for, run_dead_steps=args.all_steps)
    if args.json:
        print(json.dumps({**asdict(found), "calls": found.calls, "usd": found.usd}, ensure_ascii=False, indent=2))
    else:
        print(_forecast_text(found, _names(checked)))


def _forecast_text(found: Forecast, names: tuple[str, ...] | None) -> str:
    lines = []
    for step in found.steps:
        title = names[step.step] if names else f"step {step.step}"
        lines.append(f"{title}: worker {step.worker} ({step.worker_name})")
        for message in step.messages:
            text = message["content"].replace("\n", "\n    ")
            lines.append(f"  {message['role']}: {text}")
    if found.pruned:
        lines.append(f"left out, since they cannot change the answer: {', '.join(map(str, found.pruned))}")
    ceiling = "not known: a worker has no prices or no longest reply" if found.usd is None else f"${found.usd:.4f}"
    lines.append(f"calls: {found.calls}")
    lines.append(f"cost at most: {ceiling}")
    return "\n".join(lines)
