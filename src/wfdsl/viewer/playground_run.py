"""A text of the playground run on a pool: its price first, then a run in the journal that spends no more.

The pools are the viewer's own and those that `Pool.load` knows by name; files are named by the command line only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from wfdsl.api import Checked
from wfdsl.errors import UsageError, WfdslError
from wfdsl.experiment import Experiment
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.config import RunConfig
from wfdsl.interpreter.events import Event
from wfdsl.interpreter.execution import require_runnable
from wfdsl.interpreter.record import RunEnded
from wfdsl.interpreter.running import checked_question, new_run_id, run
from wfdsl.interpreter.worker_profile import RunEstimate, estimate
from wfdsl.language.workflow import Workflow
from wfdsl.viewer.redo_page import Redoing
from wfdsl.workers.pool import Pool, pool_names

_names = cache(pool_names)
_loaded = cache(Pool.load)


def pool_labels(experiment: Experiment) -> dict[str, str]:
    """What the form calls each pool, by its name in the form; empty for the viewer's own."""
    own = "none" if experiment.pool is None else experiment.pool.name
    return {"": own} | {name: name for name in _names() if name != experiment.pool_name}


def chosen_pool(experiment: Experiment, name: str) -> tuple[Pool | None, str | None]:
    """The pool that the form names, and with what `Pool.load` finds it again.

    Raises:
        UsageError: it is not offered, or cannot be loaded.
    """
    if not name:
        return experiment.pool, experiment.pool_name
    if name not in _names():
        raise UsageError(f"there is no pool {name!r} here: start the viewer with --pool {name}")
    return _loaded(name), name


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


def plan_of(checked: Checked, question: str, pool: Pool | None, pool_name: str | None) -> Plan | None:
    """What running a text takes; None: there is no pool, no question or no workflow. Nothing is asked or written.

    Raises:
        UsageError: the workflow cannot run on the pool, or the question cannot be used.
    """
    if checked.workflow is None or pool is None or not question.strip():
        return None
    checked_question(question)
    require_runnable(checked.workflow, pool, RunConfig().max_depth)
    names = None if checked.tree is None else checked.tree.names
    origin = {"file": "playground"} | ({} if pool_name is None else {"pool": pool_name})
    return Plan(checked.workflow, names, question, pool, origin, estimate(checked.workflow, question, pool))


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
