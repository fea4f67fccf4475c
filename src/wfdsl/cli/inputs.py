"""What commands read: workflow files, completions and pools, with the options for them; diagnostics on the terminal."""

from __future__ import annotations

import argparse
import re
import sys
from io import BufferedIOBase
from typing import TYPE_CHECKING, Any, TextIO, cast

from wfdsl.api import Checked, analyze, analyze_path, read_text, too_long
from wfdsl.cli.display.streams import painted, styled, visible, wants_colours
from wfdsl.cli.options import (
    INPUT,
    WORKERS,
    add_config_options,
    add_options,
    add_pool_option,
    count,
    group,
    parameters_of,
    some_text,
    values_of,
)
from wfdsl.errors import UsageError
from wfdsl.files import read_stream
from wfdsl.language.check import MAX_CHARS, CheckConfig, Profile
from wfdsl.language.diagnostics import Diagnostic, as_text
from wfdsl.language.source import Source
from wfdsl.language.workflow import Workflow

if TYPE_CHECKING:  # start-up time: only --pool needs it
    from wfdsl.workers.pool import Pool

STDIN = "-"
_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}
_CARETS = re.compile(r"^(\s*\| *)(\^+.*)$", re.MULTILINE)
_GUTTER = re.compile(r"^(\s*(?:-->|\d+ \||\|| = ))", re.MULTILINE)
_POOL_NEEDED = "pool-needed"


def add_input_options(parser: argparse.ArgumentParser, *, profile: Profile = "lenient", is_run: bool = False) -> None:
    """Add the options that say how a workflow is read; only a command that runs it needs workers."""
    group(parser, INPUT).add_argument(
        "--form", choices=["completion", "wf"], help="which form it is in; default: by the file's name"
    )
    add_config_options(parser)
    add_pool_option(parser, f"the workers: a shipped pool, or a TOML file{' (default: local)' if is_run else ''}")
    parser.set_defaults(pool_size=None)
    if not is_run:
        sized = "the number of workers, instead of a pool"
        group(parser, WORKERS).add_argument("--pool-size", type=count, metavar="N", help=sized)
    add_options(parser, CheckConfig, "check", title=INPUT, max_steps=None, profile=profile)
    parser.set_defaults(profile=profile)


def add_question_options(parser: argparse.ArgumentParser) -> None:
    """Add the two ways to give a question."""
    asked = group(parser, INPUT)
    asked.add_argument(
        "asked", nargs="?", type=some_text, metavar="QUESTION", help="the question to answer; - reads standard input"
    )
    asked.add_argument("-q", dest="question", type=some_text, metavar="QUESTION", help="the question, as an option")


def question_of(args: argparse.Namespace) -> str:
    """The question that is given.

    Raises:
        UsageError: there is none, or there are two, or it cannot be read.
    """
    given = [text for text in (args.asked, args.question) if text is not None]
    if len(given) != 1:
        what = "give a QUESTION" if not given else f"there are two questions, {given[0]!r} and {given[1]!r}: give one"
        raise UsageError(f"{what}; - reads it from standard input")
    if given[0] != STDIN:
        return str(given[0])
    if getattr(args, "file", None) == STDIN:
        raise UsageError("standard input cannot be both the workflow and the question")
    text = read_input(STDIN)
    if text is None:
        raise UsageError(f"standard input: is longer than {MAX_CHARS:,} characters")
    if not text.strip():
        raise UsageError("standard input: holds no question")
    return text


def analyze_input(path: str, args: argparse.Namespace, pool: Pool | None) -> Checked:
    """Read and check a file, or standard input for "-".

    Raises:
        UsageError: it cannot be read, or an option does not fit it.
    """
    options = {"params": parameters_of(args), **check_options_of(args, pool)}
    if path != STDIN:
        return analyze_path(path, form=args.form, **options)
    text, name = read_input(STDIN), "standard input"
    if text is None:
        return Checked(Source("", name), None, (too_long(MAX_CHARS),))
    return analyze(text, form=args.form or "completion", name=name, **options)


def check_options_of(args: argparse.Namespace, pool: Pool | None) -> dict[str, Any]:
    """What texts are checked against; without `--max-steps` each form has its own limit."""
    shape = args.pool_size if pool is None else pool
    return {"pool": shape, "profile": args.profile, **values_of(args, "check")}


def read_input(path: str) -> str | None:
    """The text of a file, or of standard input for "-"; None if it is longer than the limit.

    Raises:
        UsageError: it cannot be read.
    """
    if path == STDIN:
        return read_stream(cast(BufferedIOBase, sys.stdin.buffer), "standard input", MAX_CHARS)
    return read_text(path)


def require_workflow(checked: Checked, *, quiet: bool = False) -> Workflow:
    """The workflow that a command continues with; warnings and notes go to standard error, unless it is quiet.

    Raises:
        UsageError: it holds three empty lists.
        WorkflowError: it is not valid.
    """
    if checked.ok and not quiet:
        for found in checked.diagnostics:
            if found.code != _POOL_NEEDED:
                print_diagnostic(found, checked.source, sys.stderr)
        if checked.workflow is not None and checked.workflow.unresolved:  # `wfdsl check` shows where they are
            names = ", ".join(f"`{name}`" for name in checked.workflow.unresolved)
            print(f"note[{_POOL_NEEDED}]: only a pool knows {names}; give one with --pool NAME|FILE", file=sys.stderr)
    checked.raise_for_errors()
    if checked.workflow is None:
        raise UsageError(
            f"{checked.source.name}: holds three empty lists, which are not a workflow without a previous round"
        )
    return checked.workflow


def draw(found: Diagnostic, source: Source, *, colour: bool) -> str:
    """A diagnostic as text, coloured or not."""
    text = visible(as_text(found, source))
    if not colour:
        return text
    head, _, rest = text.partition("\n")
    paint = _COLOURS[found.severity]
    title, colon, message = head.partition(": ")
    rest = _CARETS.sub(lambda line: f"{line[1]}{painted(line[2], paint)}", rest)
    rest = _GUTTER.sub(lambda mark: painted(mark[0], "blue"), rest)
    return f"{painted(title, f'bold {paint}')}{painted(f'{colon}{message}', 'bold')}\n{rest}"


def print_diagnostic(found: Diagnostic, source: Source, out: TextIO) -> None:
    """A diagnostic as a person reads it."""
    print(draw(found, source, colour=wants_colours(out)), file=styled(out))
