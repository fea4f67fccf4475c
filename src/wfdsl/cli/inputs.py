"""What commands read: workflow files and completions, with the options that say how, and pools."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

from wfdsl.api import MAX_CHARS, Checked, Form, analyze_text, form_of, read_stream, read_text, too_long
from wfdsl.cli.drawing import colour_for, draw
from wfdsl.errors import UsageError
from wfdsl.source import Source

if TYPE_CHECKING:
    import argparse
    from io import BufferedIOBase

    from wfdsl.diagnostics.diagnostic import Diagnostic
    from wfdsl.syntax.completion import Profile

STDIN = "-"
_POOL_NEEDED = "pool-needed"
_READ_AS = {"completion": "a completion in the {} profile", "wf": "a workflow file"}
_MOST_DIGITS = 18


def add_input_options(parser: argparse.ArgumentParser, *, profile: Profile = "lenient") -> None:
    """Add the options that say how a workflow is read."""
    parser.add_argument("--form", choices=["completion", "wf"], help="which form it is in; default: by the file's name")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of a .wf file; may be repeated"
    )
    parser.add_argument("--pool", metavar="NAME|FILE", help="the pool of workers: a shipped one, or a TOML file")
    parser.add_argument("--pool-size", type=count, metavar="N", help="the number of workers, in place of a pool")
    parser.add_argument("--max-steps", type=count, metavar="N", help="the most steps; default: 5 for completions")
    parser.add_argument(
        "--profile",
        choices=["strict", "lenient"],
        default=profile,
        help="whether a repair of a completion is an error or a warning (default: %(default)s)",
    )
    parser.add_argument(
        "--recursion", action="store_true", help="read as round 2 or later: three empty lists are valid"
    )
    parser.add_argument(
        "--max-chars", type=count, default=MAX_CHARS, metavar="N", help="the longest text that is read (default: 1 MiB)"
    )


def count(text: str) -> int:
    """An argument that is a whole number from 1."""
    return _whole_number(text, least=1)


def count_or_none(text: str) -> int:
    """An argument that is a whole number from 0."""
    return _whole_number(text, least=0)


def _whole_number(text: str, *, least: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and int(text) >= least):
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"{text!r} is not a whole number from {least}")
    return int(text)


def analyze_input(path: str, args: argparse.Namespace, *, default_pool: str | None = None) -> Checked:
    """Read and check a file, or standard input for "-".

    Raises:
        UsageError: it cannot be read, or an option does not fit it.
    """
    form: Form = args.form or ("completion" if path == STDIN else form_of(path))
    name = "standard input" if path == STDIN else path
    pool = load_pool(args, default=default_pool)
    text = read_input(path, args)
    if text is None:
        return Checked(Source("", name), None, (too_long(args.max_chars),))
    remark(f"{name}: {len(text):,} characters, read as {_READ_AS[form].format(args.profile)}")
    return analyze_text(
        text,
        form=form,
        pool=pool,
        params=parameters(args),
        pool_size=args.pool_size,
        max_steps=args.max_steps,
        profile=args.profile,
        recursion=args.recursion,
        max_chars=args.max_chars,
        name=name,
    )


def read_input(path: str, args: argparse.Namespace) -> str | None:
    """The text of a file, or of standard input for "-"; None if it is longer than the limit.

    Raises:
        UsageError: it cannot be read.
    """
    if path == STDIN:
        return read_stream(cast("BufferedIOBase", sys.stdin.buffer), name="standard input", max_chars=args.max_chars)
    return read_text(path, max_chars=args.max_chars)


def remark(message: str) -> None:
    """Log something for `-v`; only that imports `logging`, which costs start-up time."""
    if "logging" in sys.modules:
        import logging

        logging.getLogger("wfdsl").info(message)


def read_checked(path: str, args: argparse.Namespace, *, default_pool: str | None = None) -> Checked:
    """Read a workflow that a command goes on with; warnings and notes go to standard error.

    Raises:
        UsageError: it cannot be read.
        WorkflowError: it is not valid.
    """
    checked = analyze_input(path, args, default_pool=default_pool)
    if checked.ok:
        remarks = [found for found in checked.diagnostics if found.code != _POOL_NEEDED]
        print_diagnostics(remarks, checked.source)
        _print_unresolved(checked)
    checked.raise_for_errors()
    if checked.workflow is None:
        raise UsageError(f"{checked.source.name}: holds three empty lists, which is no workflow by itself")
    return checked


def _print_unresolved(checked: Checked) -> None:
    """One line for all workers that only a pool knows; `wfdsl check` shows where they stand."""
    unresolved = checked.workflow.unresolved if checked.workflow is not None else ()
    if unresolved:
        names = ", ".join(f"`{name}`" for name in unresolved)
        print(f"note[{_POOL_NEEDED}]: only a pool knows {names}: `--pool NAME|FILE` gives one", file=sys.stderr)


def print_diagnostics(found: list[Diagnostic], source: Source) -> None:
    """Diagnostics as a person reads them, on standard error."""
    for diagnostic in found:
        print(draw(diagnostic, source, colour=colour_for(sys.stderr)), file=sys.stderr)


def parameters(args: argparse.Namespace) -> dict[str, str]:
    """The parameters given with `--set`.

    Raises:
        UsageError: one is not of the form NAME=VALUE, or is given twice.
    """
    given: dict[str, str] = {}
    for assignment in args.set:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set {assignment!r}: write NAME=VALUE")
        if name.strip() in given:
            raise UsageError(f"--set {name.strip()} is given twice")
        given[name.strip()] = value
    return given


def load_pool(args: argparse.Namespace, *, default: str | None = None) -> Any:
    """The pool that `--pool` names, or None.

    Raises:
        UsageError: there is none of that name, or its file cannot be used, or its size is given as well.
    """
    name = args.pool or default
    if name is None:
        return None
    if args.pool_size is not None:
        raise UsageError("--pool and --pool-size exclude each other: a pool has a size")
    from wfdsl.pool import Pool

    return Pool.load(name)
