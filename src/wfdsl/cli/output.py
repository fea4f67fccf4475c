"""How commands end: exit codes, one line for each kind of error, JSON on standard output."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn

from wfdsl.cli.display.streams import OutputFailed, print_exactly, safe_streams
from wfdsl.errors import UsageError, WfdslError

if TYPE_CHECKING:  # start-up time: `wfdsl --help` imports this module
    from wfdsl.conductor.policy import Solution
    from wfdsl.interpreter.record import Run, RunEnded

OK, INVALID, USAGE, FAILED, SPENT, INTERRUPTED = 0, 1, 2, 3, 4, 130
SMALL_MODEL: Final = (
    "no pool is named, so a very small model on this machine (135 million parameters) {}, and is often wrong; "
    "for real answers name models, such as --pool openai:gpt-5-mini with the key in OPENAI_API_KEY"
)
"""Said where no pool is named; with what the model does."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C or a signal has stopped a command; the message says how to continue."""


def ended(program: str, work: Callable[[], int], *, on_interrupt: str = "interrupted") -> int:
    """Do all the work of a process; the exit code, also after an error or when the reader of a pipe has left."""
    with safe_streams():
        try:
            code = reported(program, work, on_interrupt=on_interrupt)
            sys.stdout.flush()
        except KeyboardInterrupt:  # a second one, while the first was reported
            return INTERRUPTED
        except OutputFailed as failure:
            if failure.closed:
                return OK
            advice = f"; {failure.advice}" if failure.advice else ""
            print(f"{program}: {failure}{advice}", file=sys.stderr)
            return USAGE
    return code


def reported(program: str, work: Callable[[], int], *, on_interrupt: str = "interrupted") -> int:
    """Do some work; the exit code. An error that has one is printed after the program's name."""
    try:
        return work()
    except WfdslError as error:
        return reported_error(program, error)
    except OSError as error:
        if error.filename is None and error.errno != errno.ENOSPC:
            raise
        place = f"{error.filename}: " if error.filename else ""
        return _said(f"{program}: {place}{(error.strerror or str(error)).lower()}", USAGE)
    except KeyboardInterrupt as interrupt:
        advice = f"{interrupt}\n" if isinstance(interrupt, Interrupted) and str(interrupt) else ""
        return _said_at_last(f"{advice}{program}: {on_interrupt}", INTERRUPTED)


def reported_error(program: str, error: WfdslError) -> int:
    """Print an error after the program's name; its exit code."""
    if isinstance(error, UsageError):
        return _said(f"{program}: {error}", USAGE)
    from wfdsl.language.diagnostics import WorkflowError

    if isinstance(error, WorkflowError):
        return _said(str(error), INVALID)
    from wfdsl.interpreter.record import BudgetExhausted, RunEnded

    said = advised(error) if isinstance(error, RunEnded) else error
    return _said(f"{program}: {said}", SPENT if isinstance(error, BudgetExhausted) else FAILED)


def advised(error: RunEnded, command: str | None = None) -> str:
    """What an error says, and what to do. `command` continues the run; None: the usual one for its kind of run."""
    from wfdsl.interpreter.record import BudgetExhausted, RunSuspended

    if isinstance(error, RunSuspended):
        return f"{error}; it continues when the program that has these tools sends the results"
    spent = isinstance(error, BudgetExhausted)
    if not error.resumable:
        return f"{error}; {'run it with a larger budget' if spent else 'fix the cause, then run it again'}"
    from wfdsl.conductor.round_log import gave_up, node_gave_up

    if command is None:
        if gave_up(error.run):
            return f"{error}; or run the same command again for other completions"
        command = f"wfdsl runs resume {error.run_id}"
    if node_gave_up(error.run):
        return f"{error}; then continue with: {command} --ask-again (without it, the same completions are read again)"
    return f"{error}; {'continue with a larger budget' if spent else 'fix the cause, then continue with'}: {command}"


def print_json(value: Any, *, indent: int | None = None) -> None:
    """Print a value as JSON on standard output, valid in every encoding."""
    import json

    ascii_only = sys.stdout.encoding.lower() != "utf-8"
    print(json.dumps(value, ensure_ascii=ascii_only, indent=indent), flush=True)


def print_run(run: Run | Solution, *, as_json: bool) -> None:
    """The answer of a run exactly as it is, or its trace, on standard output.

    Raises:
        OutputFailed: it cannot be written.
    """
    try:
        if as_json:
            print(run.to_json(indent=2), flush=True)
        else:
            print_exactly(f"{run.answer}\n")
    except OutputFailed as failure:
        ran = run.run if hasattr(run, "run") else run
        failure.advice = f"`wfdsl runs resume {ran.id}` prints the answer"
        raise


def print_now(line: str) -> None:
    """Print a line on standard error, at once."""
    print(line, file=sys.stderr, flush=True)


def _said(message: str, code: int) -> int:
    sys.stdout.flush()
    print(message, file=sys.stderr)
    return code


def _said_at_last(message: str, code: int) -> int:
    """Print the last words of a process; more Ctrl-C does not take them away, and ends the process at once."""
    import atexit
    import signal
    import threading

    heard = threading.current_thread() is threading.main_thread()
    if heard:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    _said(message, code)
    if heard:
        signal.signal(signal.SIGINT, lambda *_: os._exit(code))
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # Python drops its own handlers when it ends
    return code


def end_at_once(message: str) -> NoReturn:
    """End the process, whatever it is doing; for signal handlers, which must not use Python's streams."""
    with suppress(OSError):
        show_cursor = "\x1b[?25h" if os.isatty(2) else ""
        os.write(2, f"{show_cursor}{message}\n".encode())
    os._exit(INTERRUPTED)
