"""Which answers are equal to a gold one, by their normal forms."""

from __future__ import annotations

import pytest

from tests.grading.answers import choice_task, math_task, text_task
from wfdsl import Task, grade
from wfdsl.grading.mathematics import grade_math
from wfdsl.grading.text import same_text

EQUAL = [
    ("5", "5.0"), ("5", r"\color{red}{5}"), ("5", r"\large 5"), ("5", "x = 5"), ("5", "5 apples"), ("5", "10 - 5 = 5"),
    ("1024000", "1{,}024{,}000"), ("1024000", r"1.024\times 10^6"), ("18000", "18k"), (r"\frac{1}{2}", "50\\%"),
    ("0.3", r"\frac{3}{10}"), ("8\\%", "8"), ("00:25", "0:25"), (r"\{1,2,3\}", r"\{1\}\cup\{2,3\}"), ("5", "{5}"),
    (r"x=5", "5"), ("y=2x+1", "1+2x"), (r"2x\cos(x^2)", r"\cos{x^2}\cdot 2x"), (r"5\sqrt2", r"\sqrt{50}"),
    (r"\mathrm{e}^2", "e^2"), (r"2+3\mathrm{i}", "2+3i"), (r"\emptyset", r"\text{no solution}"),
    ("1,2", r"2 \text{ and } 1"), (r"\mathbb{R}", r"\text{all reals}"),
    (r"\{-3,3\}", r"\pm 3"), (r"3\pm\sqrt5", r"3+\sqrt5 \text{ or } 3-\sqrt5"), (r"(-\infty,3)", "x<3"),
    ("(-1,1)", "|x|<1"), ("(0,6.5)", "0<x<6.5"), (r"(-\infty,-1)\cup(1,\infty)", r"x<-1 \text{ or } x>1"),
    ("(3,6)", "(x,y)=(3,6)"), (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", "[[1,2],[3,4]]"), ("52_8", "52_{8}"),
    (r"864\text{ inches}^2", r"864\text{ square inches}"), (r"16\pi", r"16\pi\text{ cm}^2"),
    (r"10:05\text{ a.m.}", "10:05 am"), ("10:05", "10:05 pm"), ("$5", "5 dollars"), ("5", "5 €"),
    (r"\sin^2(x)+\cos^2(x)+y", "y+1"), ("5 mph", "5 miles per hour"), (r"[2,\infty)", r"x\geqslant 2"),
    ("0.75 kg", "750 g"), ("2 h", "120 min"), (r"4.2\times 10^{-4}", "4.2 · 10^(−4)"), ("(3, 2)", "x = 3, y = 2"),
    ("2.5 h", "2 hours 30 minutes"), ("13:15", r"13\text{时}15\text{分}"), ("(3, 6)", "x = 3, y = 6"),
    (r"\frac{1}{3}", "三分之一"), ("2:25 pm", "14:25"), (r"\frac{5}{36}", r"\frac{5}{36}\approx 0.139"),
    ("(1,2)", r"\begin{pmatrix}1\\2\end{pmatrix}"), (r"[2,5)\cup(5,\infty)", r"\{x\in\mathbb{R} : x\ge2, x\ne5\}"),
    ("x=5\\text{ 或 }x=-1", "5 和 -1"), ("4.5小时", "4\\text{小时}30\\text{分钟}"), ("16\\pi", "16π 立方厘米"),
    ("(x, y) = (3, 1)", "y = 1, x = 3"), (r"\frac{x}{x-2}", r"f(x)=\frac{x}{x-2},\quad x\ne2"),
]  # fmt: skip
UNEQUAL = [
    ("5", "2x = 10"), ("5", r"x \ne 5"), ("5", "6 = 5"), ("5", r"5 \approx 6"), ("5", "5_8"),
    ("5", r"5\text{ plus one}"), ("a<b+c", r"a\le b+c"), ("5 m", "5 ms"),
    ("5", r"5\text{ or more}"), ("5", "(5,6)"), ("5", ""), ("68", "68\\%"),
    (r"\frac{1}{3}", "0.333333"), (r"9\pi", "28.274334"), ("A+b", "B+a"),
    (r"\frac{1}{20!}", r"\frac{1}{21!}"), ("e^{-40}", "e^{-41}"), (r"\ln(10^{30})", r"\ln(10^{30}+1)"),
    ("x=5", "y=5"), ("2k", "2K"), ("y=2x+1", "x=2y+1"), ("a^2-b^2", "b^2-a^2"), (r"\{-3,3\}", "(-3,3)"),
    ("(3,6)", "(6,3)"), ("(3,6)", "[3,6)"), (r"(-\infty,3)", r"(-\infty,3]"), (r"\emptyset", "0"),
    ("10:05 am", "10:05 pm"), (r"\$5", "5 €"), ("5 €", "$5"), ("23,24", "23,24,25"), ("120", "120!"),
    (r"\begin{pmatrix}1&2\end{pmatrix}", r"\begin{pmatrix}2&1\end{pmatrix}"), ("1,2,\\ldots,n", "1,3,\\ldots,n"),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "answer"), EQUAL)
