"""Any reply of any length is graded at once: no rule takes quadratic processor time in what a model wrote."""

from __future__ import annotations

import time

import pytest

from wfdsl.grading.grade import grade_choice
from wfdsl.grading.normal_forms import read
from wfdsl.grading.statements import Asked, final_statement
from wfdsl.grading.text import same_text

LENGTH = 10_000
MOST_S = 0.5
LEADS = ["", "The answer is "]
PIECES = [
    "1", "1,", "1 1/", "e1", ",", "...", "; ", "|", " ", "\n", "{", "}", "(", "[", "$", "$$", "$1$ ", "\\", "\\(",
    "\\boxed{", "\\boxed{1} ", "\\text{", "\\frac", "-", "=", "^", "**", "`", "```\n", "A", "A, ", "(A)", "a", "or ",
    "and ", "not ", "the number of ", "million ", "the answer is 5. ", "<answer>", "no, ", "²", "是", "答案是5。",
    "Wait. ",
]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_a_long_reply_of_one_piece_is_read_at_once(piece: str) -> None:
    final_statement("The answer is 5.", Asked("math"))  # builds the grammar

    for lead in LEADS:
        text = lead + piece * (LENGTH // len(piece))
        start = time.process_time()
        for kind in ("math", "choice", "text"):
            found = final_statement(text, Asked(kind))
            value = found.value if found else text
            read(value), same_text("5", value), grade_choice("A", value)
        assert time.process_time() - start < MOST_S
