r"""The final answer in a reply, by kind.

Precedence, the same for every kind: thinking is left out; the last claim (box, tag, `#### x`, "the answer is x")
counts; without any claim, the last line counts: its last number or expression, its last letter, or the line itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wfdsl_rl.grading.choice import final_letters
from wfdsl_rl.grading.claims import MOST_CLAIMS, Claim, claims
from wfdsl_rl.grading.expressions import last_value, leading_value
from wfdsl_rl.grading.fenced import final_code
from wfdsl_rl.grading.final_part import final_part, tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wfdsl_rl.tasks.task import Kind

__all__ = ["final_answer", "final_code"]

_SAYS_MATH = re.compile(r"[\d\\$=^½⅓⅔¼¾π∞]|^\W*[A-Za-z]\W*$")
_SENTENCE_END = re.compile(r"(?:(?<=[\w)\"'*]{3}[.!?])|(?<=\d[.!?]))\s+(?=[A-Z(\[\"'*])")
_BOLD = re.compile(r"\*\*(?=\S)([^*\n]+?)\*\*|__(?=\S)([^_\n]+?)__")
_MARKS = "*_`\"'“”‘’ \t\r\n"


def final_answer(text: str, kind: Kind, *, choices: Sequence[str] = ()) -> str | None:
    r"""The final answer of a reply, or None if it gives none.

    `math`: an expression, several values joined by commas. `choice`: letters such as `B`, or `A, C` if several are
    given; `choices` are the options, so that one that is quoted in full is read as its letter. `code`: a program.
    `text` and `custom`: what is claimed, or the last line.
    """
    if kind == "code":
        return final_code(text)
    part = tail(final_part(text)).strip()
    if not part:
        return None
    if kind == "choice":
        return final_letters(part, choices)
    return _final_math(part) if kind == "math" else _final_text(part)


def _final_math(text: str) -> str | None:
    """A claim in plain words ("the answer is reasonable") gives way to one that has mathematics in it."""
    found = claims(text)[-MOST_CLAIMS:]
    for claim in reversed(found):
        value = _math_of(claim)
        if value and (claim.form != "phrase" or _SAYS_MATH.search(value)):
            return value
    words = _math_of(found[-1]) if found and not re.search(r"\d", text[found[-1].start :]) else None
    return words or last_value(text)


def _math_of(claim: Claim) -> str | None:
    return claim.text if claim.form == "box" else leading_value(claim.text)


def _final_text(text: str) -> str | None:
    found = claims(text)
    if found:
        claim = found[-1]
        return _cleaned(_SENTENCE_END.split(claim.text, maxsplit=1)[0] if claim.form == "phrase" else claim.text)
    line = text.splitlines()[-1]
    bold = [one or other for one, other in _BOLD.findall(line)]
    return _cleaned(bold[-1] if bold else line)


def _cleaned(text: str) -> str | None:
    value = text.strip(_MARKS)
    inner = re.fullmatch(r"\\(?:text|mbox|mathrm|textbf)\{([^{}]*)\}", value)
    value = (inner[1] if inner else value).strip(_MARKS)
    if not value.endswith("..."):
        value = value.removesuffix(".")
    return value.rstrip(_MARKS) or None
