"""Command line options: flags made of the configuration classes, `--config`, `--set` and `--pool`.

Each flag stands for a key of the configuration file, such as `--max-rounds` for `conductor.max_rounds`. A flag
overrides `--set`, which overrides the file, which overrides the default. The namespace has the flags that were given,
by their keys, and no others; a command reads the configuration only when it needs it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from wfdsl.cli.display.streams import terminal_width
from wfdsl.cli.output import USAGE, print_now
from wfdsl.errors import UsageError

if TYPE_CHECKING:  # start-up time: `wfdsl --help` imports this module
    from wfdsl.experiment import Experiment
    from wfdsl.settings import Option
    from wfdsl.workers.pool import Pool


def _value_of(option: Option, text: str) -> Any:
    """The value of a flag, for argparse's `type`."""
    try:
        return option.read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def argument(kind: type, *, least: float) -> Callable[[str], Any]:
    """What reads an argument that is a number from `least` upwards."""

    def parse(text: str) -> Any:
        from wfdsl.settings import Option

        return _value_of(Option("", kind, limits={"ge": least}), text)

    return parse


count = argument(int, least=1)
"""An argument that is a whole number from 1."""


UNKNOWN = "unrecognized arguments: "
"""How argparse begins to say so."""
_POOL = "pool.use"
"""The key of `--pool`."""
INPUT, WORKERS, OUTPUT = "input", "workers and configuration", "output"
"""The groups of options that most commands have, in `--help`."""


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments, instead of printing the usage."""

    latest: argparse.ArgumentParser
    """The parser that was used last: of the command or action that is called, which leaves unknown arguments over."""

    def __init__(self, **options: Any) -> None:
        width = terminal_width() - 2  # as argparse says, which imports shutil for it
        super().__init__(formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=width), **options)

    def parse_known_args(self, *given: Any, **options: Any) -> tuple[Any, list[str]]:
        """Parse, and be known as the latest parser."""
        Parser.latest = self
        return super().parse_known_args(*given, **options)

    def error(self, message: str) -> NoReturn:
        """End with what is wrong."""
        from wfdsl.settings import closest

        own = Parser.latest
        unknown = message.removeprefix(UNKNOWN)
        known = [option for action in own._actions for option in action.option_strings if option != "--help"]
        near = closest(unknown.split()[0].partition("=")[0], known) if unknown != message else None
        hint = f": did you mean `{near}`?" if near else f"; see `{own.prog} --help`"
        self.exit(USAGE, f"{own.prog}: {message}{hint}\n")


def answer_tab(parser_of: Callable[[list[str]], argparse.ArgumentParser]) -> None:
    """Print how the word at the cursor may go on, and end; nothing if no shell asks. `parser_of` takes the whole words
    before it.
    """
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete  # an optional package, which has asked

        line = os.environ["COMP_LINE"].encode()[: int(os.environ["COMP_POINT"])].decode(errors="ignore")
        argcomplete.autocomplete(parser_of(line.rpartition(" ")[0].split()[1:]))


def complete_pools(action: argparse.Action) -> None:
    """Let a shell complete the names of pools, and files."""

    def names(prefix: str, **_: Any) -> list[str]:
        from pathlib import Path

        from wfdsl.workers.pool import pool_names

        return [*pool_names(), *map(str, Path().glob(f"{prefix}*.toml"))]

    action.completer = names  # type: ignore[attr-defined]


def complete_runs(action: argparse.Action) -> None:
    """Let a shell complete the ids of runs."""

    def names(**_: Any) -> list[str]:
        from wfdsl.interpreter.journal_file import default_path
        from wfdsl.interpreter.journal_reading import summaries

        return ["last", *(run.id for run in (summaries(default_path()) if default_path().exists() else []))]

    action.completer = names  # type: ignore[attr-defined]


def group(parser: argparse.ArgumentParser, title: str) -> argparse._ArgumentGroup:
    """A group of options in `--help`; commands and the functions below add to the same ones."""
    known = {found.title: found for found in parser._action_groups}
    if title not in known:
        first = () if INPUT in known else (INPUT, WORKERS, OUTPUT)
        known |= {each: parser.add_argument_group(each) for each in dict.fromkeys((*first, title))}
    return known[title]


def add_action(actions: Any, name: str, act: Callable[..., int]) -> argparse.ArgumentParser:
    """Add an action of a command: `args.act` does it, and its docstring says what it does."""
    from inspect import cleandoc

    about = cleandoc(act.__doc__ or "")
    first = about.partition("\n")[0].rstrip(".")
    added: argparse.ArgumentParser = actions.add_parser(name, help=first[:1].lower() + first[1:], description=about)
    added.set_defaults(act=act)
    return added


def complete(parser: argparse.ArgumentParser, examples: Sequence[str], *notes: str) -> None:
    """Give a parser that has all its arguments a short usage, and examples below its options; its actions too."""
    parser.usage = usage_of(parser)
    shown = ["\n  ".join(["examples:", *examples])] if examples else []
    parser.epilog = "\n\n".join([*filter(None, [parser.epilog]), *shown, *notes])
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                complete(inner, ())


def usage_of(parser: argparse.ArgumentParser) -> str:
    """How a command is called, in one line."""
    named = (argparse._HelpAction, argparse._VersionAction)
    actions = [action for action in parser._actions if not isinstance(action, named)]
    options = ["[OPTION]..."] if any(action.option_strings for action in actions) else []
    return " ".join([parser.prog, *options, *(operand(each) for each in actions if not each.option_strings)])


def operand(action: argparse.Action) -> str:
    """A positional argument, as it is written in the usage."""
    if isinstance(action, argparse._SubParsersAction):
        return "ACTION ..." if action.required else "[ACTION ...]"
    name = str(action.metavar or action.dest)
    return {"?": f"[{name}]", "*": f"[{name}...]", "+": f"{name}..."}.get(str(action.nargs), name)


def add_options(
    parser: argparse.ArgumentParser,
    table: type,
    name: str,
    *,
    only: Collection[str] | None = None,
    without: Collection[str] = (),
    title: str | None = None,
    **defaults: Any,
) -> None:
    """Add the flags of a table, which `values_of` and `experiment_of` read.

    Args:
        parser: What reads them.
        table: The class.
        name: What the table is called in the configuration file.
        only: The options that the command takes; all of them by default.
        without: Options that the command does not take.
        title: The group in `--help`, for a table that is not in the configuration file.
        defaults: The command's own defaults, for `--help`.
    """
    from wfdsl.settings import options_of

    keys = group(parser, title or f"keys of [{name}] in a configuration file")
    for option in options_of(table):
        chosen = (only is None or option.name in only) and option.name not in without
        if chosen and option.flag is not None:
            more = _flag_arguments(option, defaults.get(option.name, option.default))
            keys.add_argument(option.flag, dest=f"{name}.{option.name}", default=argparse.SUPPRESS, **more)


def add_config_options(parser: argparse.ArgumentParser) -> None:
    """Add `--config` and `--set`."""
    workers = group(parser, WORKERS)
    workers.add_argument("--config", metavar="FILE", help="a TOML file with [pool], [conductor], [budget] and [run]")
    about = "a parameter of a .wf file, or a key of --config, such as budget.usd=0.5; may be repeated"
    workers.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=about)


def add_protocol_option(parser: argparse.ArgumentParser) -> None:
    """Add `--protocol`."""
    group(parser, WORKERS).add_argument(
        "--protocol",
        choices=["paper"],
        help="paper: Conductors as in the paper's main results, which is --access binary --profile strict --max-rounds "
        "0, conductor.reasks=0 and run.question_for=first; --set and other flags override these",
    )


def add_pool_option(parser: argparse.ArgumentParser, help: str) -> None:  # noqa: A002  (argparse's word)
    """Add `--pool`."""
    action = group(parser, WORKERS).add_argument(
        "--pool",
        dest=_POOL,
        default=argparse.SUPPRESS,
        metavar="NAME|FILE|MODELS",
        help=f"{help}; models, as in openai:A,openai:B; or your own code, as in mine.py:pool",
    )
    complete_pools(action)


def add_trace_options(parser: argparse.ArgumentParser) -> None:
    """Add what is printed or sent about a run, besides its answer."""
    output = group(parser, OUTPUT)
    output.add_argument("--quiet", action="store_true", help="print no progress and no notes: only answers and errors")
    output.add_argument("--json", action="store_true", help="print the whole trace as JSON instead of the answer")
    output.add_argument(
        "--otel", action="store_true", help="send OpenTelemetry spans, as its environment variables say"
    )


def parameters_of(args: argparse.Namespace) -> dict[str, str]:
    """The parameters of a `.wf` file that `--set` gives: names without a dot.

    Raises:
        UsageError: one is not of the form NAME=VALUE, or is given twice.
    """
    return {name: value for name, value in _assignments(args).items() if "." not in name}


def require_no_parameters(args: argparse.Namespace, why: str) -> None:
    """Refuse parameters if there is no `.wf` file to take them.

    Raises:
        UsageError: there are some.
    """
    for name in parameters_of(args):
        raise UsageError(f"--set {name}: {why}; a key of a configuration is written TABLE.KEY=VALUE")


def experiment_of(args: argparse.Namespace, **defaults: Mapping[str, Any]) -> Experiment:
    """What is run and how, as flags, `--set` and `--config` say; `defaults` are the command's own, by table.

    Raises:
        UsageError: one of them cannot be used.
    """
    found = _read(args, defaults)
    if args.config is None and _POOL in args and not getattr(args, "quiet", False):
        _print_unread_tables(getattr(args, _POOL))
    return found


def load_pool(args: argparse.Namespace) -> Pool | None:
    """The pool that flags, `--set` or `--config` name, or None; the only part that a check needs.

    Raises:
        UsageError: there is no such pool, its file cannot be used, or its size is given as well.
    """
    asked = args.config is not None or _POOL in args or any("." in name for name in _assignments(args))
    pool = _read(args, {}).pool if asked else None
    if pool is not None and args.pool_size is not None:
        raise UsageError("--pool and --pool-size exclude each other: a pool has a size")
    return pool


def values_of(args: argparse.Namespace, table: str) -> dict[str, Any]:
    """The values of the flags that were given for a table, by its keys; for one that is not in a file."""
    inside = f"{table}."
    given = {key.removeprefix(inside): value for key, value in vars(args).items() if key.startswith(inside)}
    return {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}


def some_text(text: str) -> str:
    """An argument that must not be blank: a blank one is most often a shell variable that is not set."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"must not be blank (got {text!r})")
    return text


