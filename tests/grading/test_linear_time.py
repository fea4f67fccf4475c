"""Any reply of any length is graded at once: no rule takes exponential, cubic or quadratic time in what a model wrote.

The bound is in processor time, which other programs on the machine do not change. A linear rule takes about a tenth of
it; a quadratic one takes many times more for the longest texts.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wfdsl.grading.choice import grade_choice
from wfdsl.grading.extraction import final_answer
from wfdsl.grading.mathematics import LONGEST_EXPRESSION, by_rules, normal
from wfdsl.grading.text import grade_text
from wfdsl.tasks.task import Kind

LENGTH = 20_000
MOST_S = 1.0
LEADS = [
    "", "The answer is ", "The answer is not ", "Answer: ", "Answer:\n", "$", "\\boxed{", "<answer>", "#### ", "x = ",
    "1", "A ", "**", "\\(",
]  # fmt: skip
TAILS = ["", " apples.", "}", "$", "!", ".", "?", "\n1", "\nA", "\n$$", " words"]
PIECES = [
    "1", "12", "1,234", "1,", "1.", "1/1", "1 1/", "e1", ",", ".", "...", ";", "; ", "/", "|", " ", "\t", "\n", "{",
    "}", "(", ")", "[", "]", "$", "$$", "\\", "\\[", "\\(", "\\boxed{", "\\text{", "\\frac", "\\quad", "\\dots", "-",
    "=", "^", "%", "'", "*", "**", "_", "`", "```\n", "#", "A", "A,", "(A)", "B) ", "a", "or ", "and ", "is ", "not ",
    "option ", "the number of ", "million ", "x10^", "the answer is ", "answer of ", "<answer>", "<think>", "²",
]  # fmt: skip


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Fail if the block takes more processor time; regular expressions can be interrupted too."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def grade_by_rules(text: str, kind: Kind) -> None:
    """All that is done with a reply in this process."""
    answer = final_answer(text, kind)
    if answer is None:
        return
    if kind == "math" and len(answer) <= LONGEST_EXPRESSION:
        by_rules(normal("204"), normal(answer))
    elif kind == "choice":
        grade_choice("B", answer)
    elif kind == "text":
        grade_text("Paris", answer)


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize(
    "text",
    [
        f"The answer is {'1' * 27} apples.",
        f"The answer is {'1' * 400} apples.",
        f"The answer is {'1,' * 200} apples.",
        f"The answer is {'1.' * 200} apples.",
        f"1{' ' * 1900}.",
        f"The answer is not {' ' * 1900} words",
        f"A {'/' * (LENGTH - 5)}\nwords",
        f"A{' ' * (LENGTH - 8)} words",
        f"Answer: A{' ' * (LENGTH - 20)}words",
        f"Answer: A,{' ' * (LENGTH - 20)}words",
    ],
    ids=lambda text: text[:20],
)
def test_a_degenerate_reply_is_graded_at_once(text: str, kind: Kind) -> None:
    with processor_time(MOST_S):
        grade_by_rules(text, kind)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # a reply without a fence is tried as a program
@pytest.mark.parametrize("kind", get_args(Kind))
@settings(max_examples=100, deadline=None)
@given(
    lead=st.sampled_from(LEADS),
    tail=st.sampled_from(TAILS),
    piece=st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("".join),
    length=st.sampled_from([50, 480, 900, 1_900, LENGTH]),
)
def test_any_repetition_is_graded_at_once(lead: str, tail: str, piece: str, length: int, kind: Kind) -> None:
    text = lead + piece * ((length - len(lead) - len(tail)) // len(piece)) + tail

    with processor_time(MOST_S):
        grade_by_rules(text, kind)
