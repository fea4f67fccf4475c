"""The reference of the command line, from its parsers."""

from __future__ import annotations

import argparse
from collections import Counter
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from wfdsl.cli.main import COMMANDS, EXIT_CODES
from wfdsl.cli.options import complete, operand, usage_of
from wfdsl.experiment import CONFIGS
from wfdsl.settings import options_of
from wfdsl_rl.cli import score, train

from .pages import table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


def options() -> str:
    """A section for each command with all its arguments."""
    found = [_command(f"wfdsl {name}", import_module(f"wfdsl.cli.{name}")) for name in COMMANDS]
    return "\n\n".join([*found, _command("wfdsl serve --score", score)])


def train_options() -> str:
    """The options of `wfdsl-train`."""
    export = train._export_parser()
    return "\n\n".join([*_parts(train._parser()), f"### {export.prog}", *_parts(export)])


def exit_codes() -> str:
    """The exit codes in a table."""
    listed = EXIT_CODES.partition(":")[2].replace("\n", " ").split(",")
    return table(["exit code", "meaning"], (item.strip().split(" ", 1) for item in listed))


def _command(name: str, module: ModuleType) -> str:
    parser = argparse.ArgumentParser(prog=name, description=module.__doc__)
    module.configure(parser)
    complete(parser, module.EXAMPLES)
    return "\n\n".join([f"## {name}", *_parts(parser)])


def common_options() -> str:
    """The options that several commands have, with the same meaning."""
    return table(_HEAD, _common().values())


_HEAD = ("argument", "meaning")
_SEVERAL = 3  # commands that have an option, from which on it is described once


@cache
def _common() -> dict[tuple[str, ...], tuple[str, str]]:
    """What several commands have, by how it is written, with its row."""
    rows = Counter(
        (tuple(action.option_strings), _row(action))
        for name in COMMANDS
        for parser in _with_subcommands(_parser_of(name))
        for action in parser._actions
        if action.option_strings and _is_shown(action) and not _is_key(action)
    )
    return {options: row for (options, row), count in rows.items() if count >= _SEVERAL}


def _is_key(action: argparse.Action) -> bool:
    """Whether an option sets a key of the configuration file, whose page describes it."""
    return any(_KEYS.get(option, "\0") in (action.help or "") for option in action.option_strings)


_KEYS = {field.flag: field.help for config in CONFIGS.values() for field in options_of(config)}


def _parser_of(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"wfdsl {name}")
    import_module(f"wfdsl.cli.{name}").configure(parser)
    return parser


def _with_subcommands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for inner in _subcommands(parser).values():
        yield from _with_subcommands(inner)


def _subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {name: inner for choices in found for name, inner in choices.items()}


def _parts(parser: argparse.ArgumentParser) -> Iterator[str]:
    if parser.description:
        yield parser.description.strip().partition("\n\n")[0]
    yield f"```text\n{usage_of(parser)}\n```"
    shown = [action for action in parser._actions if _is_shown(action)]
    keys = [action for action in shown if _is_key(action)]
    common = [action for action in shown if _common().get(tuple(action.option_strings)) == _row(action)]
    if own := [_row(action) for action in shown if action not in (*keys, *common)]:
        yield table(_HEAD, own)
    for title, actions in (("Common", common), ("Keys", keys)):
        if actions:
            yield f"{title}: {', '.join(f'`{action.option_strings[-1]}`' for action in actions)}."
    for name, inner in _subcommands(parser).items():
        yield "\n\n".join([f"### {parser.prog} {name}", *_parts(inner)])


def _is_shown(action: argparse.Action) -> bool:
    return not isinstance(action, argparse._HelpAction | argparse._SubParsersAction | argparse._VersionAction)


def _row(action: argparse.Action) -> tuple[str, str]:
    if not action.option_strings:
        written = f"`{operand(action)}`"
    else:
        several = " ".join(action.metavar) if isinstance(action.metavar, tuple) else action.metavar
        value = "" if action.nargs == 0 else f" {several or _choices(action) or action.dest.upper()}"
        written = ", ".join(f"`{option}{value}`" for option in action.option_strings)
    help_ = (action.help or "") % {**vars(action), "prog": ""}
    required = "; required" if action.option_strings and action.required else ""
    return written.replace("|", "\\|"), f"{help_}{required}".replace("|", "\\|")


def _choices(action: argparse.Action) -> str:
    return "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
