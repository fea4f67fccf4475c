"""Check workflow files and completions.

Each FILE is a .wf file, a completion, or - for standard input. With --field each FILE is JSON lines (also gzipped), and
the completion is read from that field of every line; --summary counts what was found over all of them. --explain says
what a diagnostic's code means; --grammar prints the strict completion language as a grammar for constrained decoders.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wfdsl.api import Checked, analyze
from wfdsl.cli.display.streams import styled, visible
from wfdsl.cli.explain import ALL, explain
from wfdsl.cli.grammar import add_grammar_options, print_grammar
from wfdsl.cli.inputs import STDIN, add_input_options, analyze_input, check_options_of, load_pool, print_diagnostics
from wfdsl.cli.options import INPUT, OUTPUT, count_or_zero, group, parameters_of
from wfdsl.cli.output import INVALID, OK, USAGE, print_json
from wfdsl.errors import UsageError
from wfdsl.language.check import CheckConfig
from wfdsl.language.diagnostics import as_json, summary

if TYPE_CHECKING:  # start-up time: only --field and --pool need them
    from wfdsl.survey import Row, Survey
    from wfdsl.workers.pool import Pool

_PROGRESS_EVERY = 1 << 20  # bytes
_LABEL_WIDTH = 24
_COUNT_WIDTH = 16


EXAMPLES = (
    "wfdsl check debate.wf --pool pool.toml",
    "wfdsl check --field completion --summary rollouts.jsonl",
    "wfdsl check --explain access-not-earlier",
    "wfdsl check --grammar gbnf --pool-size 3",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl check`."""
    asked, output = group(parser, INPUT), group(parser, OUTPUT)
    asked.add_argument("files", nargs="*", metavar="FILE", help="a .wf file or a completion; - reads standard input")
    add_input_options(parser, profile="strict")
    output.add_argument("--json", action="store_true", help="print a JSON object a line for each file")
    asked.add_argument("--field", metavar="NAME", help="FILE is JSON lines with a completion in this field")
    output.add_argument("--summary", action="store_true", help="with --field: a histogram of codes in both profiles")
    output.add_argument(
        "--examples", type=count_or_zero, default=3, metavar="N", help="with --summary: how many of the worst"
    )
    output.add_argument(
        "--explain",
        nargs="?",
        const=ALL,
        metavar="CODE",
        help="say what a diagnostic's code means, with an example and its correction; list all codes without CODE",
    )
    add_grammar_options(parser)


def execute(args: argparse.Namespace) -> int:
    """Check every file; 2 if one cannot be read, else 1 if one is invalid."""
    if args.explain is not None:
        return explain(args.explain)
    if args.grammar is not None:
        return print_grammar(args)
    if not args.files:
        raise UsageError("give a FILE: a .wf file or a completion; - reads standard input")
    if args.field is not None:
        return _check_lines(args)
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
        return USAGE
    if args.json:
        print_json(_verdict(checked, file))
    else:
        _print_text(checked)
    return OK if checked.ok else INVALID


def _no_json_lines(file: str, args: argparse.Namespace) -> None:
    """A file of JSON lines is hardly ever meant as one completion."""
    if args.form is None and file.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        raise UsageError(f"{file}: is JSON lines: say where each has its completion, with --field NAME")


def _verdict(checked: Checked, file: str) -> dict[str, Any]:
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
        print_diagnostics([found], checked.source, sys.stdout)
        print()
    counts = summary(checked.diagnostics)
    if not checked.ok:
        print(f"{checked.source.name}: {counts}")
        return
    what = "keeps the previous response"
    if checked.workflow is not None:
        steps = len(checked.workflow)
        what = f"{steps} step{'s' if steps != 1 else ''}"
    print(f"{checked.source.name}: ok, {what}{f', {counts}' if counts else ''}")


def _check_lines(args: argparse.Namespace) -> int:
    """Check every line of every file; 2 if a line cannot be read, else 1 if one is invalid."""
    if STDIN in args.files:
        raise UsageError("--field reads files, not standard input")
    if args.form == "wf" or parameters_of(args):
        raise UsageError(
            "--field reads completions: leave out --form wf and --set of parameters, which are for .wf files"
        )
    pool = load_pool(args)
    config = CheckConfig(**check_options_of(args, pool))
    rows = (row for file in args.files for row in _rows(file, args.field))
    return _summary(rows, config, args) if args.summary else _verdicts(rows, config, args)


