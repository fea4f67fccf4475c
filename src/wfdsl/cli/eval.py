"""Evaluate policies on tasks: accuracy with its interval, tokens, cost, latency and steps, by benchmark.

`wfdsl eval --policy NAME ... --tasks NAME ... --pool POOL` writes a folder with results, summaries, plots and a
manifest. The actions read such folders.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

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
from wfdsl.cli.task_options import add_task_options
from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.experiment import GradingSettings, RunSettings
from wfdsl.interpreter.budget import Budget

EXAMPLES = (
    "wfdsl eval --policy workers --policy debate.wf --tasks questions.jsonl --pool pool.toml",
    "wfdsl eval --policy openai:MODEL --tasks gsm8k --limit 50 --pool pool.toml --budget-usd 5 --out first",
    "wfdsl eval --resume first",
    "wfdsl eval compare first second",
    "wfdsl eval room first",
    "wfdsl eval equal-cost first --policy moa --among 'worker:*' --among 'majority-vote:*'",
)
_PARALLEL = 32
_PATTERNS = {
    "--policy": "show only these policies, by name or pattern, such as 'worker:*'; may be repeated",
    "--among": "compare with these policies only, by name or pattern; may be repeated",
}
_ACTIONS: dict[str, tuple[str, str, list[str]]] = {
    "compare": (
        "compare each policy with the first, or in two folders those of the same name, task by task",
        "the folder of an evaluation, or two",
        ["--policy"],
    ),
    "equal-cost": (
        "show how far each policy is above all others that cost as much",
        "folders of evaluations on the same tasks",
        ["--policy", "--among"],
    ),
    "room": ("show what a Conductor could gain by choosing among the policies for each question", "", []),
    "strategies": ("show what the workflows of an evaluation look like", "", ["--policy"]),
    "report": ("make the summaries and the plot of an evaluation again", "", []),
}
"""What each does, which folders it reads unless it is one, and its options that take patterns."""
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
    asked.add_argument(
        "--answer-format",
        metavar="TEXT",
        help="the form that answers are asked for (default: by kind, nothing with --protocol paper; '' for nothing)",
    )
    asked.add_argument("--repeats", type=count, default=1, metavar="N", help="runs of each task (default: 1)")
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
    runs.add_argument(
        "--engine",
        choices=["local", "ray"],
        default="local",
        help="where runs take place: in this process, or on a Ray cluster (default: local)",
    )
    runs.add_argument(
        "--address",
        metavar="ADDRESS",
        help="the Ray cluster, as HOST:PORT or auto (default: RAY_ADDRESS; else Ray is started on this machine)",
    )
    about = "processes of the Ray cluster, one CPU each (default: one for each node that it has)"
    runs.add_argument("--nodes", type=count, metavar="N", help=about)
    output = group(parser, OUTPUT)
    output.add_argument("-o", "--out", metavar="DIR", help="the folder of results (default: eval-DATE-TIME)")
    output.add_argument(
        "--resume", metavar="DIR", help="continue the evaluation in a folder; its options need not be given again"
    )
    output.add_argument("--dry-run", action="store_true", help="ask and write nothing: print what would be asked")
    output.add_argument("--quiet", action="store_true", help="print no progress: only the results and errors")
    _add_output(parser, plots=True)
    add_options(parser, ConductorConfig, "conductor", without=["model"])
    add_options(parser, Budget, "budget", only=["usd"])
    add_options(parser, RunSettings, "run", without=["concurrency", "parallel"])
    add_options(parser, GradingSettings, "grading")
    _add_actions(parser)


def execute(args: argparse.Namespace) -> int:
    """Evaluate, or do what the action says."""
    if args.action is None:
        return int(import_module("wfdsl.cli.eval_run").execute(completed(args)))
    return int(import_module("wfdsl.cli.eval_reports").execute(args))


def completed(args: argparse.Namespace) -> argparse.Namespace:
    """The options; those that a resumed evaluation was started with need not be given again.

    Raises:
        UsageError: something that is needed is not given.
    """
    if args.resume and not args.policy and not args.tasks:
        args = _resumed(args)
    args.out = args.resume or args.out
    if not args.resume and args.engine == "local" and (args.address or args.nodes):
        raise UsageError("--address and --nodes are for a Ray cluster; add --engine ray")
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
    for name in names:
        if "." in name and name in args and name not in now:
            delattr(args, name)
    return args


def _add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for name, (about, folders, options) in _ACTIONS.items():
        added = actions.add_parser(name, help=about, description=about)
        count_of = "+" if folders else 1
        added.add_argument("folders", nargs=count_of, metavar="DIR", help=folders or "the folder of an evaluation")
        for flag in options:
            added.add_argument(flag, action="append", default=[], metavar="PATTERN", help=_PATTERNS[flag])
        if name == "compare":
            added.add_argument("--against", metavar="NAME", help="the policy to compare with")
        _add_output(added, plots=name == "report")


def _add_output(parser: argparse.ArgumentParser, *, plots: bool) -> None:
    output = group(parser, OUTPUT)
    output.add_argument("--json", action="store_true", help="print JSON instead of tables")
    if plots:
        output.add_argument("--no-plots", action="store_true", help="do not draw accuracy against cost")
