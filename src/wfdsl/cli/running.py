"""What the commands that run workflows share: their options, who watches a run, and how its end is told."""

from __future__ import annotations

import asyncio
import math
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from wfdsl.cli.configuration import add_flag, add_setting
from wfdsl.cli.inputs import count, count_or_none, whole

if TYPE_CHECKING:
    import argparse
    from collections.abc import Coroutine

    from wfdsl.errors import BudgetExhausted, RunFailed
    from wfdsl.experiment.experiment import Experiment
    from wfdsl.interpreter.events import Event, Listener
    from wfdsl.interpreter.record import Run
    from wfdsl.interpreter.running import RunOptions

_T = TypeVar("_T")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add what a run that is gone on with takes too."""
    parser.add_argument("--json", action="store_true", help="print the whole trace as JSON in place of the answer")
    add_setting(
        parser, "--concurrency", "run.concurrency", type=count, metavar="N", help="the most calls in flight at once"
    )
    add_setting(
        parser, "--timeout", "run.timeout_s", type=seconds, metavar="S", help="the most seconds for the whole run"
    )
    add_setting(
        parser, "--step-timeout", "run.step_timeout_s", type=seconds, metavar="S", help="the most seconds for a step"
    )
    add_setting(parser, "--budget-calls", "budget.calls", type=whole, metavar="N", help="the most calls")
    add_setting(
        parser,
        "--budget-tokens",
        "budget.tokens",
        type=whole,
        metavar="N",
        help="the most tokens, input and output",
    )
    add_setting(parser, "--budget-usd", "budget.usd", type=dollars, metavar="USD", help="the most US dollars")
    add_setting(
        parser, "--budget-seconds", "budget.seconds", type=seconds, metavar="S", help="the most seconds of wall time"
    )
    parser.add_argument("--otel", action="store_true", help="send OpenTelemetry spans, as the environment sets it up")
    add_flag(parser, "--reuse", "run.reuse", help="use replies again that other runs have in the journal")


def add_new_run_options(parser: argparse.ArgumentParser) -> None:
    """Add what only a new run takes."""
    add_setting(
        parser, "--seed", "run.seed", type=whole, metavar="N", help="make workers that honour a seed repeatable"
    )
    add_setting(
        parser,
        "--max-depth",
        "run.max_depth",
        type=count_or_none,
        metavar="N",
        help="levels of Conductor nodes (default: 1)",
    )
    add_flag(parser, "--no-journal", "run.journal", value=False, help="keep nothing: the run cannot be gone on with")


def seconds(text: str) -> float:
    """An argument that is a number of seconds above 0."""
    return _number(text, "a number of seconds above 0", zero=False)


def dollars(text: str) -> float:
    """An argument that is an amount of US dollars."""
    return _number(text, "an amount of US dollars", zero=True)


def factor(text: str) -> float:
    """An argument that is a number above 0."""
    return _number(text, "a number above 0", zero=False)


def _number(text: str, what: str, *, zero: bool) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf or (zero and number == 0)):
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"{text!r} is not {what}")
    return number


def run_options(experiment: Experiment, *, run_id: str | None = None, origin: dict[str, str]) -> RunOptions:
    """What a new run is told, but for who hears its events.

    Raises:
        UsageError: the budget cannot be used.
    """
    from wfdsl.experiment.running import budget_of, run_options_of
    from wfdsl.interpreter.journal_file import default_path

    run = experiment.run
    return {
        **run_options_of(run),
        "budget": budget_of(experiment.budget),
        "journal": default_path() if run.journal else None,
        "concurrency": run.concurrency,
        "seed": run.seed,
        "run_id": run_id,
        "reuse": run.reuse,
        "origin": origin,
    }


def print_run(run: Run, *, as_json: bool) -> None:
    """The answer, or the trace, on standard output."""
    print(run.to_json(indent=2) if as_json else run.answer)


def followed(run_id: str, work: Coroutine[Any, Any, Run], display: Any, *, as_json: bool, kept: bool) -> Run:
    """Wait for a run, showing it; a run that ends without an answer is printed if JSON was asked for."""
    from wfdsl.errors import BudgetExhausted, RunFailed

    try:
        with display:
            return asyncio.run(stopped_by_sigterm(work))
    except (RunFailed, BudgetExhausted) as error:
        if as_json:
            print_run(error.run, as_json=True)
        raise
    except (KeyboardInterrupt, asyncio.CancelledError):
        if kept:
            print(f"`wfdsl resume {run_id}` goes on from here", file=sys.stderr)
        raise KeyboardInterrupt from None


def advised(error: RunFailed | BudgetExhausted, advice: str) -> str:
    """What an error says, with another advice of how to go on than `wfdsl resume`, which does not know Conductors."""
    return str(error).replace(f"`wfdsl resume {error.run.id}`", advice)


async def stopped_by_sigterm(work: Coroutine[Any, Any, _T]) -> _T:
    """Let SIGTERM, which a system sends that shuts down, end some work as Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None  # asyncio.run has made it
    # Windows has no such signal, and only the main thread may listen to one.
    if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


def listener_for(display: Any, *, otel: bool) -> Listener | None:
    """Who hears the events: the display, if any, and OpenTelemetry if it was asked for.

    Raises:
        UsageError: OpenTelemetry was asked for and is not installed.
    """
    if not otel:
        listener: Listener | None = display
        return listener
    from wfdsl.interpreter.telemetry import SpanListener

    spans = SpanListener()
    if display is None:
        return spans

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
