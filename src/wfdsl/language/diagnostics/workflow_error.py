"""The error that carries the diagnostics of a text that is not a valid workflow."""

from __future__ import annotations

from collections.abc import Sequence

from wfdsl.errors import WfdslError
from wfdsl.language.diagnostics.diagnostic import Diagnostic
from wfdsl.language.diagnostics.formatting import as_text
from wfdsl.language.source import Source


class WorkflowError(WfdslError, ValueError):
    """A text or a value that is not a valid workflow: the writer's mistake.

    `diagnostics` holds every problem; `str()` shows them as the command line would.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source | None = None) -> None:
        self.diagnostics = tuple(diagnostics)
        self.source = source
        super().__init__("\n\n".join(as_text(found, source) for found in self.diagnostics))
