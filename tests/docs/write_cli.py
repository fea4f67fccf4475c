"""The reference of the command line, from its parsers."""

from __future__ import annotations

import argparse
import re
from importlib import import_module
from typing import TYPE_CHECKING

from wfdsl.cli.main import COMMANDS, EXIT_CODES
from wfdsl_rl.cli import data, train
from wfdsl_rl.cli import eval as eval_
from wfdsl_rl.cli.eval import COMMANDS as EVAL_COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXAMPLE = re.compile(r"wfdsl\S* .* {2,}\S")


def options() -> str:
    """A section for each command with all its arguments."""
    return "\n\n".join(_command(name) for name in COMMANDS)


def data_options() -> str:
    """The sub-commands of `wfdsl-data`."""
    return "\n\n".join(_parts(data._parser()))


def eval_options() -> str:
    """The options of `wfdsl-eval`, and its sub-commands."""
    sections = [*_parts(eval_._parser(None))]
    for name in EVAL_COMMANDS:
        inner = eval_._parser(name)
        sections += [f"### {inner.prog}", *_parts(inner)]
    return "\n\n".join(sections)


def train_options() -> str:
    """The options of `wfdsl-train`."""
    export = train._export_parser()
    return "\n\n".join([*_parts(train._parser()), f"### {export.prog}", *_parts(export)])


def exit_codes() -> str:
    """The exit codes in a table."""
    listed = EXIT_CODES.partition(":")[2].replace("\n", " ").split(",")
    rows = [item.strip().partition(" ") for item in listed]
    return "\n".join(
        ["| exit code | meaning |", "|---|---|", *(f"| {code} | {meaning} |" for code, _, meaning in rows)]
    )


def _command(name: str) -> str:
    module = import_module(f"wfdsl.cli.{name}")
    parser = argparse.ArgumentParser(prog=f"wfdsl {name}", description=module.__doc__)
    module.configure(parser)
    return "\n\n".join([f"## wfdsl {name}", *_parts(parser)])


def _parts(parser: argparse.ArgumentParser) -> Iterator[str]:
    if parser.description:
        yield _described(parser.description)
    yield f"```text\n{_usage(parser)}\n```"
    rows = [_row(action) for action in _arguments(parser)]
    if rows:
        yield "\n".join(["| argument | meaning |", "|---|---|", *rows])
    if parser.epilog:
        yield parser.epilog.strip()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield "\n\n".join([f"### {parser.prog} {name}", *_parts(inner)])


def _described(description: str) -> str:
    """A description's paragraphs; one that is a list of commands as code."""
    paragraphs = description.strip().split("\n\n")
    return "\n\n".join(
        f"```text\n{each}\n```" if all(map(_EXAMPLE.match, each.splitlines())) else each for each in paragraphs
    )


def _arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Positional arguments first, then options in the order in which they are declared."""
    shown = [
        found
        for found in parser._actions
        if not isinstance(found, argparse._HelpAction | argparse._SubParsersAction | argparse._VersionAction)
    ]
    return sorted(shown, key=lambda action: bool(action.option_strings))


def _usage(parser: argparse.ArgumentParser) -> str:
    """One line; argparse's own differs between versions of Python."""
    words = [parser.prog]
    arguments = _arguments(parser)
    if any(action.option_strings for action in arguments):
        words.append("[OPTION]...")
    words += [_operand(action) for action in arguments if not action.option_strings]
    words += ["ACTION ..." for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return " ".join(words)


def _operand(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    return {None: name, "?": f"[{name}]", "*": f"[{name}...]", "+": f"{name}..."}[
        str(action.nargs) if action.nargs else None
    ]


def _row(action: argparse.Action) -> str:
    if not action.option_strings:
        written = f"`{_operand(action)}`"
    else:
        several = " ".join(action.metavar) if isinstance(action.metavar, tuple) else action.metavar
        value = "" if action.nargs == 0 else f" {several or _choices(action) or action.dest.upper()}"
        written = ", ".join(f"`{option}{value}`" for option in action.option_strings)
    help_ = (action.help or "") % {**vars(action), "prog": ""}
    required = "; required" if action.option_strings and action.required else ""
    return f"| {written.replace('|', chr(92) + '|')} | {help_.replace('|', chr(92) + '|')}{required} |"


def _choices(action: argparse.Action) -> str:
    return "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
