"""From the table [conductor] to what `wfdsl.conductor.named` takes: the name of a policy, and how it conducts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wfdsl.api import load
from wfdsl.conductor.named import Conducting
from wfdsl.conductor.offer import Offering

if TYPE_CHECKING:
    from wfdsl.experiment.tables import ConductorTable
    from wfdsl.workers.pool import Pool


def conducting_of(table: ConductorTable, pool: Pool) -> Conducting:
    """How the model of a table conducts, with the default workflow read for a pool.

    Raises:
        UsageError: the default workflow cannot be read.
        WorkflowError: it is not valid.
    """
    return Conducting(
        entry={
            "base_url": table.base_url,
            "api_key_env": table.api_key_env,
            "max_tokens": table.max_tokens,
            "temperature": table.temperature,
        },
        prompt=table.prompt,
        examples=table.examples,
        max_steps=table.max_steps,
        grammar=table.grammar,
        max_prose=table.max_prose,
        max_subtask=table.max_subtask,
        max_rounds=table.rounds,
        reasks=table.reasks,
        profile=table.profile,
        default=None if table.default is None else load(table.default, pool=pool),
        call_factor=table.call_factor,
        offering=offering_of(table),
    )


def offering_of(table: ConductorTable) -> Offering:
    """Which workers are offered, and how they are numbered."""
    return Offering(without=table.without, pick=table.pick, shuffle=table.shuffle, seed=table.seed)
