"""Errors that this package raises on purpose. There are three kinds of failure, which are never mixed.

1. The writer's mistake: `WorkflowError`, which carries diagnostics. The text has to change.
2. The outside world: `RunFailed` and `BudgetExhausted` (in `interpreter.record`, with the partial run that they carry)
   and what leads to them. The same text may run later.
3. Our own mistakes: plain exceptions such as `AssertionError`. No code catches them.

`UsageError` is for a command or setting that cannot be used; the command line turns it into exit code 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # start-up time: every command imports this module
    from collections.abc import Sequence

    from wfdsl.language.diagnostics.diagnostic import Diagnostic
    from wfdsl.language.source import Source


class WfdslError(Exception):
    """The base of all of them."""


class UsageError(WfdslError):
    """A setting, an argument or a file that cannot be used. The message says what to do."""


class WorkflowError(WfdslError, ValueError):
    """A text or a value that is not a valid workflow: the writer's mistake.

    `diagnostics` holds every problem; `str()` shows them as the command line would.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source | None = None) -> None:
        self.diagnostics = tuple(diagnostics)
        self.source = source
        super().__init__(self._text())

    def _text(self) -> str:
        from wfdsl.language.diagnostics.formatting import as_text  # noqa: PLC0415  (drawing is needed only once there is an error)

        return "\n\n".join(as_text(found, self.source) for found in self.diagnostics)


class JournalFailure(UsageError):  # noqa: N818  (a kind of failure, as WorkerFailure is)
    """The journal cannot be read or written. Only answers that it holds are used. The message says what to do."""
