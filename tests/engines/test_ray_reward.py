"""`wfdsl-reward serve --engine ray`: programs are graded on the nodes of a cluster, and local models answer there."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.engines.ray_cluster import PYTHON, Cluster, eventually
from tests.grading.sandboxes import needs_sandbox
from tests.rl.engines.conftest import Provider, RewardProcess, completion, verdict, write_files
from wfdsl.errors import UsageError
from wfdsl.workers.model_folder import shipped_file

SAMPLES = 30
HERE_IS_NO_SANDBOX = ("env", "PATH=/nowhere")
"""What the server is started with, so that it cannot grade programs itself."""
PROGRAM = """```python
import time
end = time.process_time() + 0.2
while time.process_time() < end:
    pass
print({answer!r})  # {subtask}
```"""


class Programmer(Provider):
    """Answers each subtask with a program that takes a while and prints its verdict."""

    def answer(self, body: dict[str, Any]) -> str:
        super().answer(body)
        subtask = self.asked_of(body)
        return PROGRAM.format(answer=verdict(subtask), subtask=subtask)


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Programmer]:
    """A server that counts, with a pool that asks it, and a task that asks for a program."""
    found = Programmer()
    write_files(tmp_path, found.url)
    tests = {"style": "stdin", "inputs": [""], "expected": ["yes"], "timeout_s": 30.0}
    write_task(tmp_path, kind="code", gold="", tests=tests)
    yield found
    found.close()


@pytest.fixture
def serve(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[..., RewardProcess]]:
    running: list[RewardProcess] = []

    def start(*options: str) -> RewardProcess:
        command = ("--port", "0", "--engine", "ray", "--address", cluster.address, *options)
        running.append(RewardProcess(tmp_path, *command, prefix=HERE_IS_NO_SANDBOX, python=PYTHON))
        return running[-1]

    yield start
    for each in running:
        each.stop(signal.SIGKILL)


def write_task(folder: Path, **fields: Any) -> None:
    (folder / "tasks.jsonl").write_text(json.dumps({"id": "t0", "question": "Question?", **fields}) + "\n")


def samples(count: int = SAMPLES) -> list[dict[str, Any]]:
    return [{"task": "t0", "sample_id": f"s{n}", "completion": completion(f"Do {n}")} for n in range(count)]


def plain(results: list[Any]) -> list[Any]:
    """What does not depend on the time that it took."""
    return [{name: value for name, value in each.items() if name != "seconds"} for each in results]


def children(pid: int) -> list[int]:
    found = [child for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]
    return [int(child) for child in found]


@needs_sandbox
def test_programs_on_a_process_or_a_node_that_dies_are_graded_again_and_results_stay_the_same(
    cluster: Cluster, provider: Programmer, serve: Callable[..., RewardProcess], tmp_path: Path
) -> None:
    here = RewardProcess(tmp_path, "--port", "0", "--journal", "here.db")
    expected = here.client().score_sync(samples())
    here.stop()
    assert {each["outcome"] for each in expected} == {"right", "wrong"}

    server = serve()
    graders = eventually(lambda: found if len(found := cluster.processes("GradingProcess")) == 3 else None)
    with ThreadPoolExecutor(1) as threads:
        results = threads.submit(server.client().score_sync, samples())
        eventually(lambda: all(map(children, graders)))
        os.kill(graders[0], signal.SIGKILL)
        cluster.change("kill")
        found = results.result(240)
    cluster.change("add")

    assert plain(found) == plain(expected)
    assert any("its programs are placed again" in line for line in server.lines)
    assert set(Counter(provider.asked).values()) == {2}  # once here, and once on the cluster
    assert server.stop() == 0
    eventually(lambda: not cluster.processes("GradingProcess"))


def test_a_local_model_answers_on_a_node_and_one_that_dies_comes_back(
    cluster: Cluster, serve: Callable[..., RewardProcess], tmp_path: Path
) -> None:
    try:
        model = shipped_file()
    except UsageError as error:
        pytest.skip(str(error))
    settings = {"provider": "local", "model": str(model), "max_tokens": 4, "timeout_s": 240.0}
    fields = "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
    (tmp_path / "pool.toml").write_text(f'[pool]\nname = "small"\n\n[[pool.workers]]\nname = "small"\n{fields}')
    write_task(tmp_path, kind="text", gold="yes")
    server = serve()
    client, (first, second, third) = server.client(patience_s=240.0), samples(3)

    (before,) = client.score_sync([first])
    (process,) = cluster.processes("ModelProcess")
    (model_server,) = children(process)
    os.kill(model_server, signal.SIGKILL)
    (between,) = client.score_sync([second])
    assert cluster.processes("ModelProcess") == [process]
    os.kill(process, signal.SIGKILL)
    (after,) = client.score_sync([third])

    assert {each["outcome"] for each in (before, between, after)} <= {"right", "wrong"}
    assert all(each["tokens"] for each in (before, between, after))
    assert any("is placed again" in line for line in server.lines)
    assert server.stop() == 0
    eventually(lambda: not cluster.processes("ModelProcess"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "these tasks and this pool have neither: leave it out"),
        (("--address", "127.0.0.1:1"), "no Ray cluster can be used at 127.0.0.1:1"),
    ],
)
def test_what_cannot_be_placed_is_an_error(
    options: tuple[str, ...], message: str, serve: Callable[..., RewardProcess], tmp_path: Path
) -> None:
    write_files(tmp_path, "http://127.0.0.1:1")

    with pytest.raises(AssertionError, match=message) as failed:
        serve(*options)

    assert "Traceback" not in str(failed.value)
