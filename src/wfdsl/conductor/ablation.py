"""What a Conductor may not decide, to measure what its decision is worth."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wfdsl.config import check_options, option
from wfdsl.language.workflow import Workflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """What a Conductor may not decide. Source: arXiv 2512.04388, the ablations of section 5."""

    instruction: str = option("", help="what every worker is told instead of its subtask; empty: its subtask")
    worker: int | None = option(None, help="index of the worker that every step asks; without it, as it was written")

    def __post_init__(self) -> None:
        check_options(self)

    def applied(self, workflow: Workflow) -> Workflow:
        """The workflow with the ablated parts replaced."""
        if not self.instruction and self.worker is None:
            return workflow
        return Workflow(
            tuple(
                replace(
                    step,
                    subtask=self.instruction or step.subtask,
                    worker=step.worker if self.worker is None else self.worker,
                )
                for step in workflow
            )
        )
