"""The list of runs: what it shows, filters and folds."""

from __future__ import annotations

import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import get_args

from starlette.testclient import TestClient

from wfdsl.protocols import RunStatus
from wfdsl.viewer.changes import RunIndex

from .conftest import Ask


def questions(page: str) -> list[str]:
    return re.findall(r'<a href="/view/runs/[^"]+" dir="auto">([^<]*)</a>', page)


def test_without_a_journal_the_page_says_how_to_begin_and_a_damaged_one_is_an_error_page(
    client: TestClient, journal: Path
) -> None:
    answer = client.get("/view/")
    assert answer.status_code == 200
    assert "There are no runs yet" in answer.text

    journal.parent.mkdir(exist_ok=True)
    journal.write_bytes(b"no database" * 1000)
    answer = client.get("/view/")
    assert answer.status_code == 500
    assert "is not a database" in answer.text


def test_runs_are_listed_newest_first_with_what_they_did_and_filters_say_which(client: TestClient, ask: Ask) -> None:
    ask("What is 2+2?", origin={"file": "/tmp/two.wf"})
    ask("What is 3+3?")

    page = client.get("/view/").text

    assert questions(page) == ["What is 3+3?", "What is 2+2?"]
    assert "2 in the journal" in page
    assert "two.wf" in page
    assert '<span class="state done">done</span>' in page
    every = questions(page)
    for query, found in (
        ("text=3%2B3", every[:1]),
        ("text=WHAT+is", every),
        ("text=nothing", []),
        ("text=two.wf", every[1:]),
        ("status=done", every),
        ("status=failed", []),
        ("page=99", every),
        ("page=nonsense", every),
    ):
        assert questions(client.get(f"/view/?{query}").text) == found, query


def test_the_runs_of_an_evaluation_are_one_row_that_leads_to_them(client: TestClient, ask: Ask) -> None:
    for policy in ("worker:a", "worker:b"):
        ask(origin={"evaluation": "e1", "policy": policy, "task": "1"})
    ask("What is 3+3?")

    page = client.get("/view/").text

    assert questions(page) == ["What is 3+3?"]
    assert 'href="/view/?evaluation=e1" dir="auto">Evaluation of 2 runs</a>' in page
    assert len(questions(client.get("/view/?evaluation=e1").text)) == 2


def test_the_version_changes_with_the_runs_and_only_then(ask: Ask, journal: Path) -> None:
    index = RunIndex(journal)
    before = index.version()
    first = ask()
    after, of_first = index.version(), index.version(first.id)

    ask()

    assert before != after != index.version()
    assert index.version(first.id) == of_first
    assert index.version() == index.version()
    index.close()


def test_a_journal_that_was_replaced_is_read_again(ask: Ask, journal: Path, tmp_path: Path) -> None:
    index = RunIndex(journal)
    first = ask()
    assert [run.id for run in index.runs()] == [first.id]
    for path in journal.parent.glob("journal.db*"):
        if path.is_file():
            path.unlink()

    second = ask()

    assert [run.id for run in index.runs()] == [second.id]
    index.close()


def test_runs_are_found_by_every_status_that_a_run_has_and_by_no_other(client: TestClient) -> None:
    for status in get_args(RunStatus):
        assert client.get("/view/", params={"status": status}).status_code == 200
    assert client.get("/view/?status=odd").status_code == 400


def test_ten_thousand_runs_are_listed_within_a_second(client: TestClient, ask: Ask, journal: Path) -> None:
    ask("What is 0+0?")
    with closing(sqlite3.connect(journal)) as connection, connection:
        others = range(2, 10_001)
        connection.executemany(
            "INSERT INTO runs SELECT ?, id || ?, created + ?, status, owner, title || ?, request, record FROM runs "
            "WHERE number = 1",
            [(number, number, number, number) for number in others],
        )
        columns = "path, worker, status, started, finished, reply, error, calls, tokens, usd"
        connection.executemany(
            f"INSERT INTO calls (run, key, sample, {columns}) SELECT ?, key, ?, {columns} FROM calls WHERE run = 1",
            [(number, number) for number in others],
        )

    began = time.process_time()
    page = client.get("/view/").text
    found = client.get("/view/?text=0%2B0%3F9999").text
    took = time.process_time() - began

    assert "10,000 in the journal" in page
    assert questions(found) == ["What is 0+0?9999"]
    assert took < 1.0, f"{took:.2f} s of computing"
