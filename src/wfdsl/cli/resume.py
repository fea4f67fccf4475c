"""Go on with a run that stopped, whatever stopped it.

Calls whose replies are in the journal are not made again. What was spent before counts towards the budget. Of a run
that is done, the answer is printed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from wfdsl.cli.run import add_run_options, budget_of, display_for_stderr, followed, listener_for, print_run
from wfdsl.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from wfdsl.interpreter.plan import Plan
    from wfdsl.interpreter.record import LostCall, Run


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl resume`."""
    parser.add_argument("run", metavar="RUN", help="the run's id, or how it begins; `last` is the newest")
    parser.add_argument("--pool", metavar="NAME|FILE", help="the pool of workers (default: the one it was run on)")
    add_run_options(parser)


def execute(args: argparse.Namespace) -> int:
    """Go on with the run and print its answer."""
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import full_id, plan_of, run_of
    from wfdsl.interpreter.running import resume

    path = default_path()
    run_id = full_id(path, args.run)
    before = run_of(path, run_id)
    if before.status == "done":
        print(f"run {run_id} is done: this is its answer", file=sys.stderr)
        print_run(before, as_json=args.json)
        return 0
    plan = plan_of(path, run_id)
    if "solve" in plan.origin:
        raise UsageError(f"run {run_id} is a Conductor's: give its `wfdsl solve` command again, with --run-id {run_id}")
    _print_lost(before.lost)
    display = display_for_stderr()
    work = resume(
        run_id,
        _pool(args.pool, plan),
        journal=path,
        budget=budget_of(args),
        concurrency=args.concurrency,
        timeout_s=args.timeout,
        step_timeout_s=args.step_timeout,
        on_event=listener_for(display, args),
        reuse=args.reuse,
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


def _pool(given: str | None, plan: Plan) -> Any:
    from wfdsl.pool import Pool

    name = given or plan.origin.get("pool")
    if name is None:
        raise UsageError(f"the run was started by a program, on a pool called {plan.pool!r}; give it with --pool")
    return Pool.load(name)


def _print_lost(lost: tuple[LostCall, ...]) -> None:
    for call in lost:
        where = "/".join(map(str, call.path))
        charge = f"up to {call.tokens} tokens" + (f", ${call.usd:.4f}" if call.usd else "")
        print(f"step {where}, {call.worker_name}: was in flight; stays charged at {charge}", file=sys.stderr)
