"""Answer over HTTP: the Conductor of a pool, and workflow files, as models behind an API of OpenAI's shape.

The model `wfdsl` is the Conductor; each --workflow is a model by the name of its file, without .wf. Every call is kept
in the journal. SIGTERM or Ctrl-C ends the server after the requests in progress. With --score the server scores
completions for training engines, with options of its own: `wfdsl serve --score --help`.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from typing import Any

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
    values_of,
)
from wfdsl.cli.output import print_json, print_now
from wfdsl.conductor.config import ConductorConfig
from wfdsl.errors import UsageError
from wfdsl.experiment import KeyLimits, RunSettings, ServeSettings
from wfdsl.installation import SERVER_PACKAGES, require_packages
from wfdsl.interpreter.budget import Budget
from wfdsl.settings import to_table

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
    add_config_options(parser)
    add_protocol_option(parser)
    group(parser, OUTPUT).add_argument(
        "--view", action="store_true", help="also show the runs in a browser, as `wfdsl view` does"
    )
    group(parser, OUTPUT).add_argument("--quiet", action="store_true", help="print no line for each request")
    add_options(parser, ServeSettings, "serve")
    add_options(parser, ConductorConfig, "conductor")
    add_options(parser, Budget, "budget")
    add_options(parser, RunSettings, "run", without=["parallel"])
    _configure_keys(parser.add_subparsers(dest="action", metavar="ACTION"))


def execute(args: argparse.Namespace) -> int:
    """Serve until a signal ends it."""
    require_packages("wfdsl serve", SERVER_PACKAGES, "server")
    require_no_parameters(args, "the workflow files of a server take no parameters")
    experiment = experiment_of(args)
    if args.action == "keys":
        return _execute_keys(args, experiment.serve)
    from wfdsl.interpreter.journal import Journal
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.server.app import build_app
    from wfdsl.server.keys import keys_for
    from wfdsl.server.listening import address_of, allow_open_files, listen, serve
    from wfdsl.server.live_runs import LiveRuns
    from wfdsl.server.models import served_models

    settings = experiment.serve
    keys = keys_for(settings.host, settings.keys, print_now)
    viewer, live = None, LiveRuns()
    if args.view:
        from wfdsl.viewer.app import Viewer

        viewer = Viewer(default_path(), [Path()], experiment=experiment)
        viewer.index.live.append(live.events_of)
    models = served_models(experiment, args.workflow)
    allow_open_files()
    keeping = Journal(default_path()) if experiment.run.journal else nullcontext()
    with keeping as journal, listen(settings.host, settings.port) as listening:
        more, log = () if viewer is None else [viewer.mount()], (lambda _: None) if args.quiet else print_now
        app = build_app(models, settings, keys=keys, journal=journal, log=log, more=more, live=live)
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
    return 0


def _configure_keys(actions: Any) -> None:
    """Add `keys` and its actions."""
    keys = actions.add_parser("keys", help="make, list and revoke API keys; the server need not run")
    inner = keys.add_subparsers(dest="key_action", metavar="ACTION", required=True)
    make = inner.add_parser("make", help="make a key, print it once, and add its hash and its limits to --keys")
    make.add_argument("name", metavar="NAME", help="whose key it is: letters, digits, - and _")
    listing = inner.add_parser("list", help="list the keys with their limits")
    listing.add_argument("--json", action="store_true", help="print a JSON object a line for each key")
    revoke = inner.add_parser("revoke", help="take a key out of --keys; a server that runs refuses it at once")
    revoke.add_argument("name", metavar="NAME", help="whose key it is")
    for each in (make, listing, revoke):
        add_options(each, ServeSettings, "serve", only=["keys"])
    add_options(make, KeyLimits, "key", title=INPUT)


def _execute_keys(args: argparse.Namespace, settings: ServeSettings) -> int:
    """Do what the action says."""
    from wfdsl.server.keys import make_key, read_keys, revoke_key

    if settings.keys is None:
        raise UsageError(f"keys {args.key_action} needs --keys FILE: the file that keeps the hashes of the keys")
    if args.key_action == "make":
        print(make_key(settings.keys, args.name, values_of(args, "key")))
    elif args.key_action == "revoke":
        revoke_key(settings.keys, args.name)
    else:
        for name, limits in read_keys(settings.keys).items():
            about = {field: value for field, value in to_table(limits).items() if field != "hash"}
            if args.json:
                print_json({"name": name, **about})
            else:  # a limit of no dollars is one
                told = (f"{field} {value}" for field, value in about.items() if value or field == "usd")
                print(f"{name:<20}  {', '.join(told)}")
    return 0
