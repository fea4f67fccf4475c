"""What a Conductor may not decide, to measure what its decision is worth.

Source: arXiv 2512.04388, the ablations of section 5.
"""

from __future__ import annotations

from dataclasses import replace

from wfdsl.language.workflow import Workflow


def ablated(workflow: Workflow, *, instruction: str = "", worker: int | None = None) -> Workflow:
    """The workflow with every subtask, or every worker, replaced by the one that is given."""
    if not instruction and worker is None:
        return workflow
    return Workflow(
        tuple(
            replace(step, subtask=instruction or step.subtask, worker=step.worker if worker is None else worker)
            for step in workflow
        )
    )
