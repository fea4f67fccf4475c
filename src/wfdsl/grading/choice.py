"""Choice answers: whether the letters that a reply chooses are the gold ones.

An answer with several letters is right only if the gold answer is all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from wfdsl.grading.text import same_text
from wfdsl.grading.verdict import Verdict

_LETTERS = re.compile(r"\(?([A-Z])\)?(?:\s*(?:,|and|&)?\s*\(?([A-Z])\)?)*\.?")


def grade_choice(gold: str, answer: str, choices: Sequence[str] = ()) -> Verdict:
    """Whether the letters are the gold ones. A gold option in full is its letter."""
    wanted = gold_letters(gold, choices)
    if not wanted:
        return Verdict("unjudged", answer, f"the gold answer {gold!r} is not one of the options", rule="letters")
    given = set(re.findall(r"[A-Z]", answer))
    if given == wanted:
        return Verdict("right", answer, f"it is {', '.join(sorted(wanted))}", rule="letters")
    said = answer or "a letter with the text of another option"
    return Verdict("wrong", answer, f"{said} is not {', '.join(sorted(wanted))}", rule="letters")


def gold_letters(gold: str, choices: Sequence[str] = ()) -> set[str]:
    """The letters of a gold answer; none if no option has them, nor is it the text of one."""
    letters = set(re.findall(r"[A-Z]", gold.upper().replace("AND", ",")))
    if _LETTERS.fullmatch(gold.strip().upper()) and letters <= set(ascii_uppercase[: len(choices) or 26]):
        return letters
    named = (letter for letter, option in zip(ascii_uppercase, choices, strict=False) if same_text(option, gold))
    return set(next(named, ""))
