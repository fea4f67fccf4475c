"""`wfdsl runs resume` and `wfdsl runs redo`: continue a run that was interrupted, or ask one step of a run again."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wfdsl.cli.options import (
    INPUT,
    OUTPUT,
    add_config_options,
    add_options,
    add_pool_option,
    add_protocol_option,
    add_trace_options,
    complete_runs,
    count_or_zero,
    experiment_of,
    group,
    require_no_parameters,
    run_name,
    some_text,
)
from wfdsl.cli.output import print_now, print_run
from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.experiment import Experiment, RunSettings, pool_of_run
from wfdsl.interpreter.budget import UNLIMITED, Budget
from wfdsl.interpreter.config import RunRequest
from wfdsl.render.status import dollars

if TYPE_CHECKING:  # start-up time
    from pathlib import Path

    from wfdsl.conductor.conductor import Conductor
    from wfdsl.interpreter.redoing import Redo
    from wfdsl.interpreter.worker_profile import RunEstimate
    from wfdsl.workers.pool import Pool

_CHANGEABLE = ("concurrency", "timeout_s", "step_timeout_s", "ask_again")
"""Options that may change when a run is resumed."""
_RUN = "the run's id, or how it begins; `last` is the newest"
_KEPT = "the run keeps the parameters that it was started with"


def configure_resume(parser: argparse.ArgumentParser) -> None:
    """Resume a run that was interrupted.

    Calls whose replies are in the journal are not made again. What was spent before counts towards the budget. If the
    run is done, its answer is printed. A Conductor is found again by its name; its other options are those of --config.
    """
    complete_runs(parser.add_argument("run", metavar="RUN", help=_RUN))
    add_pool_option(parser, "the pool of workers (default: the one it was run on)")
    add_config_options(parser, parameters=False)
    add_trace_options(parser)
    add_options(parser, Budget, "budget")
    add_options(parser, RunSettings, "run", only=_CHANGEABLE)


def execute_resume(args: argparse.Namespace) -> int:
    """Resume the run and print its answer."""
    from wfdsl.conductor.policy import ROOT_WORKFLOW
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import full_id, request_of, run_of

    require_no_parameters(args, _KEPT)
    experiment = experiment_of(args)
    path = default_path()
    run_id = full_id(path, args.run)
    before = run_of(path, run_id)
    if before.status == "done":
        print_now(f"run {run_id} is done: this is its answer")
        print_run(before, as_json=args.json)
        return 0
    request = request_of(path, run_id)
    for call in before.lost if before.status != "running" else ():  # one that is running will be refused
        charge = f"up to {call.tokens} tokens" + (f", {dollars(call.usd)}" if call.usd else "")
        where = "/".join(map(str, call.path))
        print_now(f"step {where}, {call.worker_name}: was in flight; stays charged at {charge}")
    pool, conductor = pool_of_run(request) if experiment.pool is None else experiment.pool, None
    if request.workflow == ROOT_WORKFLOW:
        from wfdsl.conductor.named import conductor_of_run

        conductor = conductor_of_run(request, experiment.conductor, pool)
    return _finish(run_id, request, pool, experiment, args, conductor=conductor)


def _finish(
    run_id: str,
    request: RunRequest,
    pool: Pool,
    experiment: Experiment,
    args: argparse.Namespace,
    *,
    conductor: Conductor | None = None,
) -> int:
    """Continue a run that is in the journal, with the Conductor if it is a Conductor's, and print its answer."""
    from wfdsl.cli.display.live import followed, listener_for
    from wfdsl.cli.display.progress import progress_for
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.running import resume

    display, usual = progress_for(args, pool), RunSettings()
    set_now = {name: getattr(experiment.run, name) for name in _CHANGEABLE}
    options: dict[str, Any] = {
        "journal": default_path(),
        "budget": None if experiment.budget == UNLIMITED else experiment.budget,
        "on_event": listener_for(display, otel=args.otel, origin=request.origin),
        **{name: value for name, value in set_now.items() if value != getattr(usual, name)},  # others stay as they were
    }
    work = resume(run_id, pool, **options) if conductor is None else conductor.resume(run_id, request, pool, **options)
    print_run(followed(work, display, as_json=args.json, again=f"wfdsl runs resume {run_id}"), as_json=args.json)
    return 0


