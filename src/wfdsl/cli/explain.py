"""`wfdsl check --explain`: what a diagnostic's code means, with an example and its correction."""

from __future__ import annotations

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


ALL = ""
"""Instead of a code: list them all."""


def explain(code: str) -> int:
    """Explain one code, or list all."""
    if code == ALL:
        width = max(map(len, CODES))
        for each in CODES.values():
            print(f"{each.name:<{width}}  {each.kind:<7}  {each.summary}")
        return 0
    if code not in CODES:
        hint = Suggestions().hint(code, CODES) or "`wfdsl check --explain` lists all codes"
        raise UsageError(f"there is no code {code!r}: {hint}")
    print(explained(CODES[code]))
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
