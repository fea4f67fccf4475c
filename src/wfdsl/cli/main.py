"""The `wfdsl` command: its sub-commands, and the exit code that each kind of error has.

A sub-command is a module of this package with `configure(parser)` and `execute(args) -> int`. Only the one that is
asked for is imported, so that start-up stays short.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from wfdsl._version import __version__
from wfdsl.errors import BudgetExhausted, UsageError, WfdslError, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "check": "check workflow files and completions, one by one or in bulk",
    "fmt": "print in the canonical form, or convert between the two forms",
    "show": "draw a workflow: in the terminal, or as Mermaid, DOT, SVG or JSON",
    "run": "run a workflow on a question",
    "resume": "go on with a run that was interrupted",
    "runs": "list, remove and export runs",
    "trace": "show all that happened in a run",
    "pools": "list, show, check and write pools of workers",
    "explain": "say what a diagnostic's code means and how to mend it",
}
EXIT_CODES = """\
exit codes: 0 fine, 1 invalid workflow, 2 usage or unreadable input, 3 run failed, 4 budget spent, 130 interrupted"""

OK, INVALID, USAGE, FAILED, SPENT, INTERRUPTED = 0, 1, 2, 3, 4, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser, chosen = _parser(arguments)
    args = parser.parse_args(arguments)
    if chosen is None:
        parser.print_help()
        return USAGE
    logging.getLogger("wfdsl").addHandler(logging.NullHandler())
    if args.verbose:
        logging.basicConfig(level=logging.DEBUG if args.verbose > 1 else logging.INFO, format="%(name)s: %(message)s")
    return _execute(chosen, args)


def _execute(command: str, args: argparse.Namespace) -> int:
    try:
        code: int = import_module(f"wfdsl.cli.{command}").execute(args)
        sys.stdout.flush()
    except WorkflowError as error:
        return _report(str(error), INVALID)
    except UsageError as error:
        return _report(f"wfdsl {command}: {error}", USAGE)
    except BudgetExhausted as error:
        return _report(f"wfdsl {command}: {error}", SPENT)
    except WfdslError as error:
        return _report(f"wfdsl {command}: {error}", FAILED)
    except KeyboardInterrupt:
        return _report(f"wfdsl {command}: interrupted", INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has seen enough (`| head`); Python must not complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return code


def _report(message: str, code: int) -> int:
    sys.stdout.flush()
    print(message, file=sys.stderr)
    return code


def _parser(arguments: list[str]) -> tuple[argparse.ArgumentParser, str | None]:
    """The parser, of which only the command that is asked for has its arguments."""
    parser = argparse.ArgumentParser(
        prog="wfdsl", description="The workflow language and interpreter for LLM Conductors.", epilog=EXIT_CODES
    )
    parser.add_argument("--version", action="version", version=f"wfdsl {__version__}")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="say more; twice for debugging")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command")
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    for name, summary in COMMANDS.items():
        if name == chosen:
            module = import_module(f"wfdsl.cli.{name}")
            own = commands.add_parser(
                name, help=summary, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
            )
            own.add_argument("-v", "--verbose", action="count", default=0, help="say more; twice for debugging")
            module.configure(own)
        else:
            commands.add_parser(name, help=summary, add_help=False)
    return parser, chosen if chosen in COMMANDS else None
