"""Check workflow files and completions.

Each FILE is a .wf file, a completion, or - for standard input. With --field each FILE is JSON lines (also gzipped), and
the completion is read from that field of every line; --summary counts what was found over all of them.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from wfdsl.cli.drawing import colour_for, draw
from wfdsl.cli.inputs import add_input_options, analyze_input, count_or_none, load_pool
from wfdsl.errors import UsageError
from wfdsl.language.diagnostics.render import as_json, summary

if TYPE_CHECKING:
    import argparse

    from wfdsl.api import Checked
    from wfdsl.workers.pool import Pool


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl check`."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a .wf file or a completion; - reads standard input")
    add_input_options(parser, profile="strict")
    parser.add_argument("--format", choices=["text", "json"], default="text", help="json: one object a line per file")
    parser.add_argument("--field", metavar="NAME", help="FILE is JSON lines with a completion in this field")
    parser.add_argument("--summary", action="store_true", help="with --field: a histogram of codes in both profiles")
    parser.add_argument(
        "--examples", type=count_or_none, default=3, metavar="N", help="with --summary: how many of the worst"
    )


def execute(args: argparse.Namespace) -> int:
    """Check every file; 2 if one cannot be read, else 1 if one is invalid."""
    if args.field is not None:
        from wfdsl.cli.bulk import check_lines

        return check_lines(args)
    if args.summary:
        raise UsageError("--summary needs --field, which says where in each JSON line the completion is")
    pool = load_pool(args)
    codes = [_check(file, args, pool) for file in args.files]
    return max(codes)


def _check(file: str, args: argparse.Namespace, pool: Pool | None) -> int:
    try:
        _no_json_lines(file, args)
        checked = analyze_input(file, args, pool)
    except UsageError as error:
        sys.stdout.flush()
        print(f"wfdsl check: {error}", file=sys.stderr)
        return 2
    if args.format == "json":
        print_verdict(checked, file)
    else:
        _print_text(checked)
    return 0 if checked.ok else 1


def _no_json_lines(file: str, args: argparse.Namespace) -> None:
    """A file of JSON lines is hardly ever meant as one completion."""
    if args.form is None and file.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        raise UsageError(f"{file}: is JSON lines: say where each has its completion, with --field NAME")


def print_verdict(checked: Checked, file: str) -> None:
    """A line of `--format json`, which is valid JSON in every encoding of standard output."""
    print(json.dumps(verdict(checked, file), ensure_ascii=sys.stdout.encoding.lower() != "utf-8"))


def verdict(checked: Checked, file: str) -> dict[str, Any]:
    """What `--format json` prints about a file."""
    workflow = checked.workflow
    lists = None
    if workflow is not None and not workflow.unresolved:
        lists = {
            "model_id": [step.worker for step in workflow],
            "subtasks": [step.subtask for step in workflow],
            "access_list": ["all" if step.access == "all" else list(step.access) for step in workflow],
            "sees": [list(workflow.sees(step)) for step in range(len(workflow))],
        }
    return {
        "file": file,
        "ok": checked.ok,
        "passthrough": checked.passthrough,
        "workflow": lists,
        "diagnostics": [as_json(found, checked.source) for found in checked.diagnostics],
    }


def _print_text(checked: Checked) -> None:
    for found in checked.diagnostics:
        print(draw(found, checked.source, colour=colour_for(sys.stdout)), end="\n\n")
    counts = summary(checked.diagnostics)
    if not checked.ok:
        print(f"{checked.source.name}: {counts}")
        return
    what = "keeps the previous response"
    if checked.workflow is not None:
        steps = len(checked.workflow)
        what = f"{steps} step{'s' if steps != 1 else ''}"
    print(f"{checked.source.name}: ok, {what}{f', {counts}' if counts else ''}")
