"""Sentences that state a value are right; those that deny, change, hedge or ask are not, with whatever value."""

from __future__ import annotations

import pytest

from tests.grading.answers import choice_task, math_task, text_task
from tests.grading.variants import (
    CHOICE_RIGHT,
    CHOICE_WRONG,
    NUMBER_RIGHT,
    NUMBER_WRONG,
    TEXT_RIGHT,
    TEXT_WRONG,
)
from wfdsl.grading.grade import grade
from wfdsl.tasks.task import Task

NUMBERS = ["204", "-204", "7.5", "\\frac{3}{4}", "2\\sqrt{3}"]


def filled(template: str, gold: str) -> str:
    """The sentence with the value, between dollar signs if it is LaTeX."""
    is_marked = "boxed" in template or "$" in template or "\\" not in gold
    return template.format(g=gold if is_marked else f"${gold}$")


def cases(right: tuple[str, ...], wrong: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(text, "right") for text in right] + [(text, "wrong") for text in wrong]


async def outcome_of(task: Task, reply: str) -> str:
    verdict = await grade(task, reply)
    return f"{verdict.outcome}: {verdict.extracted}" if verdict.outcome == "unjudged" else verdict.outcome


def fits(template: str, gold: str) -> bool:
    """LaTeX is not JSON, and math-verify reads no remainder."""
    return "\\" not in gold or ('"' not in template and "bmod" not in template)


@pytest.mark.parametrize(
    ("template", "outcome", "gold"),
    [
        (template, outcome, gold)
        for template, outcome in cases(NUMBER_RIGHT, NUMBER_WRONG)
        for gold in NUMBERS
        if fits(template, gold)
    ],
)
async def test_a_number_counts_if_the_words_around_it_leave_it_alone(template: str, outcome: str, gold: str) -> None:
    assert await outcome_of(math_task(gold), filled(template, gold)) == outcome


@pytest.mark.parametrize(("reply", "outcome"), cases(CHOICE_RIGHT, CHOICE_WRONG))
async def test_a_letter_counts_if_it_is_chosen(reply: str, outcome: str) -> None:
    assert await outcome_of(choice_task("C", "Venus", "Mercury", "Earth", "Mars"), reply) == outcome


@pytest.mark.parametrize(("reply", "outcome"), cases(TEXT_RIGHT, TEXT_WRONG))
async def test_a_text_counts_if_it_is_stated(reply: str, outcome: str) -> None:
    assert await outcome_of(text_task("Paris"), reply) == outcome


@pytest.mark.parametrize(
    ("gold", "reply"),
    [
        ("-204", "The answer is negative 204."),
        ("-204", "It is minus 204 degrees."),
        ("3.5", "The answer is 3½ cups."),
        ("16\\pi", "The answer is 16π cm²."),
        ("16\\pi", "\\boxed{16\\pi \\text{ cm}^2}"),
        ("\\pm 3", "The answer is x = 3 or x = -3."),
        ("150", "It takes 150 minutes (2 hours and 30 minutes)."),
        ("150", "The answer is 150 minutes (2 hours and 30 minutes)."),
        ("52_8", "The answer is 52 in base 8."),
        ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\boxed{\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}}"),
        ("\\frac{1}{3}", "\\boxed{\\frac{1}{3} \\approx 0.33}"),
        ("204", "\\boxed{204.3 \\approx 204}"),
        ("2\\sqrt{3}", "\\boxed{\\sqrt{12} = 2\\sqrt{3} \\approx 3.46}"),
        ("204", "\\boxed{204_{10}}"),
        ("18", "She has <<9*2=18>>18 more eggs than the others."),
        ("6", "6 students do not like either fries or burgers."),
    ],
)
async def test_other_ways_to_write_a_value_are_right(gold: str, reply: str) -> None:
    assert await outcome_of(math_task(gold), reply) == "right"


@pytest.mark.parametrize(
    "answer", ["\\neq 5", "<5", "10^{10^{10}}", "5" + "+0" * 600, "5 \\bmod 7", "\\sqrt{" * 300 + "5" + "}" * 300]
)
async def test_an_answer_that_cannot_be_compared_with_a_plain_number_is_wrong(answer: str) -> None:
    assert await outcome_of(math_task("5"), f"\\boxed{{{answer}}}") == "wrong"
