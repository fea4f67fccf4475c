"""Ask one step of a run again, and the steps that depend on it, in a new run.

Kept replies are not paid for again, and the budget counts from zero. In a Conductor's run, --round says which round has
the step; the Conductor is asked again for the rounds after it. Pool, workflow, Conductor and question are the run's.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from wfdsl.cli.options import (
    INPUT,
    OUTPUT,
    add_config_options,
    add_options,
    add_pool_option,
    add_protocol_option,
    add_trace_options,
    count_or_zero,
    experiment_of,
    group,
    require_no_parameters,
    run_name,
    some_text,
)
from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.experiment import RunSettings
from wfdsl.interpreter.budget import Budget

if TYPE_CHECKING:  # start-up time
    from pathlib import Path

    from wfdsl.interpreter.config import RunRequest
    from wfdsl.interpreter.redoing import Redo
    from wfdsl.interpreter.worker_profile import RunEstimate
    from wfdsl.workers.pool import Pool


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl runs redo`."""
    asked, output = group(parser, INPUT), group(parser, OUTPUT)
    asked.add_argument("run", metavar="RUN", help="the run's id, or how it begins; `last` is the newest")
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


def execute(args: argparse.Namespace) -> int:
    """Redo the step and print the new answer."""
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import full_id, request_of

    path = default_path()
    run_id = full_id(path, args.run)
    request = request_of(path, run_id)
    if "solve" not in request.origin:
        idle = {"--round": args.round, "--run-id": args.run_id}
        return _redo_workflow(args, path, run_id, request, idle)
    if args.round is None:
        raise UsageError(f"run {run_id} is a Conductor's: give --round N, the round that has the step")
    _refuse({"--subtask": args.subtask, "--worker": args.worker}, "what a Conductor wrote is not changed")
    return _redo_round(args, path, run_id, request)


def _refuse(options: dict[str, str | int | None], why: str) -> None:
    for option, value in options.items():
        if value is not None:
            raise UsageError(f"{why}: leave {option} out")


def _redo_workflow(
    args: argparse.Namespace, path: Path, run_id: str, request: RunRequest, idle: dict[str, str | int | None]
) -> int:
    from wfdsl.cli.runs_resume import finish
    from wfdsl.experiment import pool_of_run
    from wfdsl.interpreter.execution import require_runnable
    from wfdsl.interpreter.redoing import prepare_redo

    _refuse(idle, f"run {run_id} has no Conductor")
    require_no_parameters(args, "the run keeps the parameters that it was started with")
    experiment = experiment_of(args)
    pool = pool_of_run(request) if experiment.pool is None else experiment.pool
    worker = None if args.worker is None else _worker(pool, args.worker)
    prepared = prepare_redo(path, run_id, args.step, subtask=args.subtask, worker=worker)
    require_runnable(prepared.workflow, pool, prepared.request.config.max_depth)
    if not _is_told(prepared, prepared.estimate(pool), args):
        return 0
    return finish(prepared.start(path), request, pool, experiment, args)


def _redo_round(args: argparse.Namespace, path: Path, run_id: str, request: RunRequest) -> int:
    """Ask a step of a round again, and what came after it; Conductor and pool are the run's unless given."""
    from wfdsl.cli.solve import answer
    from wfdsl.cli.solving import solving_of
    from wfdsl.interpreter.journal_reading import request_of
    from wfdsl.interpreter.redoing import prepare_redo

    use_origin(args, request)
    solving = solving_of(args)
    if args.run_id is not None:  # the new run was interrupted
        origin = {**solving.origin, **request_of(path, args.run_id).origin}
        return answer(replace(solving, origin=origin), request.question, args)
    prepared = prepare_redo(path, run_id, args.step, round_number=args.round)
    if not _is_told(prepared, prepared.estimate(solving.pool), args, max_rounds=solving.max_rounds):
        return 0
    args.run_id = prepared.start(path)
    return answer(replace(solving, origin={**solving.origin, **prepared.origin}), request.question, args)


def _is_told(prepared: Redo, found: RunEstimate, args: argparse.Namespace, *, max_rounds: int = 0) -> bool:
    """Say what is asked again and what it costs at most; False if that was all that is wanted."""
    if args.dry_run:
        print_redo_estimate(prepared, found, as_json=args.json, max_rounds=max_rounds)
        return False
    if not args.quiet:
        print(price_of(prepared, found, max_rounds=max_rounds), file=sys.stderr)
    return True


def use_origin(args: argparse.Namespace, request: RunRequest) -> None:
    """Take Conductor and pool from where the run had them, unless options name others."""
    kept = dict(getattr(args, "kept", {}))
    if args.config is None:
        for key, flag, name in (("pool.use", "--pool", "pool"), ("conductor.model", "--conductor", "solve")):
            if key not in kept and name in request.origin:
                kept[key] = (request.origin[name], flag)
    args.kept = kept


def print_redo_estimate(prepared: Redo, found: RunEstimate, *, as_json: bool, max_rounds: int = 0) -> None:
    """Print what would be asked again, and its price (`--dry-run`); `max_rounds` is the Conductor's."""
    from wfdsl.cli.estimates import show_estimate

    show_estimate(found, names=prepared.names, as_json=as_json)
    if _has_later_rounds(prepared, max_rounds) and not as_json:
        print("the Conductor's later rounds are asked again too; their cost is not known")


def price_of(prepared: Redo, found: RunEstimate, *, max_rounds: int = 0) -> str:
    """One line: what is asked again, and what it costs at most; `max_rounds` is the Conductor's."""
    names = prepared.names
    asked = ", ".join(names[each.step] if names else f"step {each.step}" for each in found.steps)
    price = "not known" if found.usd is None else f"at most ${found.usd:.4f}"
    has_later = _has_later_rounds(prepared, max_rounds)
    later = ", and the Conductor's later rounds, whose cost is not known" if has_later else ""
    return f"asked again: {asked} (cost: {price}){later}; {_kept(len(prepared.kept))} nothing"


def _has_later_rounds(prepared: Redo, max_rounds: int) -> bool:
    return prepared.round is not None and prepared.round < max_rounds


def _kept(count: int) -> str:
    return "1 kept reply costs" if count == 1 else f"{count} kept replies cost"


def _worker(pool: Pool, text: str) -> int:
    """The index of a worker, given by its name or its index."""
    names = {pool.entry(index).name: index for index in pool.indices}
    if text in names:
        return names[text]
    if text.isdecimal() and int(text) in pool.indices:
        return int(text)
    raise UsageError(f"pool {pool.name!r} has no worker {text!r}: its workers are {', '.join(names)}")
