"""How commands end: which exit code each kind of error has, and one line that says it."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wfdsl.errors import BudgetExhausted, UsageError, WfdslError, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable

OK, INVALID, USAGE, FAILED, SPENT, INTERRUPTED = 0, 1, 2, 3, 4, 130


def ended(program: str, work: Callable[[], int], *, on_interrupt: str = "interrupted") -> int:
    """Do all the work of a process; its exit code, also where it ends in an error, or where nobody reads on."""
    _prepare_streams()
    try:
        code = reported(program, work, on_interrupt=on_interrupt)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough (`| head`).
        _drop_output()
        return OK
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        _drop_output()
        print(f"{program}: the output cannot be written: the disk is full", file=sys.stderr)
        return USAGE
    return code


def reported(program: str, work: Callable[[], int], *, on_interrupt: str = "interrupted") -> int:
    """Do some work; its exit code. An error that has one is told under the program's name."""
    try:
        return work()
    except WorkflowError as error:
        return _said(str(error), INVALID)
    except UsageError as error:
        return _said(f"{program}: {error}", USAGE)
    except BudgetExhausted as error:
        return _said(f"{program}: {error}", SPENT)
    except WfdslError as error:
        return _said(f"{program}: {error}", FAILED)
    except KeyboardInterrupt:
        return _said(f"{program}: {on_interrupt}", INTERRUPTED)


def _prepare_streams() -> None:
    """Let every text be printed, whatever the terminal's encoding, and let a stream be closed by the caller."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  (open until the end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Let Python flush into nothing when it exits, so that it does not complain a second time."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _said(message: str, code: int) -> int:
    sys.stdout.flush()
    print(message, file=sys.stderr)
    return code