async def test_equal_answers_are_right(gold: str, answer: str) -> None:
    assert (await grade_math(gold, answer)).outcome == "right"


@pytest.mark.parametrize(("gold", "answer"), UNEQUAL)
async def test_other_answers_are_never_right(gold: str, answer: str) -> None:
    assert (await grade_math(gold, answer)).outcome != "right"


@pytest.mark.parametrize(
    ("answer", "outcome"), [("0.3 m", "right"), ("30 cm", "right"), ("0.3 cm", "wrong"), ("30", "wrong")]
)
async def test_a_unit_is_the_one_that_the_question_asks_for(answer: str, outcome: str) -> None:
    verdict = await grade_math("0.3", answer, question="How long is each piece, in metres?")

    assert (verdict.outcome, verdict.rule) == (outcome, "exact numbers")


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("July 4, 1776", "4th July 1776"), ("café", "Cafe"), ("206", "two hundred six"), ("H2O", r"$\mathrm{H_2O}$"),
        ("the Nile", "Nile"), ("Karl Marx", "Marx"), ("1989", "Nineteen eighty-nine"), ("208年", "公元208年"),
    ],
)  # fmt: skip
def test_spelling_of_a_text_does_not_matter(gold: str, answer: str) -> None:
    assert same_text(gold, answer)


@pytest.mark.parametrize("answer", ["Paris or London", "Paris?", "Paris, Texas", "not Paris", "5 Paris"])
def test_a_text_that_says_more_is_another(answer: str) -> None:
    assert not same_text("Paris", answer)


async def test_any_of_several_accepted_answers_and_a_yes_with_its_reason_are_right() -> None:
    task = Task(id="1", question="Which city?", gold="New York", accepted=("NYC",), kind="text")

    assert (await grade(task, "Answer: NYC")).outcome == "right"
    assert (await grade(text_task("yes"), "Yes, because it rains.")).outcome == "right"


@pytest.mark.parametrize(
    ("gold", "reply", "outcome"),
    [
        ("Einstein", "Answer: Albert Einstein", "right"),
        ("谷神星", "谷神星还是智神星", "wrong"), ("Fleming", "Florey or Fleming.", "wrong"),
        ("Marx", "In 1848, Karl Marx wrote it.", "right"), ("Bohr", "It is merely a Bohr.", "wrong"),
    ],
)  # fmt: skip
async def test_a_person_may_be_named_in_full_or_described(gold: str, reply: str, outcome: str) -> None:
    assert (await grade(text_task(gold), reply)).outcome == outcome


