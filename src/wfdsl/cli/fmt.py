"""Print workflows in their canonical form, or convert them.

A .wf file keeps its comments, names and parameters. Of a completion only the three lists are printed. --to prints the
other form: a .wf file is expanded with its parameters, and needs a pool if it names workers.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from wfdsl.api import dumps, form_of, too_long
from wfdsl.cli.display.streams import print_utf8
from wfdsl.cli.inputs import STDIN, add_input_options, analyze_input, read_input, require_workflow
from wfdsl.cli.options import INPUT, OUTPUT, group, load_pool
from wfdsl.cli.output import reported_error
from wfdsl.errors import UsageError, WfdslError
from wfdsl.files import write_whole
from wfdsl.language.check import MAX_CHARS
from wfdsl.language.diagnostics import WorkflowError
from wfdsl.language.source import Source

EXAMPLES = (
    "wfdsl fmt --write debate.wf",
    "wfdsl fmt --to completion debate.wf --pool pool.toml",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl fmt`."""
    output = group(parser, OUTPUT)
    group(parser, INPUT).add_argument(
        "files", nargs="+", metavar="FILE", help="a .wf file or a completion; - reads standard input"
    )
    add_input_options(parser)
    output.add_argument("--to", choices=["completion", "wf"], help="print in this form")
    action = output.add_mutually_exclusive_group()
    action.add_argument("-w", "--write", action="store_true", help="write the files instead of printing them")
    action.add_argument("--check", action="store_true", help="print what would change, and exit 1 if anything would")


def execute(args: argparse.Namespace) -> int:
    """Format every file."""
    if args.write and args.to is not None:
        raise UsageError("--write with --to would write one form into a file named for the other; print it instead")
    return max([_format(file, args) for file in args.files])


def _format(file: str, args: argparse.Namespace) -> int:
    """Format one file; an error in it does not stop the others."""
    form = args.form or ("completion" if file == STDIN else form_of(file))
    try:
        if form == "wf" and args.to != "completion":
            before, after = _formatted_file(file)
        else:
            checked = analyze_input(file, args, load_pool(args))
            before, after = checked.source.text, dumps(require_workflow(checked), args.to or form)
        return _deliver(file, before, after, args)
    except WfdslError as error:
        return reported_error("wfdsl fmt", error)


def _formatted_file(file: str) -> tuple[str, str]:
    """A workflow file's text before and after; parameters and the pool do not matter."""
    from wfdsl.language.file_printer import format_file
    from wfdsl.language.file_reader import read_workflow_file

    name = "standard input" if file == STDIN else file
    text = read_input(file)
    if text is None:
        raise WorkflowError([too_long(MAX_CHARS)], Source("", name))
    source = Source(text, name)
    tree, found = read_workflow_file(source)
    errors = [problem for problem in found if problem.is_error]
    if errors:
        raise WorkflowError(errors, source)
    return text, format_file(tree)


def _deliver(file: str, before: str, after: str, args: argparse.Namespace) -> int:
    if args.check:
        sys.stdout.writelines(difflib.unified_diff(_lines(before), _lines(after), file, f"{file} (formatted)"))
        return 0 if before == after else 1
    if not args.write:
        print_utf8(after)
    elif file == STDIN:
        raise UsageError("standard input cannot be written; leave --write out to print it")
    elif before != after:
        write_whole(Path(file), after)
    return 0


def _lines(text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n\\ No newline at end of file\n"
    return lines
