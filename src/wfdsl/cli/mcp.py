"""Serve workflows to a coding agent over the Model Context Protocol, on standard input and output.

The agent can list, check, draw and price workflows, run them within a cap in dollars, and ask a step again. Files are
those of the folder that the command is started in. Runs are kept in the journal. For Claude Code, add it with
`claude mcp add wfdsl -- wfdsl mcp`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from wfdsl.installation import require_packages

EXAMPLES = ("wfdsl mcp",)


def configure(parser: argparse.ArgumentParser) -> None:
    """There are no arguments: what is run, with which workers and cap, comes with each call."""


def execute(args: argparse.Namespace) -> int:  # noqa: ARG001  (every command takes them)
    """Serve until standard input ends."""
    require_packages("wfdsl mcp", ["mcp"], "mcp")
    from wfdsl.interpreter.journal import Journal
    from wfdsl.mcp.server import build

    with Journal() as journal:
        build(Path.cwd(), journal).run("stdio")
    return 0
