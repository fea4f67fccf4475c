"""Draw a workflow, in the terminal or as a picture for elsewhere.

With --run a run is drawn, with what happened to each step and every workflow that a Conductor wrote in it: RUN is the
run's id, or how it begins, `last` for the newest, or a file with a record that `wfdsl run --json` or `wfdsl runs
show --json` printed. As HTML it is one page, with all messages and replies, that can be opened offline.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wfdsl.api import Checked, read_text
from wfdsl.cli.display.streams import print_styled, print_utf8, terminal_width
from wfdsl.cli.inputs import add_input_options, analyze_input, require_workflow
from wfdsl.cli.options import INPUT, OUTPUT, complete_runs, group, load_pool
from wfdsl.errors import UsageError

if TYPE_CHECKING:  # start-up time
    from wfdsl.interpreter.record import Run
    from wfdsl.render.model import Options
    from wfdsl.render.terminal import TerminalDrawing

FORMATS = ("terminal", "mermaid", "svg", "png", "pdf", "html")
_SUFFIXES = {f".{name}": name for name in FORMATS[2:]} | {".txt": "terminal", ".mmd": "mermaid", ".htm": "html"}
_LONGEST_RECORD = 1 << 28  # characters of a record in a file; our choice

EXAMPLES = (
    "wfdsl show debate.wf",
    "wfdsl show --run last --out run.svg",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl show`."""
    what = group(parser, INPUT).add_mutually_exclusive_group(required=True)
    what.add_argument("file", metavar="FILE", nargs="?", help="a .wf file or a completion; - reads standard input")
    about = "draw a run: its workflows, with state, time and cost of each step"
    complete_runs(what.add_argument("--run", metavar="RUN", help=about))
    output = group(parser, OUTPUT)
    output.add_argument("--format", choices=FORMATS, help="what to draw (default: terminal, or by the suffix of --out)")
    output.add_argument("-o", "--out", metavar="FILE", help="write to this file instead of standard output")
    add_input_options(parser)


def execute(args: argparse.Namespace) -> int:
    """Draw the workflow or the run."""
    from wfdsl.render import pictures

    chosen = _chosen_format(args.format, args.out)
    value, options = _checked(args) if args.run is None else (_run(args.run), {})
    picture: str | bytes | TerminalDrawing = getattr(pictures, f"to_{chosen}")(value, **options)
    if args.out is not None:
        Path(args.out).write_bytes(picture if isinstance(picture, bytes) else str(picture).encode())
    elif isinstance(picture, bytes):
        if sys.stdout.isatty():
            raise UsageError(f"a terminal cannot show {chosen.upper()}; name a file with --out")
        sys.stdout.buffer.write(picture)
    elif isinstance(picture, str):
        print_utf8(picture)
    else:
        for line in picture.lines(terminal_width()):
            print_styled(*line)
    return 0


def _chosen_format(asked: str | None, output: str | None) -> str:
    if asked is not None or output is None:
        return asked or "terminal"
    suffix = Path(output).suffix.lower()
    if suffix not in _SUFFIXES:
        raise UsageError(f"{output}: unknown suffix; give --format, or use one of {', '.join(_SUFFIXES)}")
    return _SUFFIXES[suffix]


def _checked(args: argparse.Namespace) -> tuple[Checked, Options]:
    pool = load_pool(args)
    checked = analyze_input(args.file, args, pool)
    require_workflow(checked)
    return checked, {} if pool is None else {"workers": pool.labels, "conductors": pool.conductors}


def _run(name: str) -> Run:
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import full_id, run_of
    from wfdsl.interpreter.record import Run

    if not Path(name).is_file():
        return run_of(default_path(), full_id(default_path(), name))
    text = read_text(name, max_chars=_LONGEST_RECORD)
    if text is None:
        raise UsageError(f"{name}: is longer than {_LONGEST_RECORD:,} characters")
    try:
        return Run.from_json(text)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error
