"""The pages of evaluations: from tables to trials to runs."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from wfdsl import Evaluation, Journal, Pool, Task, evaluate
from wfdsl.evaluation.policy_names import policies_of
from wfdsl.viewer.app import Viewer

from .conftest import client_of


async def four(messages: list[dict[str, str]]) -> str:
    return "The answer is 4."


async def five(messages: list[dict[str, str]]) -> str:
    return "The answer is 5."


def evaluated(home: Path) -> Path:
    """The folder of an evaluation of two workers on four tasks, with its runs in the journal beside it."""
    pool = Pool.from_functions([four, five])
    tasks = [
        Task(id=str(n), question=f"What is {n} + 1?", gold=str(n + 1), kind="text", metadata={"domain": "ab"[n % 2]})
        for n in range(1, 5)
    ]
    evaluation = Evaluation(policies=policies_of(["workers"], pool), tasks=tasks, pool=pool, id="e1")
    found = home / "evaluations" / "first"

    async def work() -> None:
        with Journal(home / "journal.db") as journal:
            await evaluate(evaluation, out=found, journal=journal)

    asyncio.run(work())
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return evaluated(tmp_path)


@pytest.fixture
def client(tmp_path: Path, folder: Path) -> Iterator[TestClient]:
    with client_of(Viewer(tmp_path / "journal.db", [tmp_path])) as client:
        yield client


def test_evaluations_are_found_in_folders_below_and_one_that_is_damaged_is_named(
    client: TestClient, tmp_path: Path, folder: Path
) -> None:
    other = tmp_path / "evaluations" / "other"
    other.mkdir()
    (other / "manifest.json").write_text((folder / "manifest.json").read_text()[:-30])

    page = client.get("/view/evaluations").text

    assert '<a href="/view/evaluations/e1">e1</a>' in page
    assert str(folder) in page
    assert '<a href="/view/evaluations" aria-current="page">Evaluations</a>' in page
    assert str(other / "manifest.json") in page
    assert client.get("/view/evaluations/e2").status_code == 404


def test_each_figure_leads_to_its_trials_and_each_trial_to_its_run(client: TestClient) -> None:
    page = client.get("/view/evaluations/e1").text
    assert "25.0 ±" in page
    address = re.search(r'href="(/view/evaluations/e1\?[^"]*benchmark=a[^"]*)"', page)
    assert address

    trials = client.get(html.unescape(address[1])).text

    assert "2 trials" in trials
    assert "benchmark: a" in trials
    run = re.search(r'href="(/view/runs/[^"]+)"', trials)
    assert run
    assert client.get(run[1]).status_code == 200
