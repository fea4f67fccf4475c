"""The same completions for each engine, scored in its process or by a reward server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import ENVIRONMENTS, HERE
from tests.engines.ray_cluster import Cluster
from wfdsl_rl.gym.source import tasks as make

TASKS = 12
POOL = "gym/seven"
GOOD = (
    "model_id = [1, 0, 2]\n"
    'subtasks = ["Make a plan. Do not solve it.", "Solve it by the plan.", "Check the solution and give the answer."]\n'
    "access_list = [[], [0], [0, 1]]"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs an engine, and skip it where that is not installed."""
    for item in items:
        engine = item.path.stem.split("_")[1]
        if HERE in item.path.parents and (HERE / "requirements" / f"{engine}.txt").is_file():
            item.add_marker(pytest.mark.engines)
            if not (ENVIRONMENTS / engine / "bin/python").exists():
                item.add_marker(pytest.mark.skip(reason=f"needs {engine}: run `make engines`"))


def run_in(engine: str, folder: Path, *command: str, **more: str) -> str:
    """What a command prints that is run in an engine's environment, which has the core of this package."""
    found = ENVIRONMENTS / engine / "bin"
    done = subprocess.run(
        [str(found / command[0]), *command[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PATH": f"{found}:{os.environ['PATH']}", **more},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def write_tasks(folder: Path) -> None:
    """The tasks as a file."""
    tasks = [task for task in make(POOL, 60, seed=3) if task.kind in ("math", "choice")][:TASKS]
    (folder / "tasks.jsonl").write_text("".join(task.model_dump_json() + "\n" for task in tasks))


@pytest.fixture(scope="session")
def three_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("home"))
    yield found
    found.close()


@pytest.fixture
def cluster(three_nodes: Cluster, tmp_path: Path) -> Cluster:
    """A cluster of three nodes; its `folder` is the test's."""
    three_nodes.folder = tmp_path
    return three_nodes
