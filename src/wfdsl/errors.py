"""Errors that this package raises on purpose. There are three kinds of failure, which are never mixed.

1. The writer's mistake: `WorkflowError` (in `language.diagnostics`), which carries diagnostics. The
   text has to change.
2. The outside world: `RunFailed` and `BudgetExhausted` (in `interpreter.record`, with the partial run that they carry)
   and what leads to them. The same text may run later.
3. Our own mistakes: plain exceptions such as `AssertionError`. No code catches them.

`UsageError` is for a command or setting that cannot be used; the command line turns it into exit code 2.
"""

from __future__ import annotations


class WfdslError(Exception):
    """The base of all of them."""


class UsageError(WfdslError):
    """A setting, an argument or a file that cannot be used. The message says what to do."""


class JournalFailure(UsageError):  # noqa: N818  (a kind of failure, as WorkerFailure is)
    """The journal cannot be read or written. Only answers that it holds are used. The message says what to do."""


class RunInUse(UsageError):  # noqa: N818  (as JournalFailure is)
    """Another process, or another task of this one, is working on a run."""
