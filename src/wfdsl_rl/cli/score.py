"""Serve rewards over HTTP to training engines: completions in, scores out.

One process keeps the workers' limits, the budget and the journal for all engines and nodes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wfdsl.cli.options import (
    INPUT,
    OUTPUT,
    add_config_options,
    add_options,
    add_pool_option,
    count,
    experiment_of,
    group,
    require_no_parameters,
)
from wfdsl.cli.output import OK, print_now
from wfdsl.cli.task_options import add_task_options, tasks_of
from wfdsl.experiment import RunSettings, ServeSettings
from wfdsl.installation import SERVER_PACKAGES, require_packages
from wfdsl.interpreter.budget import Budget

if TYPE_CHECKING:  # start-up time
    from wfdsl.experiment import Experiment
    from wfdsl_rl.reward import Reward

EXAMPLES: Final = (
    "wfdsl serve --score --pool pool.toml --tasks gsm8k --budget-usd 50",
    "wfdsl serve --score --pool gym/seven --tasks gym/seven --limit 200 --port 8700",
)
_DEFAULTS: Final[dict[str, Any]] = {"port": 8700, "max_requests": 4096, "max_body_bytes": 64 * 2**20}
_PARALLEL: Final = 1024
"""One process waits for ten thousand calls (docs/howto/scale.md); grading takes a processor. Our choice."""
_OF_MODELS: Final = ("reasoning", "tools", "max_tool_rounds", "side_requests")
"""Settings of a server that answers as a model."""
_VALUES: Final = {
    "right": "of a workflow whose answer is right (default: 1)",
    "wrong": "of a workflow whose answer is wrong (default: 0.5)",
    "invalid": "of a completion that holds no valid workflow (default: 0)",
    "step": "added for each step; below 0, the price of a call (default: 0)",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl serve --score`."""
    group(parser, INPUT).add_argument("--score", action="store_true", help="serve rewards")
    add_task_options(parser)
    rewards = parser.add_argument_group("rewards")
    for name, text in _VALUES.items():
        rewards.add_argument(f"--{name}", type=float, metavar="REWARD", help=text)
    rewards.add_argument(
        "--executions", type=count, default=1, metavar="N", help="runs of each workflow; its score is the mean"
    )
    runs = parser.add_argument_group("runs")
    runs.add_argument(
        "--parallel", type=count, default=_PARALLEL, metavar="N", help="most workflows in flight (default: %(default)s)"
    )
    runs.add_argument(
        "--sandbox-slots", type=count, metavar="N", help="programs graded at a time (default: one for each processor)"
    )
    runs.add_argument(
        "--journal", metavar="FILE", help="keeps every call (default: reward/journal.db beside the usual journal)"
    )
    add_pool_option(parser, "the workers")
    add_config_options(parser)
    add_options(parser, ServeSettings, "serve", title=OUTPUT, without=_OF_MODELS, **_DEFAULTS)
    group(parser, OUTPUT).add_argument("--quiet", action="store_true", help="print no line for each request")
    add_options(parser, Budget, "budget")
    add_options(parser, RunSettings, "run", without=["concurrency", "parallel", "journal", "ask_again"])


def execute(args: argparse.Namespace) -> int:
    """Serve until a signal ends it."""
    require_packages("wfdsl serve", SERVER_PACKAGES, "server")
    from wfdsl.interpreter.journal_file import default_path, lock_for_sole_use
    from wfdsl.server.keys import keys_for
    from wfdsl.server.listening import address_of, allow_open_files, listen, serve
    from wfdsl_rl.engines.server import build_app

    journal = default_path().parent / "reward" / "journal.db" if args.journal is None else Path(args.journal)
    lock_for_sole_use(journal)
    require_no_parameters(args, "completions take no parameters")
    experiment = experiment_of(args, serve=_DEFAULTS)
    settings = experiment.serve
    keys = keys_for(settings.host, settings.keys, print_now)
    allow_open_files()
    with listen(settings.host, settings.port) as listening, _reward(args, experiment, journal) as reward:
        log = (lambda _: None) if args.quiet else print_now
        app = build_app(reward, settings, keys=keys, parallel=args.parallel, log=log)
        about = f"{len(reward.tasks)} tasks on {address_of(listening)}, journal {journal}"

        def ending(why: str) -> None:
            print_now(f"{why}: ends after the requests in progress, in at most {settings.drain_s:g} s")

        serve(app, listening, settings.drain_s, lambda: print_now(about), ending)
    return OK


def _reward(args: argparse.Namespace, experiment: Experiment, journal: Path) -> Reward:
    from wfdsl.experiment import run_options
    from wfdsl.grading.sandbox import Sandbox
    from wfdsl.language.check import DEFAULT_MAX_STEPS
    from wfdsl_rl.reward import Reward
    from wfdsl_rl.scoring import RewardValues

    return Reward(
        experiment.require_pool(),
        tasks_of(args),
        conductor=experiment.conductor,
        max_steps=experiment.conductor.max_steps or DEFAULT_MAX_STEPS,
        values=RewardValues(**{name: value for name in _VALUES if (value := getattr(args, name)) is not None}),
        executions=args.executions,
        options=run_options(experiment.run, without=("concurrency",)),
        sandbox=None if args.sandbox_slots is None else Sandbox(slots=args.sandbox_slots),
        budget=experiment.budget,
        journal=journal,
    )
