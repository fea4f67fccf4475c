"""The options of `wfdsl-eval`, and the evaluation that they and the configuration describe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wfdsl.cli.options import (
    add_config_options,
    add_options,
    add_pool_option,
    count,
    count_or_zero,
    experiment_of,
    parameters_of,
)
from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.experiment import RunSettings, run_options
from wfdsl.interpreter.budget import Budget

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from wfdsl.experiment import Experiment
    from wfdsl_rl.evaluation.evaluating import Evaluation
    from wfdsl_rl.tasks.task import Task

_CONCURRENCY = 32
_SEED = 0
_NEEDED = {
    "policy": "--policy: what is evaluated, such as workers, moa or FILE.wf",
    "tasks": "--tasks: what it is asked, such as FILE.jsonl or gym/paper7",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME",
        help="a baseline, a .wf file, worker:NAME, a Conductor by its model (local, PROVIDER:MODEL, a checkpoint's "
        "folder, a pool file with one worker), or a group: workers, baselines; may be repeated",
    )
    parser.add_argument(
        "--tasks", action="append", default=[], metavar="NAME", help="a file, a data set or a gym; may be repeated"
    )
    add_pool_option(parser, "the workers")
    add_config_options(parser)
    _add_task_options(parser)
    _add_run_options(parser)
    _add_output_options(parser)
    add_options(parser, ConductorConfig, "conductor", without=["model"])
    add_options(parser, Budget, "budget", only=["usd"])
    add_options(parser, RunSettings, "run", without=["concurrency", "parallel"])


def _add_task_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=count, metavar="N", help="at most N tasks of each --tasks, the first ones")
    parser.add_argument(
        "--sample-seed",
        type=count_or_zero,
        metavar="N",
        help="draw the tasks of --limit by this seed, in place of the first ones; of a gym: which questions it asks",
    )
    parser.add_argument("--task-format", metavar="NAME", help="the format of the rows (default: told by the columns)")
    parser.add_argument(
        "--map", metavar="FIELD=COLUMN,...", help="which columns to use, such as question=prompt,gold=answer"
    )
    parser.add_argument("--repeats", type=count, default=1, metavar="N", help="runs of each task (default: 1)")


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-seed", action="store_true", help="send no seed: workers draw as they like (default: the seed 0)"
    )
    parser.add_argument(
        "--concurrency", type=count, default=_CONCURRENCY, metavar="N", help="runs at a time (default: %(default)s)"
    )


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", help="the folder of results (default: eval-DATE-TIME)")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the evaluation in --out; its options need not be given again"
    )
    parser.add_argument("--dry-run", action="store_true", help="ask nobody and write nothing: say what would be asked")
    parser.add_argument("--no-plots", action="store_true", help="write no plots")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="what is printed at the end")


def completed(arguments: list[str], parse: Callable[[Sequence[str]], argparse.Namespace]) -> argparse.Namespace:
    """The options; those that a resumed evaluation was begun with need not be given again.

    Raises:
        UsageError: something that is needed is not given.
    """
    args = parse(arguments)
    if args.resume and not args.out:
        raise UsageError("--resume goes on with an evaluation: say which one, with --out DIR")
    if args.resume and not args.policy and not args.tasks:
        from wfdsl_rl.evaluation.manifest import read_manifest

        args = parse([*read_manifest(Path(args.out))["command"], *arguments])
    missing = [each for name, each in _NEEDED.items() if not getattr(args, name)]
    if missing:
        raise UsageError(f"give {', and '.join(missing)}")
    return args


def evaluation_of(args: argparse.Namespace, experiment: Experiment) -> Evaluation:
    """What the options describe.

    Raises:
        UsageError: an option cannot be used, or there is nothing to evaluate.
        WorkflowError: a file holds no valid workflow.
    """
    from wfdsl_rl.evaluation.evaluating import Evaluation
    from wfdsl_rl.policies import policies_of

    if experiment.pool is None:
        raise UsageError("give --pool: the workers, a pool's name or file; `wfdsl pools list` lists the names")
    pool = experiment.pool
    policies = policies_of(args.policy, pool, config=experiment.conductor, params=parameters_of(args))
    seed = _SEED if experiment.run.seed is None else experiment.run.seed
    return Evaluation(
        policies=policies,
        tasks=_tasks(args),
        pool=pool,
        repeats=args.repeats,
        seed=None if args.no_seed else seed,
        options=run_options(experiment.run, without=("concurrency", "seed")),
    )


def read_options(args: argparse.Namespace) -> Experiment:
    """The configuration, with the options over it.

    Raises:
        UsageError: something cannot be used.
    """
    return experiment_of(args)


def _tasks(args: argparse.Namespace) -> list[Task]:
    from wfdsl_rl.tasks.loading import load_tasks

    columns, seed = _columns(args.map), args.sample_seed
    found = [
        task
        for name in args.tasks
        for task in load_tasks(name, format=args.task_format, limit=args.limit, seed=seed, columns=columns)
    ]
    if not found:
        raise UsageError(f"--tasks {' '.join(args.tasks)}: there are no tasks")
    return found


def _columns(mapping: str | None) -> dict[str, str] | None:
    columns: dict[str, str] = {}
    for part in filter(None, (mapping or "").split(",")):
        ours, equals, theirs = part.partition("=")
        if not ours or not equals or not theirs:
            raise UsageError(f"--map {part!r}: write FIELD=COLUMN, such as question=prompt")
        columns[ours] = theirs
    return columns or None
