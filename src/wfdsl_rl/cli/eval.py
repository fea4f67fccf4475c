"""Evaluate policies on tasks: accuracy with standard error, tokens, cost, latency and steps, by benchmark.

`wfdsl-eval --policy NAME ... --tasks NAME ... --pool POOL` writes a folder with results, summaries, plots and a
manifest. `compare`, `strategies` and `report` read such folders.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from wfdsl._version import __version__
from wfdsl.cli.output import USAGE, ended
from wfdsl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PROGRAM = "wfdsl-eval"
COMMANDS = {
    "compare": "compare the policies of one or two evaluations, task by task",
    "strategies": "show what the workflows of an evaluation look like",
    "report": "make the summaries and plots of an evaluation again",
}
EXIT_CODES = """\
commands: wfdsl-eval compare DIR [DIR], wfdsl-eval strategies DIR, wfdsl-eval report DIR

exit codes: 0 fine, 1 invalid workflow, 2 usage or unreadable input, 3 runs failed, 4 budget spent, 130 interrupted"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return ended(PROGRAM, lambda: _execute(arguments))


def _execute(arguments: list[str]) -> int:
    command = arguments[0] if arguments and arguments[0] in COMMANDS else None
    parser = _parser(command)
    if not arguments:
        parser.print_help(sys.stderr)
        return USAGE
    if command is None and not arguments[0].startswith("-"):
        raise UsageError(f"there is no command {arguments[0]!r}: {', '.join(COMMANDS)}, or options for an evaluation")
    module = import_module("wfdsl_rl.cli.eval_reports" if command else "wfdsl_rl.cli.eval_run")
    parse: Callable[[Sequence[str]], argparse.Namespace] = parser.parse_args
    if command:
        getattr(module, f"configure_{command}")(parser)
        return int(getattr(module, f"execute_{command}")(parse(arguments[1:])))
    module.configure(parser)
    return int(module.execute(arguments, parse))


def _parser(command: str | None) -> argparse.ArgumentParser:
    if command:
        return argparse.ArgumentParser(prog=f"{PROGRAM} {command}", description=COMMANDS[command])
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} --policy NAME ... --tasks NAME ... --pool POOL [OPTION]...",
        description=__doc__,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
