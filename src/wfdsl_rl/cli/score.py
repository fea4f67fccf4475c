"""Serve rewards over HTTP to training engines: completions in, scores out.

One process keeps the workers' limits, the budget and the journal for all engines and nodes. With --rows, write the
tasks with the Conductor's prompts as the rows that an engine reads, and serve nothing.
"""

from __future__ import annotations

import argparse
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wfdsl.cli.options import (
    INPUT,
    OUTPUT,
    add_arguments,
    add_config_options,
    add_options,
    add_pool_option,
    count,
    experiment_of,
    group,
    require_no_parameters,
    value_parser,
)
from wfdsl.cli.output import print_now, server_log
from wfdsl.cli.task_options import add_task_options, tasks_of
from wfdsl.conductor.config import ConductorConfig
from wfdsl.config import Option, OptionField
from wfdsl.errors import UsageError
from wfdsl.experiment import RunSettings, ServeSettings
from wfdsl.installation import SERVER_PACKAGES, require_packages
from wfdsl.interpreter.budget import Budget

if TYPE_CHECKING:  # start-up time
    from wfdsl.experiment import Experiment
    from wfdsl.interpreter.journal import Journal
    from wfdsl.workers.pool import Pool
    from wfdsl_rl.engines.service import RewardService

EXAMPLES: Final = (
    "wfdsl serve --score --pool pool.toml --tasks gsm8k --budget-usd 50",
    "wfdsl serve --score --pool gym/seven --tasks gym/seven --limit 200 --port 8700",
    "wfdsl serve --score --pool gym/seven --tasks gym/seven --limit 200 --rows verl --out train.parquet",
)
_ENGINES: Final = ("verl", "skyrl", "slime", "openrlhf")
_PORT: Final = 8700
_PARALLEL: Final = 1024
"""One process waits for ten thousand calls (docs/howto/scale.md); grading takes a processor. Our choice."""
_REQUESTS: Final = 4096
_BODY_BYTES: Final = 64 * 2**20
_OF_MODELS: Final = (
    "reasoning",
    "tools",
    "max_tool_rounds",
    "side_requests",
    "context_window",
    "description",
    "log_texts",
)
"""Settings of a server that answers as a model."""
_number: Final = value_parser(OptionField("", float, False, MISSING, Option(help="")))  # noqa: FBT003
_VALUES: Final = {
    "right": ("--right", "of a workflow whose answer is right (default: 1)"),
    "wrong": ("--wrong", "of a workflow whose answer is wrong (default: 0.5)"),
    "invalid": ("--invalid", "of a completion that holds no valid workflow (default: 0)"),
    "step": ("--step-price", "added for each step; below 0, the price of a call (default: 0)"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl serve --score`."""
    group(parser, INPUT).add_argument("--score", action="store_true", help="serve rewards")
    add_task_options(parser)
    rewards = parser.add_argument_group("rewards")
    for name, (flag, text) in _VALUES.items():
        rewards.add_argument(flag, dest=name, type=float, metavar="REWARD", help=text)
    rewards.add_argument(
        "--unscored",
        type=_number,
        metavar="REWARD",
        help="what slime and OpenRLHF get for a completion without a score (default: as for a wrong answer if it could "
        "not be graded, and status 503 if a worker failed)",
    )
    rewards.add_argument(
        "--executions", type=count, default=1, metavar="N", help="runs of each workflow; its score is the mean"
    )
    runs = parser.add_argument_group("runs")
    runs.add_argument(
        "--parallel", type=count, default=_PARALLEL, metavar="N", help="most workflows in flight (default: %(default)s)"
    )
    runs.add_argument(
        "--sandbox-slots",
        type=count,
        metavar="N",
        help="programs graded at a time (default: one for each processor)",
    )
    runs.add_argument(
        "--journal", metavar="FILE", help="keeps every call (default: reward/journal.db beside the usual journal)"
    )
    add_pool_option(parser, "the workers")
    add_config_options(parser, parameters=False)
    add_arguments(
        parser,
        ServeSettings,
        title=OUTPUT,
        without=_OF_MODELS,
        port=_PORT,
        max_requests=_REQUESTS,
        max_body_bytes=_BODY_BYTES,
    )
    group(parser, OUTPUT).add_argument("--quiet", action="store_true", help="print no line for each request")
    rows = parser.add_argument_group("rows")
    rows.add_argument("--rows", metavar="ENGINE", choices=_ENGINES, help=f"write rows for {', '.join(_ENGINES)}")
    rows.add_argument("-o", "--out", metavar="FILE", help="with --rows: the file to make, .parquet or .jsonl")
    rows.add_argument("--split", default="train", metavar="NAME", help="the split that rows name (default: train)")
    add_options(parser, ConductorConfig, "conductor", only=("prompt", "examples", "without", "pick", "shuffle"))
    add_options(parser, Budget, "budget", without=["seconds"])
    add_options(parser, RunSettings, "run", without=["concurrency", "parallel", "journal", "reuse", "ask_again"])


def execute(args: argparse.Namespace) -> int:
    """Serve until a signal ends it, or write rows."""
    if (args.rows is None) != (args.out is None):
        raise UsageError("--rows and --out belong together: for which engine, and the file to make")
    return _serve_journal(args) if args.rows is None else _write_rows(args)


def _write_rows(args: argparse.Namespace) -> int:
    from wfdsl.conductor.prompt import DEFAULT_PROMPT, Prompt
    from wfdsl_rl.engines.rows import engine_rows, write_rows
    from wfdsl_rl.reward_maker import make_reward

    require_no_parameters(args, "rows take no parameters")
    experiment = experiment_of(args)
    conductor = experiment.conductor
    prompt = Prompt.load(conductor.prompt or DEFAULT_PROMPT, examples=conductor.examples)
    reward = make_reward(_pool(experiment), tasks_of(args), prompt=prompt, conductor=conductor)
    count = write_rows(Path(args.out), engine_rows(reward, args.rows, split=args.split))
    print_now(f"{count} rows in {args.out}")
    return 0


def _pool(experiment: Experiment) -> Pool:
    if experiment.pool is None:
        raise UsageError("give --pool: the workers, a pool's name or file; `wfdsl pools list` lists the names")
    return experiment.pool


def _serve_journal(args: argparse.Namespace) -> int:
    require_packages("wfdsl serve", SERVER_PACKAGES, "server")
    from wfdsl.interpreter.journal import Journal
    from wfdsl.interpreter.journal_file import SoleUse, default_path

    path = default_path().parent / "reward" / "journal.db" if args.journal is None else Path(args.journal)
    sole = SoleUse(path)
    try:
        with Journal(path) as journal:
            return _serve(args, journal)
    finally:
        sole.close()


def _serve(args: argparse.Namespace, journal: Journal) -> int:
    from wfdsl.server.keys import keys_for
    from wfdsl.server.listening import address_of, allow_open_files, listen, serve
    from wfdsl_rl.engines.server import build_app

    names = [each.name for each in fields(ServeSettings) if each.name in args]
    settings = ServeSettings(**{name: getattr(args, name) for name in names})
    keys = keys_for(settings.host, settings.keys, print_now)
    allow_open_files()
    with listen(settings.host, settings.port) as listening:
        service = _service(args, journal)
        app = build_app(service, settings, keys=keys, log=server_log(quiet=args.quiet), unscored=args.unscored)
        about = f"{len(service.reward.tasks)} tasks on {address_of(listening)}, journal {journal.path}"

        def ending(why: str) -> None:
            print_now(f"{why}: ends after the requests in progress, in at most {settings.drain_s:g} s")

        serve(app, listening, settings.drain_s, lambda: print_now(about), ending)
    return 0


def _service(args: argparse.Namespace, journal: Journal) -> RewardService:
    from wfdsl.experiment import run_options
    from wfdsl.grading.sandbox import Sandbox
    from wfdsl.interpreter.config import RunConfig
    from wfdsl.server.metrics import Metrics
    from wfdsl_rl.engines.service import RewardService
    from wfdsl_rl.reward_maker import budget_tracker, make_reward
    from wfdsl_rl.scoring import RewardValues

    require_no_parameters(args, "completions take no parameters")
    experiment = experiment_of(args)
    pool, tasks = _pool(experiment), tasks_of(args)
    given = {name: getattr(args, name) for name in _VALUES if getattr(args, name) is not None}
    metrics = Metrics()
    tracker = budget_tracker(experiment.budget, journal)
    reward = make_reward(
        pool,
        tasks,
        values=RewardValues(**given),
        executions=args.executions,
        options={"on_event": lambda event: metrics.event("reward", event)},
        sandbox=None if args.sandbox_slots is None else Sandbox(slots=args.sandbox_slots),
        budget=tracker,
        journal=journal,
        config=RunConfig(**run_options(experiment.run, without=("concurrency",))),
    )
    return RewardService(reward, journal, tracker, metrics, parallel=args.parallel)
