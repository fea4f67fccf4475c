"""`wfdsl runs resume` and `wfdsl runs redo`: continue a run that was interrupted, or ask one step of a run again."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from wfdsl.cli.options import (
    INPUT,
    OUTPUT,
    add_config_options,
    add_options,
    add_pool_option,
    add_trace_options,
    complete_runs,
    count_or_zero,
    experiment_of,
    group,
    require_no_parameters,
    some_text,
)
from wfdsl.cli.output import print_now, print_run
from wfdsl.errors import UsageError
from wfdsl.experiment import Experiment, RunSettings, pool_of_run
from wfdsl.interpreter.budget import UNLIMITED, Budget
from wfdsl.interpreter.config import RunRequest
from wfdsl.own_code import file_of
from wfdsl.render.status import dollars
from wfdsl.settings import not_default

if TYPE_CHECKING:  # start-up time
    from wfdsl.conductor.policy import Policy
    from wfdsl.interpreter.redoing import Redo
    from wfdsl.interpreter.running import RunOptions
    from wfdsl.interpreter.worker_profile import RunEstimate
    from wfdsl.workers.pool import Pool

_CHANGEABLE = ("concurrency", "timeout_s", "step_timeout_s", "ask_again")
"""Options that may change when a run is resumed."""
_RUN = "the run's id, or how it begins; `last` is the newest"
_KEPT = "the run keeps the parameters that it was started with"


def configure_resume(parser: argparse.ArgumentParser) -> None:
    """Resume a run that was interrupted.

    Calls whose replies are in the journal are not made again. What was spent before counts towards the budget. If the
    run is done, its answer is printed. Workflow, question, pool and Conductor are the run's.
    """
    complete_runs(parser.add_argument("run", metavar="RUN", help=_RUN))
    _add_options(parser)


def configure_redo(parser: argparse.ArgumentParser) -> None:
    """Ask one step of a run again, and the steps that depend on it, in a new run.

    Kept replies are not paid for again, and the budget counts from zero. In a Conductor's run, --round says which round
    has the step; the Conductor is asked again for the rounds after it. Pool, workflow, Conductor and question are the
    run's.
    """
    asked = group(parser, INPUT)
    complete_runs(asked.add_argument("run", metavar="RUN", help=_RUN))
    asked.add_argument("--step", metavar="STEP", required=True, help="the name or index of the step")
    asked.add_argument("--round", type=count_or_zero, metavar="N", help="of a Conductor's run: the round, from 0")
    asked.add_argument("--subtask", type=some_text, metavar="TEXT", help="what the step is to do instead")
    asked.add_argument("--worker", metavar="NAME|INDEX", help="the worker that is to do it")
    group(parser, OUTPUT).add_argument(
        "--dry-run", action="store_true", help="call no worker: print what is asked again and the most that it costs"
    )
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_pool_option(parser, "the pool of workers (default: the run's)")
    add_config_options(parser, parameters=False)
    add_trace_options(parser)
    add_options(parser, Budget, "budget")
    add_options(parser, RunSettings, "run", only=_CHANGEABLE)


class _Found(NamedTuple):
    """A run of the journal, and who continues it."""

    run_id: str
    request: RunRequest
    experiment: Experiment
    """What the options say."""
    pool: Pool
    policy: Policy | None
    """Who answered the question: a Conductor or a policy of one's own; None: a workflow did."""


def execute_resume(args: argparse.Namespace) -> int:
    """Resume the run and print its answer."""
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import full_id, run_of

    require_no_parameters(args, _KEPT)
    before = run_of(default_path(), full_id(default_path(), args.run))
    if before.status == "done":
        print_now(f"run {before.id} is done: this is its answer")
        print_run(before, as_json=args.json)
        return 0
    found = _found(args)
    for call in before.lost if before.status != "running" else ():  # one that is running will be refused
        charge = f"up to {call.tokens} tokens" + (f", {dollars(call.usd)}" if call.usd else "")
        where = "/".join(map(str, call.path))
        print_now(f"step {where}, {call.worker_name}: was in flight; stays charged at {charge}")
    return _continue(found, args)


def execute_redo(args: argparse.Namespace) -> int:
    """Redo the step and print the new answer."""
    from wfdsl.conductor.conductor import Conductor
    from wfdsl.interpreter.execution import require_runnable
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import request_of
    from wfdsl.interpreter.redoing import prepare_redo

    require_no_parameters(args, _KEPT)
    found, path = _found(args), default_path()
    worker = None if args.worker is None else _worker(found.pool, args.worker)
    step, asked = args.step, {"round_number": args.round, "subtask": args.subtask, "worker": worker}
    prepared = prepare_redo(path, found.run_id, step, **asked)
    require_runnable(prepared.workflow, found.pool, found.request.config.max_depth)
    has_later = isinstance(found.policy, Conductor) and args.round < found.policy.settings.max_rounds
    if not _is_told(prepared, prepared.estimate(found.pool), args, has_later=has_later):
        return 0
    new_id = prepared.start(path)
    return _continue(found._replace(run_id=new_id, request=request_of(path, new_id)), args)


def _found(args: argparse.Namespace) -> _Found:
    """The run that the options name."""
    from wfdsl.conductor.named import conductor_of_run, own_policy
    from wfdsl.conductor.policy import ROOT_WORKFLOW
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import full_id, request_of

    experiment, run_id = experiment_of(args), full_id(default_path(), args.run)
    request, policy = request_of(default_path(), run_id), None
    pool, name = experiment.pool or pool_of_run(request), request.origin.get("solve", "")
    if file_of(name) is not None:
        policy = own_policy(name)
    elif request.workflow == ROOT_WORKFLOW:
        policy = conductor_of_run(request, experiment.conductor, pool)
    return _Found(run_id, request, experiment, pool, policy)


def _continue(found: _Found, args: argparse.Namespace) -> int:
    """Continue the run and print its answer."""
    from wfdsl.cli.display.live import followed
    from wfdsl.conductor.policy import resume_policy
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.running import resume

    run_id, request, experiment, pool, policy = found
    set_now = not_default(experiment.run)  # others stay as they were
    options: dict[str, Any] = {
        "journal": default_path(),
        "budget": None if experiment.budget == UNLIMITED else experiment.budget,
        **{name: value for name, value in set_now.items() if name in _CHANGEABLE},
    }
    if policy is None:
        ask = partial(resume, run_id, pool, **options)
    else:
        ask = partial(resume_policy, policy, run_id, request, pool, **options)
    about: RunOptions = {"journal": default_path(), "run_id": run_id, "origin": request.origin}
    print_run(followed(ask, pool, args, about), as_json=args.json)
    return 0


def _is_told(prepared: Redo, found: RunEstimate, args: argparse.Namespace, *, has_later: bool) -> bool:
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
