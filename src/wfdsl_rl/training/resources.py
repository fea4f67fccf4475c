"""What the rollouts of a training share: one journal, one budget over all sessions, one limit of calls in flight.

A rollout's run is named by (seed, split, step, row, index). So a step that is done again after a kill finds its calls
in the journal, and nothing else does. Simulated workers are computed anew for less than a journal costs.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from wfdsl.experiment import run_options
from wfdsl.interpreter.budget import NOTHING_SPENT, UNLIMITED, BudgetTracker
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import summaries
from wfdsl.interpreter.limits import ConcurrencyLimiter
from wfdsl_rl.fingerprints import is_simulated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from wfdsl.experiment import Experiment
    from wfdsl.interpreter.budget import BudgetUsage
    from wfdsl.interpreter.running import RunOptions
    from wfdsl.workers.pool import Pool

JOURNAL = "journal.db"


@contextmanager
def rollout_options(experiment: Experiment, pool: Pool, out: Path) -> Iterator[RunOptions]:
    """How the rollouts of a training are run; the journal is open inside the block.

    Raises:
        JournalFailure: the journal cannot be opened.
    """
    run = experiment.run
    options = run_options(run, without=("concurrency", "seed", "reuse"))
    if run.concurrency is not None:
        options["limiter"] = ConcurrencyLimiter(run.concurrency)
    with ExitStack() as stack:
        kept = run.journal and not is_simulated(pool)
        if kept:
            out.mkdir(parents=True, exist_ok=True)
            options["journal"] = stack.enter_context(Journal(out / JOURNAL))
        if experiment.budget != UNLIMITED:
            options["budget"] = BudgetTracker(experiment.budget, _spent(out) if kept else NOTHING_SPENT)
        yield options


def _spent(out: Path) -> BudgetUsage:
    """What earlier sessions were charged."""
    spent = NOTHING_SPENT
    for summary in summaries(out / JOURNAL):
        spent = spent.plus(summary.charged)
    return spent
