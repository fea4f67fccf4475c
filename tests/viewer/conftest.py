"""A journal with real runs on scripted workers, and a client of its pages that has the key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import wfdsl
from tests.interpreter.toy_workers import always, pool_of
from wfdsl.conductor.named import named_conductor
from wfdsl.experiment import Experiment
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


POOL = """
[pool]
name = "two"
[[pool.workers]]
name = "quick"
provider = "scripted"
prices = { input = 1, output = 2 }
max_tokens = 100
options = { replies = ["Multiply.", "170 km", "180 km"] }
[[pool.workers]]
name = "careful"
provider = "scripted"
prices = { input = 5, output = 10 }
max_tokens = 100
options = { replies = ["It is 180 km."] }
"""


def conductor_of(*completions: str) -> wfdsl.Conductor:
    """A Conductor that writes these completions, in turn."""
    left = list(completions)

    async def conduct(call: Call) -> Reply:
        return Reply(left.pop(0))

    return wfdsl.Conductor(conduct, reasks=1)


def conduct(pool_file: Path, journal: Path) -> wfdsl.Run:
    """The run of a Conductor that is found again by its name, `boss`: round 0, and a round 1 that keeps its answer.

    The pool file is written. When the script begins again, the Conductor revises the workflow in round 1.
    """
    script = f"options = {{ replies = ['''{WRITTEN}''', '''{KEEP}'''], repeat = true }}"
    boss = f'[[pool.workers]]\nname = "boss"\nprovider = "scripted"\nprices = {{ input = 1, output = 2 }}\n{script}\n'
    pool_file.write_text(POOL.replace("] }", "], repeat = true }") + boss + "max_tokens = 200\n")
    pool, origin = wfdsl.Pool.load(str(pool_file)), {"pool": str(pool_file), "solve": "boss"}
    conductor = named_conductor(wfdsl.ConductorConfig(model="boss"), pool)
    return conductor.solve_sync("How far?", pool, journal=journal, origin=origin).run


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

    workers = always("First add, then check."), always("The answer is 4."), Delegate()
    entries = [{"name": "plan"}, {"name": "solve"}, {"name": "boss", "provider": "conductor"}]
    return pool_of(*workers, entries=entries)


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
def pool_file(tmp_path: Path) -> Path:
    """A file with two scripted workers that have prices."""
    path = tmp_path / "pool.toml"
    path.write_text(POOL)
    return path


@contextmanager
def client_of(viewer: Viewer, *, has_key: bool = True) -> Iterator[TestClient]:
    """A client of a viewer's pages, which are closed at the end; `with` it, runs that pages start go forward."""
    client = TestClient(Starlette(routes=[viewer.mount()]), base_url="http://127.0.0.1:8601", follow_redirects=False)
    client.headers["x-path"] = viewer.path
    if has_key:
        assert client.get(viewer.path).status_code == 303
    yield client
    viewer.close()


@pytest.fixture
def stranger(journal: Path) -> Iterator[TestClient]:
    """A client without the key."""
    with client_of(Viewer(journal), has_key=False) as client:
        yield client


@pytest.fixture
def client(journal: Path) -> Iterator[TestClient]:
    """A client that has opened the address with the key."""
    with client_of(Viewer(journal)) as client:
        yield client


@pytest.fixture
def pooled(journal: Path, pool_file: Path) -> Iterator[TestClient]:
    """A client of pages that have a pool, on which runs go forward."""
    experiment = Experiment(pool=wfdsl.Pool.load(str(pool_file)), pool_name=str(pool_file))
    with client_of(Viewer(journal, experiment=experiment)) as client, client:
        yield client