def _flag_arguments(option: Option, default: Any) -> dict[str, Any]:
    """What argparse is told of an option's flag, apart from where its value goes."""
    from dataclasses import MISSING

    if option.type is bool:
        text = f"do not {option.help}" if default is True else option.help
        return {"help": _escaped(text), "action": "store_const", "const": not default}
    shown = option.default_text or ("" if default in (None, (), MISSING) else str(default))
    text = _escaped(f"{option.help}{f' (default: {shown})' if shown else ''}")
    if option.choices:
        return {"choices": option.choices, "help": text}
    action = "store" if option.item is None else "append"
    return {"action": action, "type": partial(_value_of, option), "metavar": option.placeholder, "help": text}


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _read(args: argparse.Namespace, defaults: Mapping[str, Mapping[str, Any]]) -> Experiment:
    from wfdsl.experiment import CONFIGS, PROTOCOLS, Setting, read_experiment
    from wfdsl.settings import options_of

    protocol = PROTOCOLS.get(getattr(args, "protocol", None) or "", {})
    chosen = [Setting(key, value, f"--protocol {args.protocol}") for key, value in protocol.items()]
    sets = [Setting.parse(f"{name}={value}") for name, value in _assignments(args).items() if "." in name]
    known = {f"{name}.{each.name}": str(each.flag) for name, table in CONFIGS.items() for each in options_of(table)}
    known[_POOL] = "--pool"
    flags = [Setting(key, value, known[key]) for key, value in vars(args).items() if key in known]
    return read_experiment(args.config, [*chosen, *sets, *flags], defaults=defaults)


def _print_unread_tables(pool: str) -> None:
    """`--pool` takes the workers of a file and nothing else: a budget in the same file must not seem to hold."""
    from pathlib import Path

    from wfdsl.settings import read_toml_file
    from wfdsl.workers.pool import names_a_file

    tables = read_toml_file(Path(pool), "pool file") if names_a_file(pool) else {}
    if others := ", ".join(f"[{name}]" for name in tables if name != "pool"):
        print_now(f"note: --pool takes only the workers of {pool}: --config {pool} also takes {others}")


def _assignments(args: argparse.Namespace) -> dict[str, str]:
    found: dict[str, str] = {}
    for assignment in args.set:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set {assignment!r}: write NAME=VALUE")
        if name.strip() in found:
            raise UsageError(f"--set {name.strip()} is given twice")
        found[name.strip()] = value
    return found
