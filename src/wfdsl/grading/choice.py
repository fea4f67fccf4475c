"""Choice answers: whether the letters that a reply chooses are the gold ones.

An answer with several letters is right only if the gold answer is all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from wfdsl.grading.verdict import Verdict
from wfdsl.tasks.task import gold_letters


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
