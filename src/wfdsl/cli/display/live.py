"""A run of a command: how it is started, followed while it runs, and stopped by Ctrl-C or SIGTERM.

Commands import this module when they execute: rich and the interpreter take start-up time.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import nullcontext
from pathlib import PurePath
from typing import Any, TypeVar

from wfdsl.cli.display.progress import Progress, progress_for
from wfdsl.cli.inputs import STDIN
from wfdsl.cli.output import Interrupted, end_at_once, print_run
from wfdsl.experiment import Experiment, run_options
from wfdsl.interpreter.events import Event, Listener
from wfdsl.interpreter.journal_file import default_path
from wfdsl.interpreter.record import Run, RunEnded
from wfdsl.interpreter.running import RunOptions, new_run_id
from wfdsl.workers.pool import Pool

_PATIENCE = 2
"""How many times Ctrl-C waits until the calls in flight are closed."""
_T = TypeVar("_T")


def new_run_options(experiment: Experiment, origin: dict[str, str]) -> RunOptions:
    """What a new run is told, except for who hears its events."""
    return {
        **run_options(experiment.run),
        "budget": experiment.budget,
        "journal": default_path() if experiment.run.journal else None,
        "run_id": new_run_id(),
        "origin": origin,
    }


def followed(
    ask: Callable[..., Coroutine[Any, Any, Run]], pool: Pool, args: argparse.Namespace, options: RunOptions
) -> Run:
    """Show a run and wait for it; one that ends without an answer is printed if JSON was asked for.

    `ask` takes `on_event`; of `options`, the run has its id, its origin and its journal.
    """
    display = None if args.quiet else progress_for(pool)
    hint = "" if options["journal"] is None else f"continue with: wfdsl runs resume {options['run_id']}"
    work = ask(on_event=listener_for(display, otel=args.otel, origin=options["origin"] or {}))
    try:
        with display or nullcontext():
            return asyncio.run(stopped_by_signals(work, hint))
    except RunEnded as error:
        if args.json:
            print_run(error.run, as_json=True)
        raise
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise Interrupted(hint) from None


async def stopped_by_signals(work: Coroutine[Any, Any, _T], hint: str) -> _T:
    """Let Ctrl-C, SIGTERM and SIGHUP cancel some work: the system shuts down, or the terminal has gone.

    The third Ctrl-C does not wait until the work has ended: it prints the hint and ends the process.
    """
    task = asyncio.current_task()
    assert task is not None  # asyncio.run has made it
    # Windows has no such signals, and only the main thread may listen to them. `nohup` ignores SIGHUP.
    if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
        for stop in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(stop) is not signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(stop, task.cancel)
        try:
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                return await _stopped_by_ctrl_c(work, task, hint)
            return await work
        finally:
            # The loop closes the pipe that signals write to before it tells Python so; a Ctrl-C between the two would
            # print a traceback. Signals that have a handler of the loop are ignored from here on.
            signal.set_wakeup_fd(-1)
    return await work


async def _stopped_by_ctrl_c(work: Coroutine[Any, Any, _T], task: asyncio.Task[Any], hint: str) -> _T:
    heard, loop = 0, asyncio.get_running_loop()

    def stop(*_: object) -> None:
        nonlocal heard
        heard += 1
        if heard > _PATIENCE:
            end_at_once(hint)
        if not loop.is_closed():
            loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGINT, stop)
    try:
        return await work
    finally:
        if not heard:  # else it still guards the clean-up, until the command says that it was interrupted
            signal.signal(signal.SIGINT, before)


def listener_for(display: Progress | None, *, otel: bool, origin: Mapping[str, str]) -> Listener | None:
    """Who hears the events: the display, if any, and OpenTelemetry if it was asked for.

    `origin` says what runs; spans have the name of its workflow file, or `solve` where a Conductor answers.

    Raises:
        UsageError: OpenTelemetry was asked for, and is not installed or has no provider.
    """
    if not otel:
        return display
    from wfdsl.interpreter.telemetry import SpanListener, require_provider  # an optional package

    require_provider()
    file = origin.get("file", STDIN)
    spans = SpanListener(workflow="solve" if "solve" in origin else "" if file == STDIN else PurePath(file).stem)

    def both(event: Event) -> None:
        if display is not None:
            display(event)
        spans(event)

    return both
