"""The reference of the command line, from its parsers."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import TYPE_CHECKING

from wfdsl.cli.main import COMMANDS, EXIT_CODES
from wfdsl.cli.options import complete, operand, usage_of
from wfdsl_rl.cli import data, reward, train
from wfdsl_rl.cli import eval as eval_
from wfdsl_rl.cli.eval import COMMANDS as EVAL_COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator


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


def reward_options() -> str:
    """The sub-commands of `wfdsl-reward`."""
    return "\n\n".join(_parts(reward._parser()))


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
    complete(parser, module.EXAMPLES)
    return "\n\n".join([f"## wfdsl {name}", *_parts(parser)])


def _parts(parser: argparse.ArgumentParser) -> Iterator[str]:
    if parser.description:
        yield parser.description.strip()
    yield f"```text\n{usage_of(parser)}\n```"
    for found in parser._action_groups:
        rows = [_row(action) for action in found._group_actions if _is_shown(action)]
        if rows:
            title = (
                "" if found.title in ("options", "positional arguments") else f"{str(found.title).capitalize()}:\n\n"
            )
            yield title + "\n".join(["| argument | meaning |", "|---|---|", *rows])
    for part in filter(None, (parser.epilog or "").split("\n\n")):
        yield _example_block(part) if part.startswith("examples:") else part
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield "\n\n".join([f"### {parser.prog} {name}", *_parts(inner)])


def _is_shown(action: argparse.Action) -> bool:
    return not isinstance(action, argparse._HelpAction | argparse._SubParsersAction | argparse._VersionAction)


def _example_block(text: str) -> str:
    commands = "\n".join(line.strip() for line in text.splitlines()[1:])
    return f"```text\n{commands}\n```"


def _row(action: argparse.Action) -> str:
    if not action.option_strings:
        written = f"`{operand(action)}`"
    else:
        several = " ".join(action.metavar) if isinstance(action.metavar, tuple) else action.metavar
        value = "" if action.nargs == 0 else f" {several or _choices(action) or action.dest.upper()}"
        written = ", ".join(f"`{option}{value}`" for option in action.option_strings)
    help_ = (action.help or "") % {**vars(action), "prog": ""}
    required = "; required" if action.option_strings and action.required else ""
    return f"| {written.replace('|', chr(92) + '|')} | {help_.replace('|', chr(92) + '|')}{required} |"


def _choices(action: argparse.Action) -> str:
    return "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
