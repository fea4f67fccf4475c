"""`wfdsl data examples`: list and show few-shot examples, and extract new ones from solved questions.

`extract` reads what `wfdsl solve --out` wrote, after a grader has added a field that says whether each answer is right.
It keeps right answers with strictly valid workflows, one for each shape of workflow, and prints a set.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from wfdsl.cli.display.streams import print_utf8
from wfdsl.cli.options import count
from wfdsl.errors import UsageError
from wfdsl.files import read_json_lines
from wfdsl.render.text import counted


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl data examples`."""
    parser.description = (__doc__ or "").partition(": ")[2]
    actions = parser.add_subparsers(dest="of_examples", metavar="ACTION")
    actions.add_parser("list", help="list the shipped sets with the shapes of their workflows (the default)")
    show = actions.add_parser("show", help="print the examples of a set")
    show.add_argument("set", metavar="NAME|FILE", help="a shipped set, or a file")
    extract = actions.add_parser("extract", help="make a set out of solved questions")
    extract.add_argument("files", metavar="FILE", nargs="+", help="JSON lines that `wfdsl solve --out` wrote")
    extract.add_argument("--right", default="right", metavar="FIELD", help="true where an answer is right (right)")
    extract.add_argument("--most", type=count, default=4, metavar="N", help="most examples (default: 4)")
    extract.add_argument("--name", default="extracted", help="the set's name (default: %(default)s)")


def execute(args: argparse.Namespace) -> int:
    """Do what the action says."""
    if args.of_examples == "show":
        return _show(args.set)
    return _extract(args) if args.of_examples == "extract" else _list()


def _list() -> int:
    from wfdsl.conductor.examples import load_examples, shipped_sets
    from wfdsl.graph import graph_of

    for name in shipped_sets():
        shapes = ", ".join(graph_of(example.workflow).topology for example in load_examples(name).examples)
        print(f"{name:<20}  {shapes}")
    return 0


def _show(name: str) -> int:
    from wfdsl.conductor.examples import load_examples

    shown = [f"Question: {each.question}\n\n{each.completion}" for each in load_examples(name).examples]
    print("\n\n\n".join(shown))
    return 0


def _extract(args: argparse.Namespace) -> int:
    from wfdsl.conductor.examples import extract_examples, to_toml

    found = extract_examples((row for file in args.files for row in _rows(file)), right=args.right, most=args.most)
    if not found:
        raise UsageError(
            f"no line has a right answer with a strictly valid workflow; mark right answers with {args.right!r}: true"
        )
    print_utf8(to_toml(args.name, found))
    print(counted(len(found), "example"), file=sys.stderr)
    return 0


def _rows(file: str) -> Iterator[dict[str, Any]]:
    for number, row in read_json_lines(file):
        question = _question(row.get("question"))
        if question is None or "answer" not in row or not _has_rounds(row.get("rounds", [])):
            raise UsageError(f"{file}:{number}: not a line that `wfdsl solve --out` wrote")
        yield {**row, "question": question}


def _question(asked: Any) -> str | None:
    """A question as text; None if it is not one."""
    if isinstance(asked, list) and asked and isinstance(asked[-1], dict):
        asked = asked[-1].get("content")
    return asked if isinstance(asked, str) else None


def _has_rounds(rounds: Any) -> bool:
    """Whether the rounds of a row are what `wfdsl solve` writes, as far as examples are made of them."""
    return isinstance(rounds, list) and all(isinstance(each, dict) and _completions(each) for each in rounds)


def _completions(round_: dict[str, Any]) -> bool:
    found = round_.get("completions")
    return (
        isinstance(found, list)
        and (bool(found) or round_.get("result") == "kept-failed")
        and all(isinstance(each, dict) and isinstance(each.get("text"), str) for each in found)
    )
