"""What a run says when it ends without an answer: which step, which worker, why, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from wfdsl.errors import BudgetExhausted, JournalFailure, RunFailed
from wfdsl.interpreter.budget import BudgetSpent
from wfdsl.protocols import WorkerFailure

if TYPE_CHECKING:
    from wfdsl.interpreter.record import Run, RunStatus

Cause: TypeAlias = WorkerFailure | BudgetSpent | JournalFailure | RunFailed | BudgetExhausted
CAUSES = (WorkerFailure, BudgetSpent, JournalFailure, RunFailed, BudgetExhausted)
"""What the outside world can do to a step. Anything else is a mistake in a program, and is left alone."""


@dataclass(frozen=True, slots=True)
class StepFailure:
    """The first step that failed, and why."""

    title: str
    worker: str
    cause: Cause
    resume: str
    """The run's id if it can be resumed, or else empty."""

    @property
    def status(self) -> RunStatus:
        """How the run ends."""
        return "budget" if isinstance(self.cause, BudgetSpent | BudgetExhausted) else "failed"

    def text(self) -> str:
        """The message."""
        if isinstance(self.cause, RunFailed | BudgetExhausted):
            return f"{self.title}, {self.worker}: {self.cause}"
        if isinstance(self.cause, BudgetSpent):
            return f"{self.title} was not finished, {self.worker}: {self.cause}; {self._larger()}"
        return f"{self.title} failed, {self.worker}: {self.cause}; {self._again()}"

    def error(self, run: Run) -> RunFailed | BudgetExhausted:
        """The error that carries the partial run."""
        kind = BudgetExhausted if self.status == "budget" else RunFailed
        return kind(self.text(), run)

    def _larger(self) -> str:
        if self.resume:
            return f"`wfdsl resume {self.resume}` with a larger budget goes on from here"
        return "run it with a larger budget"

    def _again(self) -> str:
        if self.resume:
            return f"once that is mended, `wfdsl resume {self.resume}` goes on from here"
        return "once that is mended, run it again"
