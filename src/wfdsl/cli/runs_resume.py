"""Resume a run that was interrupted.

Calls whose replies are in the journal are not made again. What was spent before counts towards the budget. If the run
is done, its answer is printed. A Conductor's run that `wfdsl serve` began is resumed with the same --config.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from wfdsl.cli.options import (
    add_config_options,
    add_options,
    add_pool_option,
    add_trace_options,
    experiment_of,
    require_no_parameters,
)
from wfdsl.errors import UsageError
from wfdsl.experiment import Experiment, RunSettings, pool_of_run
from wfdsl.interpreter.budget import UNLIMITED, Budget
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.record import LostCall

if TYPE_CHECKING:  # start-up time
    from wfdsl.conductor.conductor import Conductor
    from wfdsl.workers.pool import Pool


_CHANGEABLE = ("concurrency", "timeout_s", "step_timeout_s", "reuse", "ask_again")
"""Options that may change when a run is resumed."""
_DEFAULT = RunSettings()


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl runs resume`."""
    parser.add_argument("run", metavar="RUN", help="the run's id, or how it begins; `last` is the newest")
    add_pool_option(parser, "the pool of workers (default: the one it was run on)")
    add_config_options(parser, parameters=False)
    add_trace_options(parser)
    add_options(parser, Budget, "budget")
    add_options(parser, RunSettings, "run", only=_CHANGEABLE)


def execute(args: argparse.Namespace) -> int:
    """Resume the run and print its answer."""
    from wfdsl.cli.display.live import print_run
    from wfdsl.conductor.policy import ROOT_WORKFLOW
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import full_id, request_of, run_of

    require_no_parameters(args, "the run keeps the parameters that it was started with")
    experiment = experiment_of(args)
    path = default_path()
    run_id = full_id(path, args.run)
    before = run_of(path, run_id)
    if before.status == "done":
        print(f"run {run_id} is done: this is its answer", file=sys.stderr)
        print_run(before, as_json=args.json)
        return 0
    plan = request_of(path, run_id)
    experiment = experiment.models.get(plan.origin.get("model", ""), experiment)
    if plan.workflow == ROOT_WORKFLOW and "request" not in plan.origin:
        raise UsageError(f"run {run_id} is a Conductor's: repeat its `wfdsl solve` command with --run-id {run_id}")
    if before.status != "running":  # one that is will be refused
        _print_lost(before.lost)
    pool, conductor = pool_of_run(plan) if experiment.pool is None else experiment.pool, None
    if plan.workflow == ROOT_WORKFLOW:
        from wfdsl.conductor.resuming import conductor_of_run

        conductor = conductor_of_run(plan, experiment.conductor, pool)
    return finish(run_id, plan, pool, experiment, args, conductor=conductor)


def finish(
    run_id: str,
    request: RunRequest,
    pool: Pool,
    experiment: Experiment,
    args: argparse.Namespace,
    *,
    conductor: Conductor | None = None,
) -> int:
    """Continue a run that is in the journal, with the Conductor if it is a Conductor's, and print its answer."""
    from wfdsl.cli.display.displays import display_for
    from wfdsl.cli.display.live import followed, listener_for, print_run
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.running import resume

    display = display_for(args, pool)
    options: dict[str, Any] = {
        "journal": default_path(),
        "budget": None if experiment.budget == UNLIMITED else experiment.budget,
        "on_event": listener_for(display, otel=args.otel, origin=request.origin),
        **_changes(experiment.run),
    }
    if conductor is None:
        work = resume(run_id, pool, **options)
    else:
        from wfdsl.conductor.resuming import resume_with

        work = resume_with(conductor, run_id, request, pool, **options)
    after = followed(work, display, as_json=args.json, again=f"wfdsl runs resume {run_id}")
    print_run(after, display, as_json=args.json)
    return 0


def _changes(config: RunSettings) -> dict[str, Any]:
    """The options that are not as the run was started with; one that is not set stays as it was."""
    set_now = {name: getattr(config, name) for name in _CHANGEABLE}
    return {name: value for name, value in set_now.items() if value != getattr(_DEFAULT, name)}


def _print_lost(lost: tuple[LostCall, ...]) -> None:
    for call in lost:
        where = "/".join(map(str, call.path))
        charge = f"up to {call.tokens} tokens" + (f", ${call.usd:.4f}" if call.usd else "")
        print(f"step {where}, {call.worker_name}: was in flight; stays charged at {charge}", file=sys.stderr)
