"""How the commands of this package end: which exit code each kind of error has, and one line that says it."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

from wfdsl.errors import BudgetExhausted, UsageError, WfdslError, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable

OK, INVALID, USAGE, FAILED, SPENT, INTERRUPTED = 0, 1, 2, 3, 4, 130


def ended(program: str, work: Callable[[], int], *, on_interrupt: str = "interrupted") -> int:
    """Do the work of a command; its exit code, also where it ends in an error that has one."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = work()
        sys.stdout.flush()
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
    except BrokenPipeError:
        # Whoever read our output has seen enough (`| head`); Python shall not complain when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return code


def _said(message: str, code: int) -> int:
    sys.stdout.flush()
    print(message, file=sys.stderr)
    return code
