"""Draw a workflow, in the terminal or as a picture for elsewhere.

With --run the workflow of a run is drawn, with what happened to each step: RUN is the run's id, or how it begins,
`last` for the newest, or a file with a record that `wfdsl run --json` or `wfdsl trace --json` printed.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wfdsl.api import Checked, read_text
from wfdsl.cli.inputs import add_input_options, load_pool, read_checked
from wfdsl.cli.streams import print_utf8
from wfdsl.errors import UsageError
from wfdsl.language.workflow import Workflow

if TYPE_CHECKING:  # start-up time
    from wfdsl.render.model import Options
    from wfdsl.workers.pool import Pool

FORMATS = ("terminal", "mermaid", "dot", "svg", "json")
_SUFFIXES = {
    ".txt": "terminal",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
    ".svg": "svg",
    ".json": "json",
}
_LONGEST_RECORD = 1 << 28  # characters of a record in a file; our choice
_FILE_WIDTH = 100  # columns of a terminal drawing that goes to a file; our choice


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl show`."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("file", metavar="FILE", nargs="?", help="a .wf file or a completion; - reads standard input")
    what.add_argument("--run", metavar="RUN", help="draw a run: its workflow, with state, time and cost of each step")
    parser.add_argument("--format", choices=FORMATS, help="what to draw (default: terminal, or by the suffix of OUT)")
    parser.add_argument("-o", "--output", metavar="OUT", help="write to this file instead of standard output")
    add_input_options(parser)


def execute(args: argparse.Namespace) -> int:
    """Draw the workflow."""
    chosen = _chosen_format(args.format, args.output)
    workflow, options = _drawn(args) if args.run is None else _drawn_run(args.run)
    if args.output is not None:
        _write(args.output, _as_text(workflow, chosen, options))
    elif chosen == "terminal":
        _print_drawing(workflow, options)
    else:
        print_utf8(_as_text(workflow, chosen, options))
    return 0


def _chosen_format(asked: str | None, output: str | None) -> str:
    if asked is not None or output is None:
        return asked or "terminal"
    suffix = Path(output).suffix.lower()
    if suffix not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise UsageError(f"{output}: unknown suffix; give --format, or use one of {known}")
    return _SUFFIXES[suffix]


def _drawn(args: argparse.Namespace) -> tuple[Workflow, Options]:
    pool = load_pool(args)
    checked = read_checked(args.file, args, pool)
    assert checked.workflow is not None, "read_checked returns a workflow or raises"
    return checked.workflow, _options(checked, pool)


def _drawn_run(name: str) -> tuple[Workflow, Options]:
    """A run's workflow, and what is drawn over it."""
    from wfdsl.interpreter.journal_file import default_path
    from wfdsl.interpreter.journal_reading import full_id, run_of
    from wfdsl.interpreter.record import Run

    if Path(name).is_file():
        text = read_text(name, max_chars=_LONGEST_RECORD)
        if text is None:
            raise UsageError(f"{name}: is longer than {_LONGEST_RECORD:,} characters")
        run = Run.from_json(text)
    else:
        run = run_of(default_path(), full_id(default_path(), name))
    options: Options = {
        "title": f"run {run.id}: {run.status}",
        "status": dict(enumerate(run.statuses())),
        "workers": {step.worker: step.worker_name for step in run.steps if step.worker_name},
    }
    if run.names is not None:
        options["names"] = run.names
    return run.workflow, options


def _options(checked: Checked, pool: Pool | None) -> Options:
    found: Options = {}
    if checked.tree is not None:
        found["names"] = checked.tree.names
        found["title"] = checked.tree.title
        found["description"] = checked.tree.description
    if pool is not None:
        found["workers"] = {index: pool.entry(index).name for index in pool.indices}
        found["conductors"] = pool.conductors
    return found


def _as_text(workflow: Workflow, chosen: str, options: Options) -> str:
    match chosen:
        case "mermaid":
            from wfdsl.render.mermaid import to_mermaid as draw
        case "dot":
            from wfdsl.render.dot import to_dot as draw
        case "svg":
            from wfdsl.render.svg import to_svg as draw
        case "json":
            from wfdsl.render.model import to_json as draw
        case _:
            draw = _drawing_as_text
    return draw(workflow, **options)


def _drawing_as_text(workflow: Workflow, **options: Any) -> str:
    from rich.console import Console

    from wfdsl.render.terminal import to_terminal

    page = io.StringIO()
    Console(file=page, width=_FILE_WIDTH, color_system=None).print(to_terminal(workflow, **options))
    return page.getvalue()


def _print_drawing(workflow: Workflow, options: Options) -> None:
    from wfdsl.cli.consoles import stdout_console
    from wfdsl.render.terminal import to_terminal

    stdout_console().print(to_terminal(workflow, **options))


def _write(output: str, text: str) -> None:
    try:
        Path(output).write_text(text, encoding="utf-8", newline="\n")
    except OSError as problem:
        raise UsageError(f"{output}: cannot be written: {problem.strerror}") from problem
