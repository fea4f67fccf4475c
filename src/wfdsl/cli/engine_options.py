"""The options that say where work takes place: in this process, or on a Ray cluster."""

from __future__ import annotations

import argparse

from wfdsl.cli.options import count
from wfdsl.errors import UsageError


def add_engine_options(options: argparse._ArgumentGroup, what: str) -> None:
    """Add `--engine`, `--address` and `--nodes`; `what` takes place there."""
    options.add_argument(
        "--engine",
        choices=["local", "ray"],
        default="local",
        help=f"where {what}: in this process, or on a Ray cluster (default: local)",
    )
    options.add_argument(
        "--address",
        metavar="ADDRESS",
        help="the Ray cluster, as HOST:PORT or auto (default: RAY_ADDRESS; else Ray is started on this machine)",
    )
    options.add_argument(
        "--nodes",
        type=count,
        metavar="N",
        help="processes of the Ray cluster, one CPU each (default: one for each node that it has)",
    )


def require_engine(args: argparse.Namespace) -> None:
    """Refuse options of a cluster without one.

    Raises:
        UsageError: there are such options.
    """
    if args.engine == "local" and (args.address or args.nodes):
        raise UsageError("--address and --nodes are for a Ray cluster; add --engine ray")
