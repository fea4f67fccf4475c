"""Go on with a run that stopped, whatever stopped it.

Calls whose replies are in the journal are not made again. What was spent before counts towards the budget. Of a run
that is done, the answer is printed.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from wfdsl.cli.options import add_config_options, add_pool_option, add_run_options, experiment_of, require_no_parameters
from wfdsl.errors import UsageError

if TYPE_CHECKING:  # start-up time
    from wfdsl.interpreter.config import RunRequest
    from wfdsl.interpreter.record import LostCall, Run
    from wfdsl.workers.pool import Pool


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl resume`."""
    parser.add_argument("run", metavar="RUN", help="the run's id, or how it begins; `last` is the newest")
    add_pool_option(parser, "the pool of workers (default: the one it was run on)")
    add_config_options(parser, parameters=False)
    add_run_options(parser)


def execute(args: argparse.Namespace) -> int:
    """Go on with the run and print its answer."""
    from wfdsl.cli.running import display_for_stderr, followed, listener_for, print_run
    from wfdsl.experiment.running import budget_of
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import full_id, request_of, run_of
    from wfdsl.interpreter.running import resume

    require_no_parameters(args, "the run goes on with those that it began with")
    experiment = experiment_of(args)
    path = default_path()
    run_id = full_id(path, args.run)
    before = run_of(path, run_id)
    if before.status == "done":
        print(f"run {run_id} is done: this is its answer", file=sys.stderr)
        print_run(before, as_json=args.json)
        return 0
    plan = request_of(path, run_id)
    if "solve" in plan.origin:
        raise UsageError(f"run {run_id} is a Conductor's: give its `wfdsl solve` command again, with --run-id {run_id}")
    _print_lost(before.lost)
    display = display_for_stderr()
    work = resume(
        run_id,
        _pool(plan) if experiment.pool is None else experiment.pool,
        journal=path,
        budget=budget_of(experiment.budget),
        concurrency=experiment.run.concurrency,
        timeout_s=experiment.run.timeout_s,
        step_timeout_s=experiment.run.step_timeout_s,
        on_event=listener_for(display, otel=args.otel),
        reuse=experiment.run.reuse,
    )
    after = followed(run_id, work, display, as_json=args.json, kept=True)
    _print_unused(before, after)
    print_run(after, as_json=args.json)
    return 0


def _print_unused(before: Run, after: Run) -> None:
    """Say when replies of the journal were not used again: then the pool asks something else than it did."""
    unused = sum(old.status == "done" and not new.replayed for old, new in zip(before.steps, after.steps, strict=True))
    if unused:
        message = f"{unused} {'reply' if unused == 1 else 'replies'} of the journal did not fit the pool as it is now"
        print(f"{message}: asked again", file=sys.stderr)


def _pool(plan: RunRequest) -> Pool:
    """The pool that a run was started on, found again."""
    from wfdsl.workers.pool import Pool

    name = plan.origin.get("pool")
    if name is None:
        raise UsageError(f"only who started the run knows its pool, called {plan.pool!r}: give it with --pool")
    return Pool.load(name)


def _print_lost(lost: tuple[LostCall, ...]) -> None:
    for call in lost:
        where = "/".join(map(str, call.path))
        charge = f"up to {call.tokens} tokens" + (f", ${call.usd:.4f}" if call.usd else "")
        print(f"step {where}, {call.worker_name}: was in flight; stays charged at {charge}", file=sys.stderr)
