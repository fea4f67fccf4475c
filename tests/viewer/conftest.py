"""A journal with real runs on scripted workers, and a client of its pages that has the key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import wfdsl
from wfdsl.protocols import Call, Reply
from wfdsl.viewer.app import Viewer

TWO = wfdsl.Workflow.from_lists([0, 1], ["Plan it.", "Solve it."], [[], [0]])
Ask = Callable[..., wfdsl.Run]


async def plan(messages: list[dict[str, str]]) -> str:
    return "First add, then check."


async def solve(messages: list[dict[str, str]]) -> str:
    return "The answer is 4."


WRITTEN = 'I plan.\nmodel_id = [0, 1]\nsubtasks = ["Plan it.", "Solve it."]\naccess_list = [[], [0]]\n'
KEEP = "model_id = []\nsubtasks = []\naccess_list = []"


def conductor_of(*completions: str) -> wfdsl.Conductor:
    """A Conductor that writes these completions, in turn."""
    left = list(completions)

    async def conduct(call: Call) -> Reply:
        return Reply(left.pop(0))

    return wfdsl.Conductor(conduct, reasks=1)


class Delegate:
    """A Conductor node: it asks its model once, runs one workflow and answers with that run's answer."""

    async def __call__(self, call: Call) -> Reply:
        async def write(own: Call) -> Reply:
            return Reply(WRITTEN)

        await call.run.ask(write, call.messages)
        run = await call.run.run(TWO)
        return Reply(str(run.answer))


def nesting_pool() -> wfdsl.Pool:
    """Workers 0 and 1 are plain, worker 2 is a Conductor."""

    async def planning(call: Call) -> Reply:
        return Reply("First add, then check.")

    async def solving(call: Call) -> Reply:
        return Reply("The answer is 4.")

    def entry(name: str, provider: str = "function") -> wfdsl.WorkerEntry:
        return wfdsl.WorkerEntry(name=name, provider=provider, retries=0, max_tokens=50)

    return wfdsl.Pool.from_workers(
        [(entry("plan"), planning), (entry("solve"), solving), (entry("boss", "conductor"), Delegate())]
    )


NESTED = wfdsl.Workflow.from_lists([0, 2, 1], ["Prepare.", "Delegate it.", "Conclude."], [[], [0], [1]])


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "home" / "journal.db"


@pytest.fixture
def ask(journal: Path) -> Ask:
    """Runs a workflow with the journal; a run that ends without an answer gives its record, too."""

    def run(question: str = "What is 2+2?", workflow: wfdsl.Workflow = TWO, **options: Any) -> wfdsl.Run:
        pool = options.pop("pool", None) or wfdsl.Pool.from_functions([plan, solve])
        try:
            return asyncio.run(wfdsl.run(workflow, question, pool, journal=journal, **options))
        except (wfdsl.RunFailed, wfdsl.BudgetExhausted) as error:
            return error.run

    return run


@pytest.fixture
def stranger(journal: Path) -> Iterator[TestClient]:
    """A client without the key."""
    viewer = Viewer(journal)
    client = TestClient(Starlette(routes=[viewer.mount()]), base_url="http://127.0.0.1:8601", follow_redirects=False)
    client.headers["x-path"] = viewer.path
    yield client
    viewer.close()


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    """A client that has opened the address with the key."""
    answer = stranger.get(stranger.headers["x-path"])
    assert answer.status_code == 303
    return stranger
