"""`--from RUN --step STEP` of `wfdsl run` and `wfdsl solve`: one step of a run is asked again, in a new run."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from wfdsl.cli.options import experiment_of, require_no_parameters
from wfdsl.errors import UsageError

if TYPE_CHECKING:  # start-up time
    from wfdsl.interpreter.config import RunRequest
    from wfdsl.interpreter.estimate import RunEstimate
    from wfdsl.interpreter.redoing import Redo
    from wfdsl.workers.pool import Pool


def redo_step(args: argparse.Namespace) -> int:
    """`wfdsl run --from RUN --step STEP`: redo the step and print the new answer."""
    from wfdsl.cli.resume import finish
    from wfdsl.experiment import pool_of_run
    from wfdsl.interpreter.execution import require_runnable
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import full_id, request_of
    from wfdsl.interpreter.redoing import prepare_redo

    require_no_parameters(args, "the run keeps the parameters that it was started with")
    experiment, path = experiment_of(args), default_path()
    if not experiment.run.journal:
        raise UsageError("--from RUN reads and writes the journal: leave --no-journal out")
    run_id = full_id(path, args.source)
    request = request_of(path, run_id)
    if "solve" in request.origin:
        raise UsageError(f"run {run_id} is a Conductor's: write `wfdsl solve --from {run_id} --round N --step STEP`")
    pool = pool_of_run(request) if experiment.pool is None else experiment.pool
    worker = None if args.worker is None else _worker(pool, args.worker)
    prepared = prepare_redo(path, run_id, args.step, subtask=args.subtask, worker=worker)
    require_runnable(prepared.workflow, pool, prepared.request.config.max_depth)
    found = prepared.estimate(pool)
    if args.dry_run:
        print_redo_estimate(prepared, found, as_json=args.json)
        return 0
    if not args.quiet:
        print(price_of(prepared, found), file=sys.stderr)
    return finish(prepared.start(path), request, pool, experiment, args)


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
