"""The `wfdsl` command: its sub-commands.

A sub-command is a module of this package with `configure(parser)` and `execute(args) -> int`, unless all of it are
actions (`options.add_action`). Only the one that is asked for is imported, so that start-up stays short.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from wfdsl._version import __version__
from wfdsl.cli.options import UNKNOWN, Parser, answer_tab, complete
from wfdsl.cli.output import USAGE, ended, reported
from wfdsl.errors import UsageError

COMMANDS = {
    "check": "check workflow files and completions, one by one or in bulk; explain codes; print the grammar",
    "fmt": "print in the canonical form, or convert between the two forms",
    "show": "draw a workflow or a run: in the terminal, or as SVG, PNG, PDF, HTML or Mermaid",
    "run": "run a workflow on a question",
    "solve": "answer a question: a Conductor writes the workflow, and may revise it",
    "serve": "answer over HTTP, as a model behind an API of OpenAI's shape",
    "view": "show runs in a browser",
    "runs": "list runs, show, resume, export and remove them, and ask a step again",
    "pools": "list, show, check and write pools of workers",
    "eval": "evaluate policies on tasks, and compare them",
    "data": "look at tasks, convert, check and select them; few-shot examples",
    "mcp": "serve workflows to a coding agent over the Model Context Protocol",
}
EXIT_CODES = """\
exit codes: 0 fine, 1 invalid workflow, 2 usage or unreadable input, 3 run failed,
4 budget spent, 130 interrupted"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    return ended("wfdsl", lambda: _run(list(sys.argv[1:] if argv is None else argv)))


def _run(arguments: list[str]) -> int:
    answer_tab(_parser)
    args = parsed(arguments)
    if args.command is None:
        _parser([]).print_help(sys.stderr)
        return USAGE
    execute = getattr(_module(args.command, arguments), "execute", None) or args.act
    return reported(f"wfdsl {args.command}", lambda: int(execute(args)))


def parsed(arguments: list[str]) -> argparse.Namespace:
    """The options of a command line; `words` is what follows the command."""
    parser = _parser(arguments)
    args = argparse.Namespace()
    _, left = parser.parse_known_args(arguments, args)
    if left:
        _take_question(args, left, parser)
    args.words = arguments[arguments.index(args.command) + 1 :] if args.command else []
    return args


def _module(command: str, arguments: Sequence[str]) -> ModuleType:
    """The module of a command; what `wfdsl serve --score` serves is found by an entry point."""
    if command == "serve" and "--score" in arguments:
        from importlib.metadata import entry_points

        [found] = entry_points(group="wfdsl.serve", name="score")
        module: ModuleType = found.load()
        return module
    return import_module(f"wfdsl.cli.{command}")


def _take_question(args: argparse.Namespace, left: list[str], parser: Parser) -> None:
    """Take the question of `run FILE --option QUESTION`: argparse loses an argument that follows an option."""
    *before, last = left
    if getattr(args, "asked", "") is None and (before == ["--"] or (not before and not last.startswith("-"))):
        args.asked = last
    else:
        parser.error(f"{UNKNOWN}{' '.join(left)}")


def _parser(arguments: list[str]) -> Parser:
    """The parser, of which only the command that is called has its arguments."""
    parser = Parser(
        prog="wfdsl", description="The workflow language and interpreter for LLM Conductors.", epilog=EXIT_CODES
    )
    parser.add_argument("--version", action="version", version=f"wfdsl {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command")
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    if chosen is not None and chosen not in COMMANDS:
        from wfdsl.settings import did_you_mean  # start-up time

        raise UsageError(f"there is no command {chosen!r}. {did_you_mean(chosen, COMMANDS)}")
    for name, summary in COMMANDS.items():
        if name == chosen:
            module = _module(name, arguments)
            own = commands.add_parser(name, help=summary, description=module.__doc__)
            module.configure(own)
            complete(own, module.EXAMPLES)
        else:
            commands.add_parser(name, help=summary, add_help=False)
    return parser
