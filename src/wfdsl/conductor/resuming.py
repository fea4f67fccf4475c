"""Runs that a Conductor answered, resumed: the Conductor found again by its name, and the run continued with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from wfdsl.conductor.conductor import Conductor
from wfdsl.conductor.config import ConductorConfig
from wfdsl.conductor.effort import EFFORTS
from wfdsl.conductor.named import named_conductor
from wfdsl.interpreter.budget import Budget, BudgetTracker
from wfdsl.interpreter.config import RunRequest, configured
from wfdsl.interpreter.events import Listener
from wfdsl.interpreter.record import Run
from wfdsl.workers.pool import Pool


def conductor_of_run(request: RunRequest, config: ConductorConfig, pool: Pool) -> Conductor:
    """The Conductor that a configuration describes, with the effort that the run names.

    The model is the configuration's, else the run's. Other options of a Conductor are not kept with its runs.

    Raises:
        UsageError, WorkflowError: as `named_conductor` does.
    """
    origin = request.origin
    found = replace(config, model=config.model or origin.get("solve"))
    effort = next((each for each in EFFORTS if each == origin.get("effort")), None)
    return named_conductor(found, pool).with_effort(effort)


async def resume_with(
    conductor: Conductor,
    run_id: str,
    request: RunRequest,
    pool: Pool,
    *,
    journal: Path,
    budget: Budget | None = None,
    account: BudgetTracker | None = None,
    on_event: Listener | None = None,
    **changes: Any,
) -> Run:
    """Continue a Conductor's run that is in the journal; what has been answered is not asked again.

    Args:
        conductor: The Conductor, with the options that the run was started with.
        run_id: The run.
        request: What it was asked.
        pool: The workers.
        journal: The journal's path.
        budget: Limits that replace those of the run.
        account: The tracker of a larger budget, as in `wfdsl.run`.
        on_event: Called with every event as it happens.
        changes: Fields of `RunConfig` by name, instead of the run's.

    Raises:
        RunFailed, BudgetExhausted, UsageError: as `Conductor.solve` does.
    """
    # The Conductor's own step is one level more.
    config = configured(request.config, {"max_depth": request.config.max_depth - 1, **changes})
    solution = await conductor.solve(
        request.question,
        pool,
        **config.manifest(),
        run_id=run_id,
        journal=journal,
        budget=budget or request.budget,
        account=account,
        answer_settings=request.answer_settings,
        tools=request.tools,
        origin=request.origin,
        on_event=on_event,
    )
    return solution.run
