"""Whether a workflow can run on a pool at all: asked before anything is paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wfdsl.errors import UsageError

if TYPE_CHECKING:
    from wfdsl.interpreter.environment import WorkerPool
    from wfdsl.language.workflow import Workflow


def require_runnable(workflow: Workflow, pool: WorkerPool, depth: int) -> None:
    """Refuse a workflow that cannot run on a pool, before anything is paid for.

    Raises:
        UsageError: it has no steps, a step's worker is not in the pool, or is a Conductor where `depth` is used up.
    """
    if not workflow.steps:
        raise UsageError("an empty workflow has no answer; it needs at least one step")
    known = set(pool.ordinals)
    conductors = getattr(pool, "conductors", ()) if depth <= 0 else ()
    for index, step in enumerate(workflow.steps):
        if step.worker in conductors:
            raise UsageError(
                f"step {index} asks a Conductor, and the recursion depth is used up; allow a larger max_depth"
            )
        if step.worker not in known:
            offered = ", ".join(map(str, pool.ordinals)) or "none"
            raise UsageError(
                f"step {index} asks worker {step.worker!r}, which pool {pool.name!r} does not have "
                f"(workers: {offered}); check the workflow against the pool that it runs on"
            )
