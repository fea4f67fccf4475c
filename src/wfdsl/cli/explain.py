"""Say what a diagnostic's code means, with an example and its correction; without CODE, list all codes."""

from __future__ import annotations

import argparse

from wfdsl.errors import UsageError
from wfdsl.language.codes import CODES, Code
from wfdsl.language.diagnostics import Suggestions

_KINDS = {
    "error": "error",
    "repair": "a warning in the lenient profile, an error in the strict one",
    "warning": "warning",
    "note": "note",
}
_FORMS = {"both": "both forms", "completion": "completions", "wf": "workflow files"}


EXAMPLES = ("wfdsl explain access-not-earlier",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wfdsl explain`."""
    parser.add_argument("code", nargs="?", metavar="CODE", help="such as access-not-earlier")


def execute(args: argparse.Namespace) -> int:
    """Explain one code, or list all."""
    if args.code is None:
        width = max(map(len, CODES))
        for code in CODES.values():
            print(f"{code.name:<{width}}  {code.kind:<7}  {code.summary}")
        return 0
    if args.code not in CODES:
        hint = Suggestions().hint(args.code, CODES) or "`wfdsl explain` lists all codes"
        raise UsageError(f"there is no code {args.code!r}: {hint}")
    print(explained(CODES[args.code]))
    return 0


def explained(code: Code) -> str:
    """A row of the table as a page of text."""
    parts = [f"{code.name}: {code.summary}", f"({_KINDS[code.kind]}; {_FORMS[code.form]})", "", code.explanation]
    if code.wrong:
        parts += ["", "Wrong:", _indented(code.wrong)]
    if code.right:
        parts += ["", "Right:", _indented(code.right)]
    return "\n".join(parts)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
