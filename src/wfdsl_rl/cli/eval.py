"""Evaluate policies on tasks: accuracy with standard error, tokens, cost, latency and steps, by benchmark.

`wfdsl-eval --policy NAME ... --tasks NAME ... --pool POOL` writes a folder with results, summaries, plots and a
manifest. `compare`, `equal-cost`, `strategies` and `report` read such folders.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from wfdsl._version import __version__
from wfdsl.cli.options import (
    INPUT,
    OUTPUT,
    Parser,
    add_config_options,
    add_options,
    add_pool_option,
    add_protocol_option,
    answer_tab,
    complete,
    count,
    group,
    words_before_tab,
)
from wfdsl.cli.output import USAGE, ended
from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.experiment import RunSettings
from wfdsl.interpreter.budget import Budget
from wfdsl_rl.cli.engine_options import add_engine_options, require_engine
from wfdsl_rl.cli.task_options import add_task_options

PROGRAM = "wfdsl-eval"
COMMANDS = {
    "compare": "compare the policies of one or two evaluations, task by task",
    "equal-cost": "show how far each policy is above all others that cost as much",
    "strategies": "show what the workflows of an evaluation look like",
    "report": "make the summaries and plots of an evaluation again",
}
EXIT_CODES = """\
commands: wfdsl-eval compare DIR [DIR], equal-cost DIR, strategies DIR, report DIR

exit codes: 0 fine, 1 invalid workflow, 2 usage or unreadable input, 3 runs failed, 4 budget spent, 130 interrupted"""
EXAMPLES = (
    "wfdsl-eval --policy workers --policy debate.wf --tasks questions.jsonl --pool pool.toml",
    "wfdsl-eval --policy openai:MODEL --tasks gsm8k --limit 50 --pool pool.toml --budget-usd 5 --out first",
    "wfdsl-eval --resume first",
)
_EXAMPLES = {
    "compare": ("wfdsl-eval compare first", "wfdsl-eval compare first second"),
    "equal-cost": (
        "wfdsl-eval equal-cost first",
        "wfdsl-eval equal-cost first second --policy moa --plot .",
        "wfdsl-eval equal-cost first --policy moa --among 'worker:*' --among 'majority-vote:*'",
    ),
    "strategies": ("wfdsl-eval strategies first",),
    "report": ("wfdsl-eval report first --json",),
}
_NOTES = {
    "compare": [
        """\
In one folder each policy is compared with the first. Of two folders, each policy of the first is compared with the
policy of the same name in the second; where no name is in both, with every one."""
    ]
}
_PARALLEL = 32
_NEEDED = {
    "policy": "--policy: what is evaluated, such as workers, moa or FILE.wf",
    "tasks": "--tasks: what it is asked, such as FILE.jsonl or gym/paper7",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return ended(PROGRAM, lambda: _execute(arguments))


def _execute(arguments: list[str]) -> int:
    words = words_before_tab()
    first = (arguments if words is None else words)[:1]
    command = first[0] if first and first[0] in COMMANDS else None
    parser = _parser(command)
    answer_tab(parser)
    if not arguments:
        parser.print_help(sys.stderr)
        return USAGE
    if command is None and not arguments[0].startswith("-"):
        raise UsageError(f"unknown command {arguments[0]!r}; give {', '.join(COMMANDS)}, or options for an evaluation")
    if command:
        args = parser.parse_args(arguments[1:])
        return int(getattr(import_module("wfdsl_rl.cli.eval_reports"), f"execute_{command.replace('-', '_')}")(args))
    args = completed(arguments, parser.parse_args)
    return int(import_module("wfdsl_rl.cli.eval_run").execute(args, arguments))


def _parser(command: str | None) -> argparse.ArgumentParser:
    if command:
        parser = Parser(prog=f"{PROGRAM} {command}", description=COMMANDS[command])
        _CONFIGURE[command](parser)
        complete(parser, _EXAMPLES[command], *_NOTES.get(command, ()))
        return parser
    parser = Parser(
        prog=PROGRAM,
        description=__doc__,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    _configure(parser)
    complete(parser, EXAMPLES, EXIT_CODES)
    parser.usage = f"{PROGRAM} --policy NAME ... --tasks NAME ... --pool POOL [OPTION]..."
    return parser


def _configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
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
    group(parser, INPUT).add_argument(
        "--repeats", type=count, default=1, metavar="N", help="runs of each task (default: 1)"
    )
    _add_run_options(parser)
    _add_output_options(parser)
    add_options(parser, ConductorConfig, "conductor", without=["model"])
    add_options(parser, Budget, "budget", only=["usd"])
    add_options(parser, RunSettings, "run", without=["concurrency", "parallel"])


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


def completed(arguments: list[str], parse: Callable[[Sequence[str]], argparse.Namespace]) -> argparse.Namespace:
    """The options; those that a resumed evaluation was started with need not be given again.

    Raises:
        UsageError: something that is needed is not given.
    """
    args = parse(arguments)
    if args.resume and not args.policy and not args.tasks:
        from wfdsl.evaluation.manifest import read_manifest

        args = parse([*read_manifest(Path(args.resume))["command"], *arguments])
    args.out = args.resume or args.out
    if not args.resume:
        require_engine(args)
    missing = [each for name, each in _NEEDED.items() if not getattr(args, name)]
    if missing:
        raise UsageError(f"give {', and '.join(missing)}")
    return args


def _configure_compare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl-eval compare`."""
    parser.add_argument("folders", nargs="+", metavar="DIR", help="one folder, or two")
    parser.add_argument("--policy", action="append", default=[], metavar="NAME", help="only these policies")
    parser.add_argument("--against", metavar="NAME", help="the policy to compare with (default: see below)")
    _add_json(parser)


def _configure_equal_cost(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl-eval equal-cost`."""
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


def _configure_strategies(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl-eval strategies`."""
    parser.add_argument("folder", metavar="DIR", help="the folder of an evaluation")
    parser.add_argument("--policy", action="append", default=[], metavar="NAME", help="only these policies")
    parser.add_argument(
        "--patterns", type=count, default=5, metavar="N", help="the most frequent workflows to show (default: 5)"
    )
    group(parser, OUTPUT).add_argument("--no-plots", action="store_true", help="write no plots")
    _add_json(parser)


def _configure_report(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl-eval report`."""
    parser.add_argument("folder", metavar="DIR", help="the folder of an evaluation")
    group(parser, OUTPUT).add_argument("--no-plots", action="store_true", help="write no plots")
    _add_json(parser)


def _add_json(parser: argparse.ArgumentParser) -> None:
    group(parser, OUTPUT).add_argument("--json", action="store_true", help="print JSON instead of tables")


_CONFIGURE = {
    "compare": _configure_compare,
    "equal-cost": _configure_equal_cost,
    "strategies": _configure_strategies,
    "report": _configure_report,
}

if __name__ == "__main__":
    sys.exit(main())
