"""Majority votes: who is asked, what counts as the same answer, how ties are broken, and what the record holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wfdsl.evaluation.baselines.answer_selection import PICKER
from wfdsl.evaluation.baselines.voting import Ballot, MajorityVote, ballot, kind_of, majority
from wfdsl.interpreter.budget import Budget, BudgetTracker
from wfdsl.interpreter.journal import Journal

from .toys import Staff, staff


def saying(*replies: str) -> Staff:
    return staff(lambda asked, call: replies[call.path[-1]])


async def voted(*replies: str, question: str = "How much?", **settings: Any) -> str | None:
    team = saying(*replies)

    solution = await MajorityVote(n=len(replies), **settings).solve(question, team.pool())

    assert len(team.calls) == len(replies)
    return solution.answer


async def test_the_answer_that_most_attempts_give_wins_word_for_word() -> None:
    assert await voted("It is 4", "Answer: 5", "The answer is 5.", "7", "It is 5") == "Answer: 5"


async def test_of_answers_with_as_many_votes_the_earliest_wins() -> None:
    assert await voted("9", "8", "8 it is: 8", "9", "7") == "9"


async def test_spellings_of_the_same_number_are_one_answer() -> None:
    assert await voted("Answer: 3", r"\boxed{\frac{1}{2}}", "Answer: 0.5", "Answer: 1/2") == r"\boxed{\frac{1}{2}}"


async def test_letters_are_compared_where_the_question_has_options() -> None:
    question = "Which? (A) iron (B) gold"

    assert await voted("Answer: A", "Answer: (B)", "I take **B**", question=question) == "Answer: (B)"


async def test_words_are_compared_without_case_and_articles() -> None:
    assert await voted("Answer: Rome", "Answer: the Seine", "Answer: seine") == "Answer: the Seine"


async def test_programs_that_are_parsed_alike_are_one_answer() -> None:
    one, other = "```python\nx = 1\n```", "```python\nx=1  # one\n```"

    assert await voted("```python\nx = 2\n```", one, other) == one


async def test_attempts_without_an_answer_have_no_vote() -> None:
    assert await voted("", "", "Answer: 4", kind="math") == "Answer: 4"


async def test_without_any_answer_the_first_attempt_is_given() -> None:
    assert await voted("none", "", kind="math") == "none"


async def test_attempts_see_nothing_and_the_record_holds_them_all() -> None:
    team = saying("1", "2", "2")
    pool = team.pool()

    solution = await MajorityVote(worker=1, n=3).solve("How much?", pool)

    assert [(call.worker, call.seen) for call in team.calls] == [("bob", [])] * 3
    assert [step.response for step in solution.run.steps] == ["1", "2", "2", "2"]
    assert [step.worker for step in solution.run.steps] == [1, 1, 1, PICKER]
    assert solution.usage.total_tokens == 45
    assert solution.run.steps[3].list_usd == 0
    assert solution.run.list_usd == pytest.approx(45e-6)


async def test_the_count_is_not_charged() -> None:
    account = BudgetTracker(Budget(calls=3, tokens=1000))

    await MajorityVote(n=3).solve("How much?", saying("1", "2", "2").pool(), budget=account)

    assert account.spent[:2] == (3, 45)


async def test_replies_inside_the_question_are_no_attempts() -> None:
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "5"}, {"role": "user", "content": "?"}]

    solution = await MajorityVote(n=2).solve(talk, saying("4", "5").pool())  # type: ignore[arg-type]

    assert solution.answer == "4"


async def test_a_vote_that_the_journal_knows_asks_nobody(tmp_path: Path) -> None:
    team = saying("1", "2", "2")
    pool = team.pool()

    with Journal(tmp_path / "journal") as journal:
        first = await MajorityVote(n=3).solve("How much?", pool, journal=journal, run_id="vote")
        again = await MajorityVote(n=3).solve("How much?", pool, journal=journal, run_id="vote")

    assert (first.answer, again.answer, len(team.calls)) == ("2", "2", 3)


@pytest.mark.parametrize(
    ("question", "replies", "kind"),
    [
        ("Write f.", ["```python\ndef f(): ...\n```", "```\nx = 1\n```", "none"], "code"),
        ("Which?\nA) one\nB) two\n", ["A"], "choice"),
        ("How much?", ["It is 4", "Answer: five", "6"], "math"),
        ("Who wrote it?", ["Answer: Homer", "Answer: Virgil 2"], "text"),
    ],
)
def test_the_kind_of_answer_is_told_by_question_and_replies(question: str, replies: list[str], kind: str) -> None:
    assert kind_of(question, replies) == kind


async def test_a_majority_of_nothing_is_the_first() -> None:
    assert await majority([None, None]) == 0
    assert await majority([None, Ballot("math", "2")]) == 1


def test_a_program_that_cannot_be_parsed_stands_for_itself() -> None:
    found = ballot("```python\ndef f(:\n```", "code")

    assert found == Ballot("code", "def f(:")
