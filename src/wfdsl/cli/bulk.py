"""`wfdsl check --field`: completions in JSON lines, one verdict a line or a summary over all of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wfdsl.api import analyze
from wfdsl.cli.check import print_verdict
from wfdsl.cli.configuration import parameters_of
from wfdsl.cli.drawing import colour_for, draw
from wfdsl.cli.inputs import STDIN, load_pool
from wfdsl.errors import UsageError
from wfdsl.language.check import DEFAULT_MAX_STEPS
from wfdsl.survey import Row, Survey, read_rows

if TYPE_CHECKING:
    import argparse
    from collections import Counter
    from collections.abc import Iterator

_PROGRESS_EVERY = 1 << 20  # bytes


def check_lines(args: argparse.Namespace) -> int:
    """Check every line of every file; 2 if a line cannot be read, else 1 if one is invalid."""
    if STDIN in args.files:
        raise UsageError("--field reads files, not standard input")
    if args.form == "wf" or parameters_of(args):
        raise UsageError(
            "--field reads completions: leave out --form wf and --set of parameters, which are for .wf files"
        )
    pool = load_pool(args)
    settings: dict[str, Any] = {
        "pool_size": args.pool_size if pool is None else pool,
        "max_steps": args.max_steps or DEFAULT_MAX_STEPS,
        "recursion": args.recursion,
        "max_chars": args.max_chars,
    }
    rows = (row for file in args.files for row in _rows(file, args.field))
    return _summary(rows, settings, args) if args.summary else _verdicts(rows, settings, args)


def _rows(file: str, field: str) -> Iterator[Row]:
    with _Progress(file) as progress:
        yield from read_rows(file, field, on_bytes=progress.add)


def _verdicts(rows: Iterator[Row], settings: dict[str, Any], args: argparse.Namespace) -> int:
    worst = 0
    for row in rows:
        place = f"{row.file}:{row.line}"
        if row.text is None:
            print(f"wfdsl check: {place}: {row.problem}", file=sys.stderr)
            worst = 2
            continue
        checked = analyze(row.text, profile=args.profile, name=place, **settings)
        worst = max(worst, 0 if checked.ok else 1)
        if args.format == "json":
            print_verdict(checked, place)
        else:
            codes = ", ".join(dict.fromkeys(found.code for found in checked.diagnostics))
            print(f"{place}: {'ok' if checked.ok else 'invalid'}{f': {codes}' if codes else ''}")
    return worst


def _summary(rows: Iterator[Row], settings: dict[str, Any], args: argparse.Namespace) -> int:
    survey = Survey(**settings, examples=args.examples)
    for row in rows:
        survey.add(row)
    if args.format == "json":
        print(json.dumps(survey.to_json()))
    else:
        _print_summary(survey)
    if survey.unreadable_count:
        return 2
    return 0 if survey.valid[args.profile] == survey.total else 1


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
        for found in example.checked.diagnostics[:3]:
            print(draw(found, example.checked.source, colour=colour_for(sys.stdout)))
    for row in survey.unreadable:
        print(f"\n{row.file}:{row.line}: {row.problem}")
    if survey.unreadable_count > len(survey.unreadable):
        print(f"... and {survey.unreadable_count - len(survey.unreadable):,} more lines without a completion")


def _print_codes(survey: Survey) -> None:
    strict, lenient = survey.codes["strict"], survey.codes["lenient"]
    if not strict and not lenient:
        return
    print(f"\n{'completions with the error':<26}{'strict':>16}{'lenient':>16}")
    for code in _by_count(strict | lenient):
        print(_row(code, strict[code], lenient[code], of=survey.total))


def _by_count(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda code: (-counts[code], code))


def _row(label: str, *counts: int, of: int) -> str:
    return f"  {label:<24}" + "".join(f"{_share(count, of):>16}" for count in counts)


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
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def add(self, count: int) -> None:
        """So many more bytes were read."""
        self._read += count
        if self._on and self._read - self._shown >= _PROGRESS_EVERY:
            self._shown = self._read
            share = f" ({self._read / self._size:.0%})" if self._size else ""
            print(f"\r{self._file}: {self._read >> 20} MiB{share}", end="", file=sys.stderr, flush=True)
