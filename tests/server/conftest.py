"""`wfdsl serve` as a process of its own, on a provider that is scripted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import openai
import pytest

from tests.running_server import RunningServer

from .provider import CONDUCTOR, Provider

POOL = """
[pool]
name = "two"
conductor = "{conductor}"

[pool.defaults]
provider = "openai"
base_url = "{url}"
prices = {{ input = 1.0, output = 2.0 }}
retries = 0

[[pool.workers]]
name = "ann"
model = "ann"

[[pool.workers]]
name = "bob"
model = "bob"

[[pool.workers]]
name = "{conductor}"
model = "{conductor}"
"""
WORKFLOW = 'step plan by ann: "Plan it."\nstep solve by bob sees plan: "Solve it."\n'


class ServerProcess(RunningServer):
    """A running `wfdsl serve`."""

    def __init__(self, folder: Path, *options: str) -> None:
        super().__init__(folder, "-m", "wfdsl", "serve", "--port", "0", *options)

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.url.removeprefix("http://").removesuffix("/v1").split(":")
        return host, int(port)

    @property
    def client(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.url, api_key="none", max_retries=0, timeout=60)


Serve = Callable[..., ServerProcess]


@pytest.fixture
def provider() -> Iterator[Provider]:
    found = Provider()
    yield found
    found.close()


@pytest.fixture
def serve(provider: Provider, tmp_path: Path) -> Iterator[Serve]:
    (tmp_path / "pool.toml").write_text(POOL.format(url=provider.url, conductor=CONDUCTOR))
    (tmp_path / "two.wf").write_text(WORKFLOW)
    running: list[ServerProcess] = []

    def start(*options: str) -> ServerProcess:
        running.append(ServerProcess(tmp_path, "--pool", "pool.toml", "--workflow", "two.wf", *options))
        return running[-1]

    yield start
    provider.released.set()
    for each in running:
        if each.process.stderr is not None and not each.process.stderr.closed:
            each.stop()


@pytest.fixture(scope="module")
def module_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one server for all tests of a module that call no worker."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "pool.toml").write_text(POOL.format(url="http://127.0.0.1:9/v1", conductor=CONDUCTOR))
    (folder / "two.wf").write_text(WORKFLOW)
    server = ServerProcess(folder, "--pool", "pool.toml", "--workflow", "two.wf")
    yield server.url
    server.stop()
