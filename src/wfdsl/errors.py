"""Every error that this package raises on purpose, and which of three kinds it is.

1. The writer's mistake: `WorkflowError`, which carries diagnostics. The text has to change.
2. The outside world: `RunFailed`, `BudgetExhausted` and what leads to them. The same text may run later;
   what has been paid for is in the partial run that they carry.
3. Ours: plain exceptions such as `AssertionError`. Nobody catches them.

`UsageError` is for a command or setting that cannot be used; the command line turns it into exit code 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl.interpreter.record import Run
    from wfdsl.language.diagnostics.diagnostic import Diagnostic
    from wfdsl.language.source import Source


class WfdslError(Exception):
    """The base of all of them."""


class UsageError(WfdslError):
    """A setting, an argument or a file that cannot be used. The message says what to do."""


class WorkflowError(WfdslError, ValueError):
    """A text or a value that is no valid workflow: the writer's mistake.

    `diagnostics` holds every problem; `str()` shows them as the command line would.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source | None = None) -> None:
        self.diagnostics = tuple(diagnostics)
        self.source = source
        super().__init__(self._text())

    def _text(self) -> str:
        from wfdsl.language.diagnostics.formatting import as_text  # noqa: PLC0415  (drawing is needed only once there is an error)

        return "\n\n".join(as_text(found, self.source) for found in self.diagnostics)


class RunFailed(WfdslError):  # noqa: N818  (the name that users know)
    """A run that ended without an answer, because of the outside world.

    `run` is the partial record: what was answered before, and what it cost. The message names the step, the worker,
    the cause and what to do.
    """

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.run = run


class BudgetExhausted(WfdslError):  # noqa: N818  (the name that users know)
    """A run that stopped before a call that its budget does not cover. It can be resumed with a larger one.

    `run` is the partial record.
    """

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.run = run


class JournalFailure(UsageError):  # noqa: N818  (a kind of failure, as WorkerFailure is)
    """The journal cannot be read or written. No answer is used that it does not hold. The message says what to do."""
