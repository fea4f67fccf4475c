"""Answer over HTTP: the Conductor of a pool, and workflow files, as models behind an API of OpenAI's shape.

The model `wfdsl` is the Conductor; each --workflow is a model by the name of its file, without .wf. Every call is kept
in the journal. SIGTERM or Ctrl-C ends the server after the requests in progress.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
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
from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.experiment import RunSettings, ServeSettings
from wfdsl.installation import install_command
from wfdsl.interpreter.budget import Budget

if TYPE_CHECKING:  # start-up time
    from wfdsl.experiment import Experiment

EXAMPLES = (
    "wfdsl serve --pool openai:gpt-5,openai:gpt-5-mini",
    "wfdsl serve --pool pool.toml --workflow debate.wf --port 8600",
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
    group(parser, OUTPUT).add_argument(
        "--new-key", metavar="NAME", help="make an API key, add its hash to --keys, print the key, and serve nothing"
    )
    add_pool_option(parser, "the workers (default: local)")
    add_config_options(parser, parameters=False)
    add_protocol_option(parser)
    group(parser, OUTPUT).add_argument("--quiet", action="store_true", help="print no line for each request")
    add_options(parser, ServeSettings, "serve")
    add_options(parser, ConductorConfig, "conductor")
    add_options(parser, Budget, "budget")
    add_options(parser, RunSettings, "run", without=["parallel"])


def execute(args: argparse.Namespace) -> int:
    """Serve until a signal ends it."""
    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        raise UsageError(f"wfdsl serve needs starlette and uvicorn: {install_command('server')}")
    require_no_parameters(args, "the workflow files of a server take no parameters")
    experiment = experiment_of(args)
    if args.new_key is not None:
        return _print_new_key(experiment.serve, args.new_key)
    return _serve(experiment, args)


def _print_new_key(settings: ServeSettings, name: str) -> int:
    """Make a key; only its hash is kept."""
    from wfdsl.server.api_keys import add_key

    if settings.keys is None:
        raise UsageError("--new-key needs --keys FILE: the file that takes the key's hash")
    print(add_key(settings.keys, name))
    return 0


def _serve(experiment: Experiment, args: argparse.Namespace) -> int:
    from wfdsl.interpreter.journal import Journal
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.server.api_keys import ApiKeys, is_loopback
    from wfdsl.server.app import build_app
    from wfdsl.server.listening import listen, serve
    from wfdsl.server.served_model import served_models

    settings = experiment.serve
    if settings.keys is None and not is_loopback(settings.host):
        raise UsageError(f"--host {settings.host} needs --keys FILE: others reach it, and every request costs money")
    keys = None if settings.keys is None else ApiKeys.load(settings.keys)
    models = served_models(experiment, args.workflow)
    journal = Journal(default_path()) if experiment.run.journal else None
    try:
        with listen(settings.host, settings.port) as listening:
            app = build_app(
                models, settings, keys=keys, journal=journal, log=_print_nothing if args.quiet else _print_line
            )
            host, port = listening.getsockname()[:2]
            address = f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"
            serve(app, listening, settings.drain_s, lambda: _print_line(f"{', '.join(models)} on {address}"))
    finally:
        if journal is not None:
            journal.close()
    return 0


def _print_line(line: str) -> None:
    from wfdsl.cli.display.streams import visible

    print(visible(line), file=sys.stderr, flush=True)


def _print_nothing(line: str) -> None:
    pass
