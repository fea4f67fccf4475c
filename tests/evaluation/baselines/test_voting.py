"""Majority votes: who is asked, what counts as the same answer, how ties are broken, and what the record holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from wfdsl.evaluation.baselines.baseline import PICKER, MajorityVote, kind_of
from wfdsl.interpreter.budget import Budget, BudgetTracker
from wfdsl.interpreter.journal import Journal

from .toys import Staff, staff


def saying(*replies: str) -> Staff:
    return staff(lambda asked, call: replies[call.path[-1]])


CODE = "```python\nx = {}\n```"


@pytest.mark.parametrize(
    ("replies", "wanted"),
    [
        pytest.param(["It is 4", "Answer: 5", "The answer is 5.", "7", "It is 5"], "Answer: 5", id="most, whole"),
        pytest.param(["9", "8", "8 it is: 8", "9", "7"], "9", id="tie"),
        pytest.param(["Answer: 3", r"\boxed{\frac{1}{2}}", "Answer: 0.5"], r"\boxed{\frac{1}{2}}", id="numbers"),
        pytest.param(["Answer: A", "Answer: (B)", "I take **B**"], "Answer: (B)", id="letters"),
        pytest.param(["Answer: Rome", "Answer: the Seine", "Answer: seine"], "Answer: the Seine", id="words"),
        pytest.param([CODE.format(2), CODE.format(1), CODE.format("1  # one")], CODE.format(1), id="programs"),
        pytest.param([CODE.format("("), CODE.format("( ")], CODE.format("("), id="no programs"),
        pytest.param(["", "", "Answer: 4"], "Answer: 4", id="one"),
        pytest.param(["none", ""], "none", id="no answer"),
    ],
)
async def test_the_answer_that_most_attempts_give_wins(replies: list[str], wanted: str) -> None:
    team, options = saying(*replies), "\nA. 5 B. 8" * ("(B)" in wanted)

    solution = await MajorityVote(n=len(replies)).solve(f"How much?{options}", team.pool())

    assert len(team.calls) == len(replies)
    assert solution.answer == wanted


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
