"""A step asked again from its page: the price first, then a new run that may not cost more."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import wfdsl
from wfdsl.interpreter.journal_reading import run_of, summaries

from .conftest import KEEP, POOL, WRITTEN, Ask, conduct, conductor_of

THREE = wfdsl.Workflow.from_lists([0, 0, 0], ["Plan it.", "Follow the plan.", "Answer."], [[], [0], [1]])
NAMES = ("plan", "solve", "answer")


@pytest.fixture
def run(pool_file: Path, ask: Ask) -> wfdsl.Run:
    """A run on a pool that is found again by its name."""
    pool, origin = wfdsl.Pool.load(str(pool_file)), {"pool": str(pool_file)}
    return ask("How far?", workflow=THREE, pool=pool, names=NAMES, origin=origin)


def fields(page: str) -> dict[str, str]:
    form = page[page.index('<form method="post"') :]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))


def turns() -> Iterator[None]:
    """Gives the event loop of the pages time, again and again, for a minute."""
    for _ in range(3000):
        yield
        time.sleep(0.02)


def ended(journal: Path, run_id: str) -> wfdsl.Run:
    """The record of a run, once it is over."""
    for _ in turns():
        found = {each.id: each for each in summaries(journal)}[run_id]
        record = run_of(journal, run_id)
        if found.status != "running" and (record.finished or record.status == "done"):
            return record
    raise AssertionError(f"run {run_id} did not end: {found}")


def test_the_page_says_what_is_asked_and_its_price(client: TestClient, run: wfdsl.Run, journal: Path) -> None:
    page = client.get(f"/view/runs/{run.id}/steps/1/redo").text

    assert "<dd>solve, answer</dd>" in page
    assert "1 reply, for nothing" in page
    shown = re.search(r"Ask again for at most \$(0\.\d{4})", page)
    assert shown
    assert 0 <= float(shown[1]) - float(fields(page)["price"]) < 0.0001
    assert '<option value="0" selected>quick</option>' in page
    other = client.get(f"/view/runs/{run.id}/steps/1/redo?worker=1").text
    assert float(fields(other)["price"]) > float(fields(page)["price"]) > 0
    assert [each.id for each in summaries(journal)] == [run.id]


def test_asking_again_starts_a_new_run_that_keeps_the_other_replies(
    client: TestClient, run: wfdsl.Run, journal: Path
) -> None:
    address = f"/view/runs/{run.id}/steps/2/redo"
    form = fields(client.get(f"{address}?worker=1&subtask=Say+it.").text)
    with client:
        answer = client.post(address, data=form)
        assert answer.status_code == 303
        new_id = answer.headers["location"].rpartition("/")[2]
        done = ended(journal, new_id)

    assert done.status == "done"
    assert done.answer == "It is 180 km."
    assert done.workflow[2].subtask == "Say it."
    assert done.paid_usd is not None
    assert 0 < done.paid_usd <= float(form["price"])
    assert [step.replayed for step in done.steps] == [True, True, False]
    assert done.settings["origin"]["from"] == run.id
    assert done.settings["budget"]["usd"] == pytest.approx(float(form["price"]))
    assert run_of(journal, run.id) == run
    assert "asked again" in client.get(f"/view/runs/{new_id}").text


def test_a_price_that_has_changed_is_shown_again_instead_of_paid(
    client: TestClient, run: wfdsl.Run, journal: Path, pool_file: Path
) -> None:
    address = f"/view/runs/{run.id}/steps/1/redo"
    form = fields(client.get(address).text)
    pool_file.write_text(POOL.replace("max_tokens = 100", "max_tokens = 1000"))

    answer = client.post(address, data=form)

    assert answer.status_code == 409
    assert fields(answer.text)["price"] != form["price"]
    assert [each.id for each in summaries(journal)] == [run.id]


@pytest.mark.parametrize("token", ["", "ü"])
def test_a_form_of_another_page_is_refused(client: TestClient, run: wfdsl.Run, journal: Path, token: str) -> None:
    address = f"/view/runs/{run.id}/steps/1/redo"
    form = fields(client.get(address).text) | {"token": token}

    assert client.post(address, data=form).status_code == 403
    assert [each.id for each in summaries(journal)] == [run.id]


def test_a_worker_that_is_not_there_and_a_pool_without_a_name_are_named(
    client: TestClient, run: wfdsl.Run, ask: Ask
) -> None:
    for path, said in (
        (f"{run.id}/steps/1/redo?worker=9", "has no worker"),
        (f"{run.id}/steps/1/redo?worker=²", "has no worker"),
        (f"{ask().id}/steps/1/redo", "was not loaded by name"),
    ):
        answer = client.get(f"/view/runs/{path}")
        assert answer.status_code == 400
        assert said in answer.text


@pytest.fixture
def conducted(pool_file: Path, journal: Path) -> wfdsl.Run:
    """The run of a Conductor that is found again by its name."""
    return conduct(pool_file, journal)


def test_a_step_of_a_conductor_s_round_is_asked_again_with_the_rounds_after_it(
    client: TestClient, conducted: wfdsl.Run, journal: Path
) -> None:
    address = f"/view/runs/{conducted.id}/steps/0.0.1/redo"
    page = client.get(address).text
    form = fields(page)
    assert "<dt>rounds after it</dt><dd>at most 1</dd>" in page
    assert "<dt>calls</dt><dd>at most 9</dd>" in page  # the step, then 3 completions and 5 steps
    assert "<select" not in page
    with client:
        new_id = client.post(address, data=form).headers["location"].rpartition("/")[2]
        done = ended(journal, new_id)

    assert (done.status, done.answer) == ("done", "It is 180 km.")
    first, second = done.steps[0].nested
    assert [step.replayed for step in first.steps] == [True, False]
    assert [step.replayed for step in second.steps] == [False, False]  # the Conductor wrote another round 1
    assert done.paid_usd is not None
    assert 0 < done.paid_usd <= float(form["price"])
    assert done.settings["budget"]["usd"] == pytest.approx(float(form["price"]))
    assert (done.settings["origin"]["from"], done.settings["origin"]["round"]) == (conducted.id, "0")
    assert run_of(journal, conducted.id) == conducted


@pytest.mark.parametrize(
    ("change", "step"),
    [(("Multiply.", "Divide."), "1"), (('name = "boss"', 'name = "boss"\ntemperature = 1'), "0.0.1")],
)
def test_what_kept_replies_do_not_fit_is_said_on_the_new_run_s_page_and_nothing_is_paid(
    client: TestClient,
    request: pytest.FixtureRequest,
    journal: Path,
    pool_file: Path,
    change: tuple[str, str],
    step: str,
) -> None:
    old = request.getfixturevalue("run" if step == "1" else "conducted")
    pool_file.write_text(pool_file.read_text().replace(*change))
    address = f"/view/runs/{old.id}/steps/{step}/redo"
    with client:
        new_id = client.post(address, data=fields(client.get(address).text)).headers["location"].rpartition("/")[2]
        for _ in turns():
            if "but to another request" in client.get(f"/view/runs/{new_id}").text:
                break
        else:
            raise AssertionError(client.get(f"/view/runs/{new_id}").text)
    assert {each.id: each for each in summaries(journal)}[new_id].charged.usd == 0


def test_only_steps_of_rounds_are_asked_again_and_only_of_a_conductor_with_a_name(
    client: TestClient, conducted: wfdsl.Run, journal: Path, pool_file: Path
) -> None:
    assert client.get(f"/view/runs/{conducted.id}/steps/0/redo").status_code == 404
    pool = wfdsl.Pool.load(str(pool_file))
    unnamed = conductor_of(WRITTEN, KEEP).solve_sync("Q", pool, journal=journal, origin={"pool": str(pool_file)}).run

    answer = client.get(f"/view/runs/{unnamed.id}/steps/0.0.1/redo")

    assert answer.status_code == 400
    assert "conductor.model" in answer.text
