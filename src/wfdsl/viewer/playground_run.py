"""A text of the playground run on a pool: its price first, then a run in the journal that spends no more."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from wfdsl.api import Checked
from wfdsl.errors import WfdslError
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.config import RunConfig
from wfdsl.interpreter.events import Event
from wfdsl.interpreter.execution import require_runnable
from wfdsl.interpreter.record import RunEnded
from wfdsl.interpreter.running import checked_question, new_run_id, run
from wfdsl.interpreter.worker_profile import RunEstimate, estimate
from wfdsl.language.workflow import Workflow
from wfdsl.viewer.forms import price_field, rounded_up
from wfdsl.viewer.pools import Offered
from wfdsl.viewer.redo_page import Redoing
from wfdsl.workers.pool import Pool


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be run, and what it takes."""

    workflow: Workflow
    names: tuple[str, ...] | None
    question: str
    pool: Pool
    origin: Mapping[str, str]
    """What the run's record says of where it comes from."""
    estimate: RunEstimate

    @property
    def price(self) -> str:
        """The price as forms carry it; empty if it is not known."""
        return price_field(self.estimate.usd)

    @property
    def at_most(self) -> str:
        """The price as it is shown; empty if it is not known."""
        return rounded_up(self.estimate.usd)


def plan_of(checked: Checked | None, question: str, offered: Offered) -> Plan | None:
    """What running a text takes; None: there is no pool, no question or no workflow. Nothing is asked or written.

    Raises:
        UsageError: the workflow cannot run on the pool, or the question cannot be used.
    """
    if checked is None or checked.workflow is None or offered.pool is None or not question.strip():
        return None
    workflow, pool = checked.workflow, offered.pool
    checked_question(question)
    require_runnable(workflow, pool, RunConfig().max_depth)
    names = None if checked.tree is None else checked.tree.names
    origin = {"file": "playground"} | ({} if offered.found_by is None else {"pool": offered.found_by})
    return Plan(workflow, names, question, pool, origin, estimate(workflow, question, pool))


async def start_run(plan: Plan, redoing: Redoing) -> str:
    """Start the run, which may spend what was shown; gives its id once the journal has it.

    Raises:
        WfdslError: it could not be started.
    """
    run_id, begun = new_run_id(), asyncio.Event()
    hear = redoing.listener(run_id)

    def listen(event: Event) -> None:
        hear(event)
        begun.set()

    work = run(
        plan.workflow,
        plan.question,
        plan.pool,
        journal=redoing.journal,
        budget=None if plan.estimate.usd is None else Budget(usd=plan.estimate.usd),
        names=plan.names,
        run_id=run_id,
        origin=plan.origin,
        on_event=listen,
    )
    task = redoing.follow(run_id, work)
    waiting = asyncio.create_task(begun.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    error = task.exception() if task.done() and not task.cancelled() else None
    if isinstance(error, WfdslError) and not isinstance(error, RunEnded):
        raise error
    return run_id
