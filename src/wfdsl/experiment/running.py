"""From the tables [run] and [budget] to what `wfdsl.run` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wfdsl.interpreter.budget import UNLIMITED, Budget
from wfdsl.interpreter.running import RunOptions

if TYPE_CHECKING:
    from wfdsl.experiment.tables import BudgetTable, RunTable


def budget_of(table: BudgetTable) -> Budget | None:
    """The budget of a table; None if nothing is limited."""
    budget = Budget(calls=table.calls, tokens=table.tokens, usd=table.usd, seconds=table.seconds)
    return None if budget == UNLIMITED else budget


def run_options_of(table: RunTable) -> RunOptions:
    """What holds for each run alike, however many there are: not how many at a time, nor what is kept of them."""
    return RunOptions(
        timeout_s=table.timeout_s,
        step_timeout_s=table.step_timeout_s,
        question_for=table.question_for,
        run_dead_steps=table.run_dead_steps,
        max_depth=table.max_depth,
    )
