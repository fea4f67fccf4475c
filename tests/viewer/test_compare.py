"""Two runs side by side."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

import wfdsl
from wfdsl.viewer.compare import aligned, diff

from .conftest import KEEP, WRITTEN, Ask, conductor_of, plan, solve

texts = st.text(st.sampled_from("ab .\n\té"), max_size=30)


@given(texts, texts)
def test_a_diff_holds_both_texts_whole(first: str, second: str) -> None:
    parts = diff(first, second)

    assert first != second or {part.change for part in parts} <= {"same"}
    assert "".join(part.text for part in parts if part.change != "added") == first
    assert "".join(part.text for part in parts if part.change != "removed") == second


def test_long_texts_are_compared_by_line() -> None:
    long = "one two three four\n" * 2000
    assert [part.change for part in diff(long, long + "more\n")] == ["same", "added"]


def test_steps_with_equal_subtasks_are_aligned(ask: Ask) -> None:
    first = ask(workflow=wfdsl.Workflow.from_lists([0, 1], ["Plan the work.", "Solve the task."], [[], [0]]))
    second = ask(
        workflow=wfdsl.Workflow.from_lists(
            [0, 0, 0], ["Plan the work.", "Check the plan.", "Solve the task."], [[], [0], [0, 1]]
        )
    )

    (workflow,) = aligned(first, second)

    ids = [(pair.first and pair.first.id, pair.second and pair.second.id) for pair in workflow.pairs]
    assert ids == [("0", "0"), (None, "1"), ("1", "2")]
    assert [pair.differences for pair in workflow.pairs] == [
        (),
        ("only in the second run",),
        ("worker", "access", "reply"),
    ]


def test_the_page_shows_figures_answers_and_steps_of_both(client: TestClient, ask: Ask) -> None:
    async def other(messages: list[dict[str, str]]) -> str:
        return "The answer is 5."

    first, second = ask(), ask(pool=wfdsl.Pool.from_functions([plan, other]))

    page = client.get(f"/view/compare?run={first.id}&run={second.id}").text

    assert "The answer is <del>4</del><ins>5</ins>." in page
    assert f'href="/view/runs/{first.id}#step=1"' in page
    assert f'href="/view/runs/{second.id}#step=1"' in page
    assert "differs in: worker, reply" in page
    assert '<th scope="row">status</th><td>done</td><td>done</td>' in page


def test_a_run_without_an_answer_says_why(client: TestClient, ask: Ask) -> None:
    async def fail(messages: list[dict[str, str]]) -> str:
        raise ValueError("the worker gave up")

    first, second = ask(), ask(pool=wfdsl.Pool.from_functions([plan, fail]))

    page = client.get(f"/view/compare?run={first.id}&run={second.id}").text

    assert "The second run has no answer: " in page
    assert "the worker gave up" in page
    assert "<del>" not in page


def test_a_conductor_s_rounds_are_compared_one_by_one(client: TestClient, ask: Ask, journal: object) -> None:
    pool = wfdsl.Pool.from_functions([plan, solve])
    first = conductor_of(WRITTEN, KEEP).solve_sync("Q", pool, journal=journal).run
    second = conductor_of(WRITTEN, WRITTEN).solve_sync("Q", pool, journal=journal).run

    assert [len(workflow.pairs) for workflow in aligned(first, second)] == [2, 2]
    page = client.get(f"/view/compare?run={first.id}&run={second.id}").text
    assert "only in the second run" in page
    assert f"/view/runs/{second.id}#step=0.1.1" in page


def test_two_ticked_runs_are_compared(client: TestClient, ask: Ask) -> None:
    first, second = ask("One?"), ask("Two?")

    assert f'name="run" value="{first.id}"' in client.get("/view/").text
    assert client.get(f"/view/compare?run={first.id}&run={second.id}").status_code == 200
    assert client.get(f"/view/compare?run={first.id}").status_code == 400
    assert client.get(f"/view/compare?run={first.id}&run=none").status_code == 404
