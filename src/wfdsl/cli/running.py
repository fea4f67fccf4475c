"""Running one workflow from the command line: how a run begins, who watches it, how it ends, and `--dry-run`.

Only `run`, `resume` and `solve` import this module, and only when they execute: the interpreter takes start-up time.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Coroutine, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias, TypeVar

from rich.console import Console

from wfdsl.cli.live import PlainDisplay, TerminalDisplay
from wfdsl.cli.output import print_json
from wfdsl.experiment import Experiment, RunSettings, run_options
from wfdsl.interpreter.estimate import RunEstimate, estimate
from wfdsl.interpreter.events import Event, Listener
from wfdsl.interpreter.execution import require_runnable
from wfdsl.interpreter.journal_file import default_path
from wfdsl.interpreter.record import BudgetExhausted, Run, RunFailed
from wfdsl.interpreter.running import RunOptions
from wfdsl.language.workflow import Workflow
from wfdsl.workers.pool import Pool

_T = TypeVar("_T")
Display: TypeAlias = PlainDisplay | TerminalDisplay


def new_run_options(experiment: Experiment, *, run_id: str | None = None, origin: dict[str, str]) -> RunOptions:
    """What a new run is told, except for who hears its events."""
    return {
        **run_options(experiment.run),
        "budget": experiment.budget,
        "journal": default_path() if experiment.run.journal else None,
        "run_id": run_id,
        "origin": origin,
    }


def print_run(run: Run, *, as_json: bool) -> None:
    """The answer, or the trace, on standard output."""
    print(run.to_json(indent=2) if as_json else run.answer)


def followed(run_id: str, work: Coroutine[Any, Any, Run], display: Display, *, as_json: bool, kept: bool) -> Run:
    """Wait for a run, showing it; a run that ends without an answer is printed if JSON was asked for."""
    try:
        with display:
            return asyncio.run(stopped_by_sigterm(work))
    except (RunFailed, BudgetExhausted) as error:
        if as_json:
            print_run(error.run, as_json=True)
        raise
    except (KeyboardInterrupt, asyncio.CancelledError):
        if kept:
            print(f"continue with: wfdsl resume {run_id}", file=sys.stderr)
        raise KeyboardInterrupt from None


async def stopped_by_sigterm(work: Coroutine[Any, Any, _T]) -> _T:
    """Let SIGTERM, which a system sends when it shuts down, end some work as Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None  # asyncio.run has made it
    # Windows has no such signal, and only the main thread may listen to one.
    if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


def listener_for(display: Display | None, *, otel: bool) -> Listener | None:
    """Who hears the events: the display, if any, and OpenTelemetry if it was asked for.

    Raises:
        UsageError: OpenTelemetry was asked for and is not installed.
    """
    if not otel:
        return display
    from wfdsl.interpreter.telemetry import SpanListener  # an optional package

    spans = SpanListener()
    if display is None:
        return spans

    def both(event: Event) -> None:
        display(event)
        spans(event)

    return both


def display_for_stderr() -> Display:
    """What shows events: a live table if standard error is a terminal, plain lines otherwise."""
    return TerminalDisplay(Console(stderr=True)) if sys.stderr.isatty() else PlainDisplay(sys.stderr)


def print_forecast(
    workflow: Workflow, question: str, pool: Pool, run: RunSettings, *, names: Sequence[str] | None, as_json: bool
) -> None:
    """Print the messages that a workflow would send, and the most that it may cost (`--dry-run`).

    Raises:
        UsageError: the workflow cannot run on this pool.
    """
    require_runnable(workflow, pool, run.max_depth)
    found = estimate(workflow, question, pool, question_for=run.question_for, run_dead_steps=run.run_dead_steps)
    if as_json:
        print_json({**asdict(found), "calls": found.calls, "usd": found.usd}, indent=2)
    else:
        print(_as_text(found, names))


def _as_text(found: RunEstimate, names: Sequence[str] | None) -> str:
    lines = []
    for step in found.steps:
        title = names[step.step] if names else f"step {step.step}"
        lines.append(f"{title}: worker {step.worker} ({step.worker_name})")
        for message in step.messages:
            text = message["content"].replace("\n", "\n    ")
            lines.append(f"  {message['role']}: {text}")
    if found.pruned:
        lines.append(f"left out, since they cannot change the answer: {', '.join(map(str, found.pruned))}")
    ceiling = "not known: a worker has no prices or no max_tokens" if found.usd is None else f"${found.usd:.4f}"
    lines.append(f"calls: {found.calls}")
    lines.append(f"cost at most: {ceiling}")
    return "\n".join(lines)
