"""Evaluate policies on tasks: accuracy with its interval, tokens, cost, latency and steps, by benchmark.

`wfdsl eval --policy NAME ... --tasks NAME ... --pool POOL` writes a folder with results, summaries, plots and a
manifest. The actions read such folders.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from wfdsl.cli.engine_options import add_engine_options, require_engine
from wfdsl.cli.options import (
    INPUT,
    OUTPUT,
    add_config_options,
    add_options,
    add_pool_option,
    add_protocol_option,
    count,
    group,
)
from wfdsl.cli.task_options import add_answer_format_option, add_task_options
from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.experiment import RunSettings
from wfdsl.interpreter.budget import Budget

_ACTIONS = {
    "compare": "compare the policies of one or two evaluations, task by task",
    "equal-cost": "show how far each policy is above all others that cost as much",
    "room": "show what a Conductor could gain by choosing among the policies for each question",
    "strategies": "show what the workflows of an evaluation look like",
    "report": "make the summaries and plots of an evaluation again",
}
EXAMPLES = (
    "wfdsl eval --policy workers --policy debate.wf --tasks questions.jsonl --pool pool.toml",
    "wfdsl eval --policy openai:MODEL --tasks gsm8k --limit 50 --pool pool.toml --budget-usd 5 --out first",
    "wfdsl eval --resume first",
    "wfdsl eval compare first second",
    "wfdsl eval room first",
    "wfdsl eval equal-cost first --policy moa --among 'worker:*' --among 'majority-vote:*'",
)
_COMPARED = """\
In one folder each policy is compared with the first. Of two folders, each policy of the first is compared with the
policy of the same name in the second; where no name is in both, with every one."""
_PARALLEL = 32
_NEEDED = {
    "policy": "--policy: what is evaluated, such as workers, moa or FILE.wf",
    "tasks": "--tasks: what it is asked, such as FILE.jsonl or gym/seven",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl eval`."""
    asked = group(parser, INPUT)
    asked.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME",
        help="a baseline, a .wf file, worker:NAME, a Conductor by its model (local, PROVIDER:MODEL, a checkpoint's "
        "folder, a pool file with one worker), or a group: workers, baselines; may be repeated",
    )
    add_pool_option(parser, "the workers")
    add_config_options(parser)
    add_protocol_option(parser)
    add_task_options(parser)
    add_answer_format_option(parser)
    group(parser, INPUT).add_argument(
        "--repeats", type=count, default=1, metavar="N", help="runs of each task (default: 1)"
    )
    _add_run_options(parser)
    _add_output_options(parser)
    add_options(parser, ConductorConfig, "conductor", without=["model"])
    add_options(parser, Budget, "budget", only=["usd"])
    add_options(parser, RunSettings, "run", without=["concurrency", "parallel"])
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for name, about in _ACTIONS.items():
        _CONFIGURE[name](actions.add_parser(name, help=about, description=about))


def execute(args: argparse.Namespace) -> int:
    """Evaluate, or do what the action says."""
    if args.action is None:
        return int(import_module("wfdsl.cli.eval_run").execute(completed(args)))
    reports = import_module("wfdsl.cli.eval_reports")
    return int(getattr(reports, f"execute_{args.action.replace('-', '_')}")(args))


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    runs = parser.add_argument_group("runs")
    runs.add_argument(
        "--no-seed", action="store_true", help="send no seed: workers draw as they like (default: the seed 0)"
    )
    runs.add_argument(
        "--parallel",
        type=count,
        default=_PARALLEL,
        metavar="N",
        help="runs at a time, with --engine ray on each node (default: %(default)s)",
    )
    add_engine_options(runs, "runs take place")


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    output = group(parser, OUTPUT)
    output.add_argument("-o", "--out", metavar="DIR", help="the folder of results (default: eval-DATE-TIME)")
    output.add_argument(
        "--resume", metavar="DIR", help="continue the evaluation in a folder; its options need not be given again"
    )
    output.add_argument("--dry-run", action="store_true", help="ask and write nothing: print what would be asked")
    group(parser, OUTPUT).add_argument("--no-plots", action="store_true", help="write no plots")
    output.add_argument("--quiet", action="store_true", help="print no progress: only the results and errors")
    _add_json(parser)


def completed(args: argparse.Namespace) -> argparse.Namespace:
    """The options; those that a resumed evaluation was started with need not be given again.

    Raises:
        UsageError: something that is needed is not given.
    """
    if args.resume and not args.policy and not args.tasks:
        args = _resumed(args)
    args.out = args.resume or args.out
    if not args.resume:
        require_engine(args)
    missing = [each for name, each in _NEEDED.items() if not getattr(args, name)]
    if missing:
        raise UsageError(f"give {', and '.join(missing)}")
    return args


def _resumed(now: argparse.Namespace) -> argparse.Namespace:
    """The options of the first command; those that are given now override them."""
    from wfdsl.cli.main import parsed
    from wfdsl.evaluation.manifest import read_manifest

    args = parsed(["eval", *read_manifest(Path(now.resume))["command"], *now.words])
    names = {each.partition("=")[0] for each in now.set}
    before = args.set[: len(args.set) - len(now.set)]
    args.set = [*(each for each in before if each.partition("=")[0] not in names), *now.set]
    kept, kept_now = getattr(args, "kept", {}), getattr(now, "kept", {})
    args.kept = {key: value for key, value in kept.items() if key not in names or key in kept_now}
    return args


def _configure_compare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl eval compare`."""
    parser.epilog = _COMPARED
    parser.add_argument("folders", nargs="+", metavar="DIR", help="one folder, or two")
    parser.add_argument("--policy", action="append", default=[], metavar="NAME", help="only these policies")
    parser.add_argument("--against", metavar="NAME", help="the policy to compare with (default: see below)")
    _add_json(parser)


def _configure_equal_cost(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl eval equal-cost`."""
    parser.add_argument("folders", nargs="+", metavar="DIR", help="folders of evaluations on the same tasks")
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="PATTERN",
        help="show only these policies, by name or pattern; may be repeated",
    )
    parser.add_argument(
        "--among",
        action="append",
        default=[],
        metavar="PATTERN",
        help="compare with these policies only, by name or pattern, such as 'worker:*'; may be repeated",
    )
    parser.add_argument("--plot", metavar="DIR", help="draw accuracy-against-cost into this folder")
    _add_json(parser)


def _configure_room(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl eval room`."""
    parser.add_argument("folder", metavar="DIR", help="the folder of an evaluation, with `--policy workers` in it")
    _add_json(parser)


def _configure_strategies(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl eval strategies`."""
    parser.add_argument("folder", metavar="DIR", help="the folder of an evaluation")
    parser.add_argument("--policy", action="append", default=[], metavar="NAME", help="only these policies")
    parser.add_argument(
        "--patterns", type=count, default=5, metavar="N", help="the most frequent workflows to show (default: 5)"
    )
    group(parser, OUTPUT).add_argument("--no-plots", action="store_true", help="write no plots")
    _add_json(parser)


def _configure_report(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl eval report`."""
    parser.add_argument("folder", metavar="DIR", help="the folder of an evaluation")
    group(parser, OUTPUT).add_argument("--no-plots", action="store_true", help="write no plots")
    _add_json(parser)


def _add_json(parser: argparse.ArgumentParser) -> None:
    group(parser, OUTPUT).add_argument("--json", action="store_true", help="print JSON instead of tables")


_CONFIGURE = {
    "compare": _configure_compare,
    "equal-cost": _configure_equal_cost,
    "room": _configure_room,
    "strategies": _configure_strategies,
    "report": _configure_report,
}
