"""Which task a prompt is about, and what is remembered of samples."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfdsl.server.api_errors import ApiError
from wfdsl.tasks.task import Task
from wfdsl_rl.engines.questions import Questions
from wfdsl_rl.engines.samples import Sample, Tasks
from wfdsl_rl.engines.service import RecentResults
from wfdsl_rl.scoring import Rollout

TASK = Task(id="t", question="What is the sum of two and two?", gold="4", kind="text")
TEXTS = st.text("ab", min_size=1, max_size=40)


def tasks(*questions: str) -> Tasks:
    return Tasks({q: Task(id=q, question=q, gold="1", kind="text") for q in questions})


@given(questions=st.lists(TEXTS, unique=True), parts=st.lists(TEXTS), chosen=st.sets(st.integers(0, 9)))
def test_the_questions_of_a_prompt_are_those_that_it_holds(
    questions: list[str], parts: list[str], chosen: set[int]
) -> None:
    prompt = "".join([*parts, *(each for number, each in enumerate(questions) if number in chosen)])

    found = Questions(questions).held(prompt)

    assert sorted(found) == sorted(each for each in questions if each in prompt)


def test_a_prompt_is_about_the_longest_of_nested_questions_and_about_none_of_several() -> None:
    found = tasks("Why?", "Why? And how?", "What is it?")

    assert found.find({"prompt": "A list. Why? And how? Write."}).id == "Why? And how?"
    with pytest.raises(ApiError, match="several of this server's questions; give the task's id"):
        found.find({"prompt": "Why? And how? What is it?"})


@pytest.mark.parametrize("name", [["t"], {}, 7, True])
def test_the_name_of_a_task_is_a_text(name: Any) -> None:
    with pytest.raises(ApiError, match="task must be the id of a task, a text") as refused:
        tasks("Why?").find({"task": name})
    assert refused.value.status == 400


def result(text: str) -> dict[str, Any]:
    return {"final": ["Solve it.", text], "problems": []}


def sample(name: str) -> Sample:
    return Sample(name, Rollout(completion="", task=TASK, sample_id=name, origin={"sample": name}))


def test_results_are_remembered_until_they_fill_their_bytes() -> None:
    recent = RecentResults(400_000)
    for number in range(100):
        recent.add(sample(f"long{number}"), result("x" * 30_000))
        assert recent.bytes <= 400_000
    assert [recent.get(f"long{number}") is not None for number in (0, 87, 88, 99)] == [False, False, True, True]
    recent.add(sample("huge"), result("x" * 500_000))
    assert (recent.get("huge"), recent.get("long99"), recent.bytes) == (None, None, 0)

    recent.add(sample("a"), result("first"))
    recent.add(sample("a"), result("second"))

    assert recent.get("a") == ("a", result("second"))
    recent.add(sample("b"), result("third"))
    assert recent.get("b") == ("b", result("third"))


def test_no_more_than_4096_results_are_remembered() -> None:
    recent = RecentResults()
    for number in range(4097):
        recent.add(sample(str(number)), result("yes"))

    assert [recent.get(name) is None for name in ("0", "1", "4096")] == [True, False, False]
