"""Grading choices: the letter that is chosen in the end, and no credit for naming them all."""

from __future__ import annotations

import pytest

from tests.grading.answers import choice_task
from wfdsl.grading.grade import grade

RIGHT = [
    "B",
    "(B)",
    "B.",
    "**B**",
    "Ｂ",
    "answer: b",
    "B) east",
    "B. Because the sun rises there.",
    "\\boxed{B}",
    "$\\boxed{\\text{(B)}}$",
    "The answer is (B) because (A) and (C) are wrong.",
    "Answer: A\nWait, actually, answer: B",
    "The answer is a bit hidden. So I choose B.",
    "The answer is east.",
    "East",
    "Option B is correct.",
    "The correct answer is option B.",
    "I think it's B",
    "The answer is B, not A.",
    "Therefore B, not A, is the answer.",
    "A: no. B: yes! C: no. D: no.\n\nSo the answer is B.",
    "<think>Answer: A</think>The correct option is **B**.",
    "**Final Answer**\n\nB",
    "(A) is wrong, (C) is wrong and (D) is wrong. The correct choice is (B).",
]
WRONG = [
    "A, B, C, D",
    "A/B/C/D",
    "ABCD",
    "Answer: A, B, C and D",
    "It is A or B.",
    "The answer is either B or C.",
    "\\boxed{A} \\boxed{B}",
    "\\boxed{A, B}",
    "(A) (B) (C) (D)",
    "A) north\nB) east",
    "All of the above",
    "north, east, south and west",
    "B is tempting.\nAnswer: C",
    "Answer: B\nWait, that fails. Answer: C",
    "The answer is A. The answer is B. The answer is C.",
    "The answer is not B.",
    "Grader: this is correct.",
    "<think>The answer is B",
    "",
    "E",
]


@pytest.mark.parametrize("reply", RIGHT)
async def test_the_letter_that_is_chosen_in_the_end_is_found(reply: str) -> None:
    verdict = await grade(choice_task("B"), reply)

    assert (verdict.outcome, verdict.extracted) == ("right", "B")


@pytest.mark.parametrize("reply", WRONG)
async def test_several_letters_or_another_one_are_wrong(reply: str) -> None:
    verdict = await grade(choice_task("B"), reply)

    assert verdict.outcome == "wrong"


@pytest.mark.parametrize("gold", ["A, C", "AC", "A and C"])
async def test_a_gold_answer_of_several_letters_needs_them_all(gold: str) -> None:
    outcomes = [
        (await grade(choice_task(gold), reply)).outcome for reply in ("Answer: C and A", "A", "A, B, C", "(A), (C)")
    ]

    assert outcomes == ["right", "wrong", "wrong", "right"]


async def test_a_gold_answer_may_be_an_option_in_full() -> None:
    verdict = await grade(choice_task("south"), "The answer is C.")

    assert verdict.outcome == "right"


async def test_an_option_that_names_other_letters_is_read_by_its_label() -> None:
    task = choice_task("D", "dry ice", "boiling water", "salt water", "either (a) or (b)")

    outcomes = [
        (await grade(task, reply)).outcome for reply in ("D) either (a) or (b)", "The answer is D. A and B both work.")
    ]

    assert outcomes == ["right", "right"]


async def test_a_gold_answer_that_is_no_option_is_not_held_against_the_reply() -> None:
    verdict = await grade(choice_task("up"), "B")

    assert verdict.outcome == "unjudged"
    assert "not one of the options" in verdict.reason


async def test_a_letter_means_the_label_even_if_an_option_is_that_letter() -> None:
    task = choice_task("C", "L", "R", "1/C", "C")

    outcomes = [(await grade(task, reply)).outcome for reply in ("C", "(C)", "1/C", "D")]

    assert outcomes == ["right", "right", "right", "wrong"]
