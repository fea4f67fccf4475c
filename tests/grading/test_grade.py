"""`grade` as a whole: every kind, reflexive, silent about nothing; agreement with public data sets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grading.answers import choice_task, custom_task, math_task, text_task
from tests.grading.tables import rows
from wfdsl.errors import UsageError
from wfdsl.grading.grade import grade, grade_choice
from wfdsl.grading.mathematics import grade_math
from wfdsl.grading.text import grade_text
from wfdsl.grading.verdict import Verdict
from wfdsl.tasks.task import CodeTests, Task

SOLVED = [(row["answer"].split("####")[1].strip(), row["answer"]) for row in rows("gsm8k")]
SOLVED += [(row["answer"], row["solution"]) for row in rows("math500")]


@pytest.mark.parametrize(("gold", "solution"), SOLVED)
async def test_solutions_of_gsm8k_and_math_500_are_right(gold: str, solution: str) -> None:
    verdict = await grade(math_task(gold), solution)

    assert verdict.outcome == "right", verdict


@pytest.mark.parametrize("row", rows("mmlu_stem"), ids=lambda row: str(row["question"])[:30])
async def test_mmlu_options_are_right_by_letter_and_by_text(row: dict[str, Any]) -> None:
    letter, option = "ABCD"[row["answer"]], row["choices"][row["answer"]]
    task = choice_task(letter, *row["choices"])

    outcomes = [(await grade(task, reply)).outcome for reply in (letter, f"{letter}) {option}", f"Answer: {option}")]

    assert outcomes == ["right"] * 3


@given(st.text(min_size=1, max_size=60).filter(lambda gold: bool(gold.strip())), st.sampled_from("ABCDEFGHIJ"))
def test_every_text_and_letter_is_its_own_right_answer(gold: str, letter: str) -> None:
    assert grade_text(gold, gold).outcome == "right"
    assert grade_choice(letter, letter).outcome == "right"


@pytest.mark.parametrize(
    ("name", "text", "outcome", "credit"),
    [
        ("says_yes", "oh yes", "right", 1.0),
        ("says_yes", "oh no", "wrong", 0.0),
        ("half", "half", "wrong", 0.5),
        ("half", "all", "right", 1.0),
        ("half", "too much", "unjudged", 0.0),
        ("breaks", "hm", "unjudged", 0.0),
        ("returns_a_text", "hm", "unjudged", 0.0),
    ],
)
async def test_a_custom_grader_gives_a_bool_or_a_score_and_else_is_unjudged(
    name: str, text: str, outcome: str, credit: float
) -> None:
    verdict = await grade(custom_task(f"tests.grading.graders:{name}"), text)

    assert (verdict.outcome, verdict.credit) == (outcome, credit)


async def test_a_custom_grader_may_be_asynchronous_and_give_a_verdict() -> None:
    verdict = await grade(custom_task("tests.grading.graders:waits"), "hm")

    assert verdict == Verdict("wrong", "hm", "asynchronous")


async def test_a_built_in_grader_that_fails_is_unjudged(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> Verdict:
        raise IndexError("no such part")

    monkeypatch.setattr("wfdsl.grading.grade.grade_text", fail)

    verdict = await grade(text_task("Paris"), "Paris")

    assert verdict == Verdict("unjudged", reason="the text grader failed: IndexError: no such part")


@pytest.mark.parametrize("answer", [r"\ldots", r"\dots", r"\\", "|", ","])
async def test_an_answer_of_separators_alone_is_never_right(answer: str) -> None:
    assert [(await grade_math(gold, answer)).outcome for gold in ("5", "x + 1", "(1, 2)")] == ["wrong"] * 3


@pytest.mark.parametrize(
    "name",
    ["graders", "no_such_module_here:f", "tests.grading.graders:missing", "tests.grading.graders:NOT_A_FUNCTION"],
)
async def test_a_custom_grader_that_is_not_there_is_a_mistake_of_the_user(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        await grade(custom_task(name), "hm")


async def test_a_code_task_is_graded_by_running_the_program_of_the_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is run, and how it is graded, is tested with the sandbox; here, that the right program gets there."""
    asked: list[tuple[str, CodeTests]] = []

    async def grade_program(program: str, tests: CodeTests, *, sandbox: object = None) -> Verdict:
        asked.append((program, tests))
        return Verdict("right", program)

    monkeypatch.setattr("wfdsl.grading.grade.grade_program", grade_program)
    tests = CodeTests(style="function", entry_point="double", inputs=("[2]",), expected=("4",))
    task = Task(id="1", question="Double it.", gold="", kind="code", tests=tests)

    verdict = await grade(task, "```python\ndef double(n): return 2 * n\n```\n```python\nprint(double(2))\n```")
    nothing = await grade(task, "I cannot.")

    assert (verdict.outcome, asked) == ("right", [("def double(n): return 2 * n\n", tests)])
    assert nothing == Verdict("wrong", None, "no program was found")


async def test_a_custom_grader_of_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "graders_of_this_folder.py").write_text("def even(task, text):\n    return len(text) % 2 == 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])

    assert (await grade(custom_task("graders_of_this_folder:even"), "four")).outcome == "right"
