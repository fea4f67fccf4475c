"""Print workflows in their canonical form, or convert them.

A .wf file keeps its comments, names and parameters. Of a completion only the three lists are printed. With --to the
other form is printed: a .wf file is expanded with its parameters and needs a pool if it names workers.
"""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wfdsl.api import dumps, form_of, read_text
from wfdsl.cli.inputs import STDIN, add_input_options, read_checked
from wfdsl.errors import UsageError

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl fmt`."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a .wf file or a completion; - reads standard input")
    add_input_options(parser)
    parser.add_argument("--to", choices=["completion", "wf"], help="print in this form")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("-w", "--write", action="store_true", help="write the files instead of printing them")
    action.add_argument("--check", action="store_true", help="change nothing; exit 1 if a file would change")
    action.add_argument("--diff", action="store_true", help="print what would change")


def execute(args: argparse.Namespace) -> int:
    """Format every file."""
    if args.write and args.to is not None:
        raise UsageError("--write with --to would put one form into a file named for the other: print it instead")
    return max(_format(file, args) for file in args.files)


def _format(file: str, args: argparse.Namespace) -> int:
    form = args.form or ("completion" if file == STDIN else form_of(file))
    if form == "wf" and args.to != "completion":
        before, after = _formatted_file(file, args)
    else:
        checked = read_checked(file, args)
        assert checked.workflow is not None  # noqa: S101  (read_checked has seen to it)
        before, after = checked.source.text, dumps(checked.workflow, args.to or form)
    return _deliver(file, before, after, args)


def _formatted_file(file: str, args: argparse.Namespace) -> tuple[str, str]:
    """A workflow file's text before and after; parameters and pool play no part."""
    from wfdsl.errors import WorkflowError
    from wfdsl.source import Source
    from wfdsl.syntax.format_file import format_file
    from wfdsl.syntax.workflow_file import read_workflow_file

    text = sys.stdin.read() if file == STDIN else read_text(file, max_chars=args.max_chars)
    if text is None:
        raise UsageError(f"{file}: is longer than {args.max_chars:,} characters; --max-chars raises the limit")
    source = Source(text, "standard input" if file == STDIN else file)
    tree, found = read_workflow_file(source)
    errors = [problem for problem in found if problem.is_error]
    if tree is None or errors:
        raise WorkflowError(errors, source)
    return text, format_file(tree)


def _deliver(file: str, before: str, after: str, args: argparse.Namespace) -> int:
    if args.check:
        if before != after:
            print(f"{file}: would change")
        return 0 if before == after else 1
    if args.diff:
        lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), file, f"{file} (formatted)")
        sys.stdout.writelines(lines)
    elif not args.write:
        sys.stdout.write(after)
    elif file == STDIN:
        raise UsageError("standard input cannot be written; leave --write out to print it")
    elif before != after:
        try:
            Path(file).write_text(after, "utf-8")
        except OSError as error:
            raise UsageError(f"{file}: cannot be written: {(error.strerror or str(error)).lower()}") from error
    return 0