def configure_redo(parser: argparse.ArgumentParser) -> None:
    """Ask one step of a run again, and the steps that depend on it, in a new run.

    Kept replies are not paid for again, and the budget counts from zero. In a Conductor's run, --round says which round
    has the step; the Conductor is asked again for the rounds after it. Pool, workflow, Conductor and question are the
    run's.
    """
    asked, output = group(parser, INPUT), group(parser, OUTPUT)
    complete_runs(asked.add_argument("run", metavar="RUN", help=_RUN))
    asked.add_argument("--step", metavar="STEP", required=True, help="the name or index of the step")
    asked.add_argument("--round", type=count_or_zero, metavar="N", help="of a Conductor's run: the round, from 0")
    asked.add_argument("--subtask", type=some_text, metavar="TEXT", help="what the step is to do instead")
    asked.add_argument("--worker", metavar="NAME|INDEX", help="the worker that is to do it")
    output.add_argument(
        "--dry-run", action="store_true", help="call no worker: print what is asked again and the most that it costs"
    )
    output.add_argument("--run-id", type=run_name, metavar="RUN", help="resume the new run of a Conductor's")
    add_pool_option(parser, "the pool of workers (default: the run's)")
    add_config_options(parser, parameters=False)
    add_protocol_option(parser)
    add_trace_options(parser)
    add_options(parser, ConductorConfig, "conductor")
    add_options(parser, Budget, "budget")
    add_options(parser, RunSettings, "run", without=["parallel", "journal"])


def execute_redo(args: argparse.Namespace) -> int:
    """Redo the step and print the new answer."""
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import full_id, request_of

    path = default_path()
    run_id = full_id(path, args.run)
    request = request_of(path, run_id)
    if "solve" not in request.origin:
        _refuse({"--round": args.round, "--run-id": args.run_id}, f"run {run_id} has no Conductor")
        return _redo_workflow(args, path, run_id, request)
    if args.round is None:
        raise UsageError(f"run {run_id} is a Conductor's: give --round N, the round that has the step")
    _refuse({"--subtask": args.subtask, "--worker": args.worker}, "what a Conductor wrote is not changed")
    return _redo_round(args, path, run_id, request)


def _refuse(options: dict[str, str | int | None], why: str) -> None:
    for option, value in options.items():
        if value is not None:
            raise UsageError(f"{why}: leave {option} out")


def _redo_workflow(args: argparse.Namespace, path: Path, run_id: str, request: RunRequest) -> int:
    from wfdsl.interpreter.execution import require_runnable
    from wfdsl.interpreter.redoing import prepare_redo

    require_no_parameters(args, _KEPT)
    experiment = experiment_of(args)
    pool = pool_of_run(request) if experiment.pool is None else experiment.pool
    worker = None if args.worker is None else _worker(pool, args.worker)
    prepared = prepare_redo(path, run_id, args.step, subtask=args.subtask, worker=worker)
    require_runnable(prepared.workflow, pool, prepared.request.config.max_depth)
    if _is_told(prepared, prepared.estimate(pool), args):
        return _finish(prepared.start(path), request, pool, experiment, args)
    return 0


def _redo_round(args: argparse.Namespace, path: Path, run_id: str, request: RunRequest) -> int:
    """Ask a step of a round again, and what came after it; Conductor and pool are the run's unless given."""
    from wfdsl.cli.solve import answer
    from wfdsl.cli.solving import solving_of
    from wfdsl.conductor.conductor import Conductor
    from wfdsl.interpreter.journal_reading import request_of
    from wfdsl.interpreter.redoing import prepare_redo

    kept = dict(getattr(args, "kept", {}))
    for key, flag, name in (("pool.use", "--pool", "pool"), ("conductor.model", "--conductor", "solve")):
        if args.config is None and key not in kept and name in request.origin:
            kept[key] = (request.origin[name], flag)
    args.kept = kept
    solving = solving_of(args)
    if args.run_id is not None:  # the new run was interrupted
        origin = {**solving.origin, **request_of(path, args.run_id).origin}
        return answer(replace(solving, origin=origin), request.question, args)
    prepared, policy = prepare_redo(path, run_id, args.step, round_number=args.round), solving.policy
    has_later = isinstance(policy, Conductor) and args.round < policy.settings.max_rounds
    if not _is_told(prepared, prepared.estimate(solving.pool), args, has_later=has_later):
        return 0
    args.run_id = prepared.start(path)
    return answer(replace(solving, origin={**solving.origin, **prepared.origin}), request.question, args)


def _is_told(prepared: Redo, found: RunEstimate, args: argparse.Namespace, *, has_later: bool = False) -> bool:
    """Say what is asked again and what it costs at most; False if that was all that is wanted."""
    from wfdsl.cli.run import show_estimate

    if args.dry_run:
        show_estimate(found, names=prepared.names, as_json=args.json)
        if has_later and not args.json:
            print("the Conductor's later rounds are asked again too; their cost is not known")
        return False
    names, count = prepared.names, len(prepared.kept)
    asked = ", ".join(names[each.step] if names else f"step {each.step}" for each in found.steps)
    price = "not known" if found.usd is None else f"at most {dollars(found.usd)}"
    later = ", and the Conductor's later rounds, whose cost is not known" if has_later else ""
    free = "1 kept reply costs" if count == 1 else f"{count} kept replies cost"
    if not args.quiet:
        print_now(f"asked again: {asked} (cost: {price}){later}; {free} nothing")
    return True


def _worker(pool: Pool, text: str) -> int:
    """The index of a worker, given by its name or its index."""
    found = pool.called(text)
    if found is None:
        raise UsageError(f"pool {pool.name!r} has no worker {text!r}: its workers are {', '.join(pool.names)}")
    return found