@pytest.mark.parametrize(
    ("reply", "extracted"),
    [
        ("The answer is 7. \\boxed{8}", "8"), ("\\boxed{8}. So the answer is 7.", "7"), ("#### 8", "8"),
        ("<answer>\n8\n</answer>", "8"), ('{"answer": "8"}', "8"), ("因此答案是8。", "8"), ("答えは8です。", "8"),
        ("The answer is 7. No, it is 8.", "8"), ("It is not 7 but 8.", "8"), ("<think>7</think>The answer is 8.", "8"),
        ("The answer is 8. It had 3 parts.", "8"), ("Error 8", None), ("The answer is on page 8.", None),
        ("The answer is not 8.", None), ("The answer is 8. Wait, scratch that.", None), ("\\boxed{8", None),
        ("The answer is about 8.", None), ("7 \\boxed{8}. Or maybe 9.", None), ("We start with 8 and", None),
        ("x = \\boxed{7} or \\boxed{8}", "7, 8"), ("The answer is 8, or maybe 9.", None),
        ("It has its least value, 8, at x = 3.", "8"), ("", None), ("8?", None),
        ("First \\boxed{8}. Done: \\boxed{}", None), ("8. It has 3 parts.", "8"), ("xが3、yが1です。", "x = 3, y = 1"),
        ("x > 3 except x = 5.", "x > 3, x ≠ 5"), ("Not \\boxed{8}.", None), ("8元, 比原价少3元。", "8元"),
        ("「8」です。", "8"), ("Five root two.", "5 √ 2"),
        ("Because 3 + 5 = 8, it is 8.", "8"), ("One in six.", "1/6"), ("That gives 8 for each one.", "8"),
    ],
)  # fmt: skip
async def test_the_last_statement_counts_and_nothing_else(reply: str, extracted: str | None) -> None:
    verdict = await grade(math_task("8"), reply)

    assert (verdict.extracted, verdict.is_unanswered) == (extracted, extracted is None)


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("Answer: B", "right"), ("故选B。", "right"), ("正解はBです。", "right"),
        ("Mercury", "right"), ("(B) Mercury", "right"), ("You would say mercury. Venus and Mars are farther.", "right"),
        ("Answer: B. Venus", "wrong"), ("B or C", "wrong"), ("A. Venus\nB. Mercury\nC. Mars", "wrong"),
        ("Definitely B!", "right"), ("B. Planets differ.", "right"), ("Bを選びます。", "right"), ("不选B。", "wrong"),
        ("The answer is not B.", "wrong"), ("It is Mercury.\nAnswer: E", "wrong"), ("\\boxed{\\text{not B}}", "wrong"),
    ],
)  # fmt: skip
async def test_letter_and_option_agree(reply: str, outcome: str) -> None:
    assert (await grade(choice_task("B", "Venus", "Mercury", "Mars"), reply)).outcome == outcome


@pytest.mark.parametrize(
    ("reply", "extracted"),
    [("-1", "B"), ("Answer: −1", "B"), ("$-1$", "B"), ("1", "A"), ("It is x - 1.", "D"), ("x - 1", "D"), ("-2", None)],
)
async def test_options_that_differ_in_a_sign_are_told_apart(reply: str, extracted: str | None) -> None:
    assert (await grade(choice_task("A", "1", "-1", "x+1", "x-1", "2"), reply)).extracted == extracted


@pytest.mark.parametrize("reply", ["A", "(A)", "A because it is larger", "It is A."])
async def test_a_letter_answers_a_question_that_lists_its_options_itself(reply: str) -> None:
    task = Task(id="1", question="Which is larger, A 17 or B 8?", gold="A", kind="choice")

    assert (await grade(task, reply)).outcome == "right"


async def test_a_verdict_says_statement_normal_forms_and_rule() -> None:
    verdict = await grade(math_task(r"\frac{1}{2}"), "First.\nSo the answer is 0.5.")

    assert (verdict.statement, verdict.extracted, verdict.rule) == ("So the answer is 0.5.", "0.5", "exact numbers")
    assert "1/2 equals 1/2" in verdict.reason
