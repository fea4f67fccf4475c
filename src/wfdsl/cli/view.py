"""Show runs in a browser: the list, what each worker was asked and saw, comparisons, and steps asked again.

The address that is printed has a key, since the pages show questions and answers. The pages are on this machine only;
nothing is fetched from elsewhere. Ctrl-C ends the command.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from wfdsl.cli.options import (
    INPUT,
    OUTPUT,
    add_config_options,
    add_options,
    add_pool_option,
    experiment_of,
    group,
    require_no_parameters,
    values_of,
)
from wfdsl.cli.output import print_now
from wfdsl.errors import UsageError
from wfdsl.experiment import ServeSettings
from wfdsl.installation import SERVER_PACKAGES, require_packages

EXAMPLES = (
    "wfdsl view",
    "wfdsl view --port 9000",
    "wfdsl view evaluations/first",
)
_PORT = 8601


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl view`."""
    group(parser, INPUT).add_argument(
        "folders",
        metavar="FOLDER",
        nargs="*",
        help="a folder with evaluations, whose pages are shown too (default: the current folder)",
    )
    add_options(parser, ServeSettings, "serve", only=["port"], title=OUTPUT, port=_PORT)
    add_pool_option(parser, "the pool to ask steps again with, and of the playground (default: the one of the run)")
    add_config_options(parser)


def execute(args: argparse.Namespace) -> int:
    """Show the pages until a signal ends the command."""
    require_packages("wfdsl view", SERVER_PACKAGES, "server")
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import RedirectResponse
    from starlette.routing import Mount

    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.server.listening import listen, serve
    from wfdsl.viewer.app import ROOT, Viewer

    require_no_parameters(args, "the runs keep the parameters that they were started with")
    folders = [Path(name) for name in args.folders or ["."]]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder")
    viewer = Viewer(default_path(), folders, experiment=experiment_of(args))
    own = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"], www_redirect=False)
    app = Starlette(routes=[viewer.mount(), Mount("/", app=RedirectResponse(f"{ROOT}/"))], middleware=[own])
    port = values_of(args, "serve").get("port", _PORT)
    with listen("127.0.0.1", port, "--port") as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}{viewer.path}"
        serve(app, listening, 1.0, lambda: print_now(f"the runs are shown on {address}"), lambda _: viewer.close())
    return 0