def _rows(file: str, field: str) -> Iterator[Row]:
    from wfdsl.survey import read_rows

    with _Progress(file) as progress:
        yield from read_rows(file, field, on_bytes=progress.add)


def _verdicts(rows: Iterator[Row], config: CheckConfig, args: argparse.Namespace) -> int:
    worst = OK
    for row in rows:
        place = f"{row.file}:{row.line}"
        if row.text is None:
            print(f"wfdsl check: {place}: {row.problem}", file=sys.stderr)
            worst = USAGE
            continue
        checked = analyze(row.text, config, name=place)
        worst = max(worst, OK if checked.ok else INVALID)
        if args.json:
            print_json(_verdict(checked, place))
        else:
            codes = ", ".join(dict.fromkeys(found.code for found in checked.diagnostics))
            print(f"{place}: {'ok' if checked.ok else 'invalid'}{f': {codes}' if codes else ''}")
    return worst


def _summary(rows: Iterator[Row], config: CheckConfig, args: argparse.Namespace) -> int:
    from wfdsl.survey import Survey

    survey = Survey(config, examples=args.examples)
    for row in rows:
        survey.add(row)
    if args.json:
        print_json(survey.to_json())
    else:
        _print_summary(survey)
    if survey.unreadable_count:
        return USAGE
    return OK if survey.valid[config.profile] == survey.total else INVALID


def _print_summary(survey: Survey) -> None:
    total = survey.total
    print(f"{total:,} completion{'' if total == 1 else 's'}")
    for profile in ("strict", "lenient"):
        print(_row(f"valid, {profile}", survey.valid[profile], of=total))
    if survey.passthrough:
        print(_row("three empty lists", survey.passthrough, of=total))
    for steps, count in sorted(survey.steps.items()):
        print(_row(f"with {steps} step{'' if steps == 1 else 's'}", count, of=total))
    _print_codes(survey)
    if survey.remarks:
        print("\nwarnings and notes in the lenient profile")
        for code in _by_count(survey.remarks):
            print(_row(code, survey.remarks[code], of=total))
    for example in survey.worst:
        print(f"\n{example.place[0]}:{example.place[1]}")
        print_diagnostics(example.checked.diagnostics[:3], example.checked.source, sys.stdout)
    for row in survey.unreadable:
        print(f"\n{row.file}:{row.line}: {row.problem}")
    if survey.unreadable_count > len(survey.unreadable):
        print(f"... and {survey.unreadable_count - len(survey.unreadable):,} more lines without a completion")


def _print_codes(survey: Survey) -> None:
    strict, lenient = survey.codes["strict"], survey.codes["lenient"]
    if not strict and not lenient:
        return
    header = "completions with the error"
    print(f"\n{header:<{_LABEL_WIDTH + 2}}{'strict':>{_COUNT_WIDTH}}{'lenient':>{_COUNT_WIDTH}}")
    for code in _by_count(strict | lenient):
        print(_row(code, strict[code], lenient[code], of=survey.total))


def _by_count(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda code: (-counts[code], code))


def _row(label: str, *counts: int, of: int) -> str:
    return f"  {label:<{_LABEL_WIDTH}}" + "".join(f"{_share(count, of):>{_COUNT_WIDTH}}" for count in counts)


def _share(count: int, total: int) -> str:
    return f"{count:,} {count / total:>7.1%}" if total else f"{count:,}"


class _Progress:
    """How much of a file has been read, on a terminal's standard error."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._read = 0
        self._shown = 0
        self._size = 0
        self._on = sys.stderr.isatty()

    def __enter__(self) -> _Progress:
        path = Path(self._file)
        if self._on and path.is_file() and path.suffix != ".gz":
            self._size = path.stat().st_size
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._print("\r\x1b[K")

    def add(self, count: int) -> None:
        """Count bytes that were read."""
        self._read += count
        if self._on and self._read - self._shown >= _PROGRESS_EVERY:
            self._shown = self._read
            share = f" ({self._read / self._size:.0%})" if self._size else ""
            self._print(f"\r{visible(self._file)}: {self._read >> 20} MiB{share}")

    def _print(self, text: str) -> None:
        print(text, end="", file=styled(sys.stderr), flush=True)
