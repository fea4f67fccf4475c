"""Run a workflow on a question.

The answer goes to standard output, progress to standard error. Each call is kept in the journal before it is used, so
that `wfdsl runs resume` can continue an interrupted run.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from wfdsl.cli.inputs import (
    STDIN,
    add_input_options,
    add_question_options,
    analyze_input,
    question_of,
    require_workflow,
)
from wfdsl.cli.options import INPUT, OUTPUT, add_options, add_trace_options, experiment_of, group
from wfdsl.cli.output import SMALL_MODEL, print_json, print_now, print_run
from wfdsl.experiment import RunSettings
from wfdsl.interpreter.budget import Budget
from wfdsl.language.workflow import Workflow
from wfdsl.render.status import dollars

if TYPE_CHECKING:  # start-up time
    from wfdsl.interpreter.worker_profile import RunEstimate
    from wfdsl.workers.pool import Pool


EXAMPLES = (
    'wfdsl run debate.wf "Is 91 a prime?" --pool pool.toml',
    "wfdsl run debate.wf - --pool pool.toml --budget-usd 0.10 < question.txt",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl run`."""
    group(parser, INPUT).add_argument("file", metavar="FILE", help="a .wf file or a completion; - reads standard input")
    add_question_options(parser)
    group(parser, OUTPUT).add_argument(
        "--dry-run", action="store_true", help="call no worker: print the messages and the most that the run may cost"
    )
    add_trace_options(parser)
    add_input_options(parser, is_run=True)
    add_options(parser, Budget, "budget")
    add_options(parser, RunSettings, "run", without=["parallel"])


def execute(args: argparse.Namespace) -> int:
    """Run the workflow and print its answer."""
    from wfdsl.cli.display.live import followed, new_run_options
    from wfdsl.interpreter.running import run

    experiment = experiment_of(args)
    pool, pool_name = experiment.with_pool()
    question = question_of(args)
    workflow = require_workflow(analyze_input(args.file, args, pool), quiet=args.quiet)
    if experiment.pool is None and not args.quiet:
        print_now(f"note: {SMALL_MODEL.format('answers')}")
    if args.dry_run:
        return print_estimate(workflow, question, pool, experiment.run, as_json=args.json)
    origin = {"file": args.file if args.file == STDIN else str(Path(args.file).absolute())}
    origin |= {"pool": pool_name} if pool_name is not None else {}
    options = new_run_options(experiment, origin)
    done = followed(partial(run, workflow, question, pool, **options), pool, args, options)
    print_run(done, as_json=args.json)
    return 0


def print_estimate(workflow: Workflow, question: str, pool: Pool, run: RunSettings, *, as_json: bool) -> int:
    """Print the messages that a workflow would send, and the most that it may cost (`--dry-run`).

    Raises:
        UsageError: the workflow cannot run on this pool.
    """
    from wfdsl.interpreter.execution import require_runnable
    from wfdsl.interpreter.worker_profile import estimate

    require_runnable(workflow, pool, run.max_depth)
    found = estimate(workflow, question, pool, question_for=run.question_for, run_dead_steps=run.run_dead_steps)
    show_estimate(found, names=None if workflow.labels is None else workflow.labels.names, as_json=as_json)
    return 0


def show_estimate(found: RunEstimate, *, names: Sequence[str] | None, as_json: bool) -> None:
    """Print an estimate."""
    if as_json:
        print_json({**asdict(found), "calls": found.calls, "usd": found.usd}, indent=2)
        return
    for step in found.steps:
        print(f"{names[step.step] if names else f'step {step.step}'}: worker {step.worker} ({step.worker_name})")
        for message in step.messages:
            text = message["content"].replace("\n", "\n    ")
            print(f"  {message['role']}: {text}")
    if found.pruned:
        print(f"left out, since they cannot change the answer: {', '.join(map(str, found.pruned))}")
    nested = any(step.conductor for step in found.steps)
    calls, usd = f"{found.calls}{' and those of a Conductor' if nested else ''}", found.usd
    print(f"calls: {calls}\ncost at most: {f'not known: {found.unpriced}' if usd is None else dollars(usd)}")
