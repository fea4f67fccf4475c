"""Where options, `--set` and `--config` come together: each option stands for a key of the configuration file.

An option goes before `--set`, that before the file, and the file before the default. Which options were given is kept
in the namespace as they are read; nothing is imported for them until a command asks for its experiment.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from wfdsl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl.experiment.experiment import Experiment
    from wfdsl.workers.pool import Pool


class _Keep(argparse.Action):
    """Keeps an option's value under the key that it stands for; one that may be repeated adds to a list."""

    def __init__(self, option_strings: Sequence[str], dest: str, *, repeated: bool = False, **more: Any) -> None:
        super().__init__(option_strings, dest, default=argparse.SUPPRESS, **more)
        self._repeated = repeated

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002  (argparse passes it)
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Take in an option."""
        value = self.const if self.nargs == 0 else values
        kept = dict(getattr(namespace, "kept", {}))
        earlier = kept[self.dest][0] if self._repeated and self.dest in kept else []
        kept[self.dest] = ([*earlier, value] if self._repeated else value, option_string)
        namespace.kept = kept


def add_setting(parser: argparse.ArgumentParser, option: str, key: str, **more: Any) -> None:
    """Add an option that stands for a key, such as `conductor.rounds`."""
    parser.add_argument(option, dest=key, action=_Keep, **more)


def add_flag(parser: argparse.ArgumentParser, option: str, key: str, *, help: str, value: bool = True) -> None:  # noqa: A002  (argparse's word)
    """Add an option without a value that sets a key."""
    parser.add_argument(option, dest=key, action=_Keep, nargs=0, const=value, help=help)


def add_config_options(parser: argparse.ArgumentParser, *, parameters: bool = True) -> None:
    """Add `--config` and `--set`; `parameters` are those of a `.wf` file, which `--set` sets too."""
    parser.add_argument("--config", metavar="FILE", help="a TOML file with [pool], [conductor], [budget] and [run]")
    also = "a parameter of a .wf file, or " if parameters else ""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"{also}a key of --config, such as budget.usd=0.5; may be repeated",
    )


def add_pool_option(parser: argparse.ArgumentParser, help: str) -> None:  # noqa: A002  (argparse's word)
    """Add `--pool`."""
    add_setting(parser, "--pool", "pool.use", metavar="NAME|FILE", help=help)


def parameters_of(args: argparse.Namespace) -> dict[str, str]:
    """The parameters of a `.wf` file that `--set` gives: names without a dot.

    Raises:
        UsageError: one is not of the form NAME=VALUE, or is given twice.
    """
    return {name: value for name, value in _assignments(args).items() if "." not in name}


def require_no_parameters(args: argparse.Namespace, why: str) -> None:
    """Refuse parameters where there is no `.wf` file to take them.

    Raises:
        UsageError: there are some.
    """
    for name in parameters_of(args):
        raise UsageError(f"--set {name}: {why}; a key of a configuration is written TABLE.KEY=VALUE")


def experiment_of(args: argparse.Namespace) -> Experiment:
    """What is run and how, as options, `--set` and `--config` say.

    Raises:
        UsageError: one of them cannot be used.
    """
    found = _read(args)
    if args.config is None and "pool.use" in _kept(args):
        _print_unread_tables(_kept(args)["pool.use"][0])
    return found


def pool_of(args: argparse.Namespace) -> Pool | None:
    """The pool that options, `--set` or `--config` name, or None; the only part that a check needs.

    Raises:
        UsageError: it cannot be used.
    """
    asked = args.config is not None or "pool.use" in _kept(args) or any("." in name for name in _assignments(args))
    return _read(args).pool if asked else None


def _read(args: argparse.Namespace) -> Experiment:
    from wfdsl.experiment.experiment import read_experiment
    from wfdsl.experiment.setting import Setting

    sets = [Setting.parse(f"{name}={value}") for name, value in _assignments(args).items() if "." in name]
    options = [Setting(key, value, option) for key, (value, option) in _kept(args).items()]
    return read_experiment(args.config, [*sets, *options])


def _print_unread_tables(pool: str) -> None:
    """`--pool` takes the workers of a file and nothing else: a budget that is there must not seem to hold."""
    from pathlib import Path

    from wfdsl.toml_file import read_toml_file
    from wfdsl.workers.pool_file import names_a_file

    others = (
        [f"[{name}]" for name in read_toml_file(Path(pool), "pool file") if name != "pool"]
        if names_a_file(pool)
        else []
    )
    if others:
        print(
            f"note: --pool takes only the workers of {pool}: --config {pool} also takes {', '.join(others)}",
            file=sys.stderr,
        )


def given(args: argparse.Namespace, table: str) -> dict[str, str]:
    """The options that were given for keys of a table: the key, without its table, and the option."""
    inside = f"{table}."
    return {key.removeprefix(inside): option for key, (_, option) in _kept(args).items() if key.startswith(inside)}


def _kept(args: argparse.Namespace) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = getattr(args, "kept", {})
    return found


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
