"""Answer over HTTP: the Conductor of a pool, and workflow files, as models behind an API of OpenAI's shape.

The model `wfdsl` is the Conductor; each --workflow is a model by the name of its file, without .wf. Every call is kept
in the journal. SIGTERM or Ctrl-C ends the server after the requests in progress. With --score the server scores
completions for training engines, with options of its own: `wfdsl serve --score --help`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wfdsl.cli.options import (
    INPUT,
    OUTPUT,
    add_config_options,
    add_options,
    add_pool_option,
    add_protocol_option,
    experiment_of,
    group,
    require_no_parameters,
)
from wfdsl.cli.output import print_now, server_log
from wfdsl.cli.serve_keys import configure_keys, execute_keys
from wfdsl.cli.view import require_pages
from wfdsl.conductor.config import ConductorConfig
from wfdsl.experiment import RunSettings, ServeSettings
from wfdsl.installation import SERVER_PACKAGES, require_packages
from wfdsl.interpreter.budget import Budget

if TYPE_CHECKING:  # start-up time
    from wfdsl.experiment import Experiment
    from wfdsl.viewer.app import Viewer

EXAMPLES = (
    "wfdsl serve --pool openai:gpt-5,openai:gpt-5-mini",
    "wfdsl serve --pool pool.toml --workflow debate.wf --port 8600",
    "wfdsl serve keys make ann --keys keys.toml --usd 20",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl serve`."""
    group(parser, INPUT).add_argument(
        "--workflow",
        action="append",
        default=[],
        metavar="FILE",
        help="a .wf file to serve as a model of its own; may be repeated",
    )
    group(parser, INPUT).add_argument("--score", action="store_true", help="serve rewards to training engines instead")
    add_pool_option(parser, "the workers (default: local)")
    add_config_options(parser, parameters=False)
    add_protocol_option(parser)
    group(parser, OUTPUT).add_argument(
        "--view", action="store_true", help="also show the runs in a browser, as `wfdsl view` does"
    )
    group(parser, OUTPUT).add_argument("--quiet", action="store_true", help="print no line for each request")
    add_options(parser, ServeSettings, "serve")
    add_options(parser, ConductorConfig, "conductor")
    add_options(parser, Budget, "budget")
    add_options(parser, RunSettings, "run", without=["parallel"])
    configure_keys(parser.add_subparsers(dest="action", metavar="ACTION"))


def execute(args: argparse.Namespace) -> int:
    """Serve until a signal ends it."""
    require_packages("wfdsl serve", SERVER_PACKAGES, "server")
    require_no_parameters(args, "the workflow files of a server take no parameters")
    experiment = experiment_of(args)
    if args.action == "keys":
        return execute_keys(args, experiment.serve)
    return _serve(experiment, args)


def _serve(experiment: Experiment, args: argparse.Namespace) -> int:
    from wfdsl.interpreter.journal import Journal
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.server.app import build_app
    from wfdsl.server.keys import keys_for
    from wfdsl.server.listening import address_of, allow_open_files, listen, serve
    from wfdsl.server.models import served_models

    settings = experiment.serve
    keys = keys_for(settings.host, settings.keys, print_now)
    if args.view:
        require_pages("--view")
    models = served_models(experiment, args.workflow)
    viewer = _viewer(experiment) if args.view else None
    journal = Journal(default_path()) if experiment.run.journal else None
    allow_open_files()
    try:
        with listen(settings.host, settings.port) as listening:
            app = build_app(
                models,
                settings,
                keys=keys,
                journal=journal,
                log=server_log(quiet=args.quiet),
                more=() if viewer is None else [viewer.mount()],
            )
            address = address_of(listening)

            def started() -> None:
                print_now(f"{', '.join(models)} on {address}/v1")
                if viewer is not None:
                    print_now(f"the runs are shown on {address}{viewer.path}")

            def ending(why: str) -> None:
                print_now(f"{why}: ends after the requests in progress, in at most {settings.drain_s:g} s")
                if viewer is not None:
                    viewer.close()

            serve(app, listening, settings.drain_s, started, ending)
    finally:
        if journal is not None:
            journal.close()
    return 0


def _viewer(experiment: Experiment) -> Viewer:
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.viewer.app import Viewer

    return Viewer(default_path(), [Path()], experiment=experiment)
