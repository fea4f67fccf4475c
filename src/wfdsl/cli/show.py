"""`wfdsl show`: draw a workflow, in the terminal or as a picture for elsewhere."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wfdsl.cli.inputs import add_input_options, load_pool, read_checked
from wfdsl.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from wfdsl.api import Checked
    from wfdsl.render.drawing import Options
    from wfdsl.workflow import Workflow

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
_FILE_WIDTH = 100  # columns of a terminal drawing that goes to a file; our choice


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl show`."""
    parser.add_argument("file", metavar="FILE", help="a .wf file or a completion; - reads standard input")
    parser.add_argument("--format", choices=FORMATS, help="what to draw (default: terminal, or by the suffix of OUT)")
    parser.add_argument("-o", "--output", metavar="OUT", help="write to this file in place of standard output")
    add_input_options(parser)


def execute(args: argparse.Namespace) -> int:
    """Draw the workflow."""
    chosen = _chosen_format(args.format, args.output)
    checked = read_checked(args.file, args)
    workflow, options = checked.workflow, _options(checked, load_pool(args))
    assert workflow is not None, "read_checked returns a workflow or raises"
    if args.output is not None:
        _write(args.output, _as_text(workflow, chosen, options))
    elif chosen == "terminal":
        _print_drawing(workflow, options)
    else:
        _print_utf8(_as_text(workflow, chosen, options))
    return 0


def _chosen_format(asked: str | None, output: str | None) -> str:
    if asked is not None or output is None:
        return asked or "terminal"
    suffix = Path(output).suffix.lower()
    if suffix not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise UsageError(f"{output}: the name does not say which format is meant; give --format, or end it in {known}")
    return _SUFFIXES[suffix]


def _options(checked: Checked, pool: Any) -> Options:
    found: Options = {}
    if checked.tree is not None:
        found["names"] = checked.tree.names
        found["title"] = checked.tree.title
        found["description"] = checked.tree.description
    if pool is not None:
        found["workers"] = {ordinal: pool.entry(ordinal).name for ordinal in pool.ordinals}
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
            from wfdsl.render.json_text import to_json as draw
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
    from rich.console import Console

    from wfdsl.render.terminal import to_terminal

    Console().print(to_terminal(workflow, **options))


def _print_utf8(text: str) -> None:
    """Pictures are UTF-8 whatever the terminal speaks: they are meant for a file or a pipe."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def _write(output: str, text: str) -> None:
    try:
        Path(output).write_text(text, encoding="utf-8", newline="\n")
    except OSError as problem:
        raise UsageError(f"{output}: cannot be written: {problem.strerror}") from problem
