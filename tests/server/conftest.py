"""`wfdsl serve` as a process of its own, on a provider that is scripted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import openai
import pytest

from tests.running_server import RunningServer
from wfdsl.experiment import read_experiment
from wfdsl.interpreter.journal import Journal
from wfdsl.server.app import build_app
from wfdsl.server.keys import ApiKeys
from wfdsl.server.models import served_models

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


class App:
    """The application in the test's own process, with these settings, on workers that are reached by sockets."""

    def __init__(
        self,
        folder: Path,
        url: str,
        *settings: str,
        pool: str = POOL,
        config: str = "",
        journal: bool = True,
        keys: ApiKeys | None = None,
    ) -> None:
        (folder / "wfdsl.toml").write_text(config)
        (folder / "pool.toml").write_text(pool.format(url=url, conductor=CONDUCTOR))
        (folder / "two.wf").write_text(WORKFLOW)
        found = read_experiment(folder / "wfdsl.toml", [f"pool.use={folder / 'pool.toml'}", *settings])
        self.journal = Journal(folder / "journal.db")
        self.lines: list[str] = []
        """The log."""
        models = served_models(found, [str(folder / "two.wf")])
        kept = self.journal if journal else None
        self._app = build_app(models, found.serve, keys=keys, journal=kept, log=self.lines.append)

    async def post(
        self, path: str = "chat/completions", headers: dict[str, str] | None = None, **fields: Any
    ) -> httpx2.Response:
        body = {"model": "two", "messages": [{"role": "user", "content": "Why?"}], **fields}
        async with self._client() as client:
            return await client.post(path, headers=headers, json=body)

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        async with self._client() as client:
            return await client.get(f"http://localhost{path}", headers=headers)

    def _client(self) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(self._app)
        return httpx2.AsyncClient(transport=transport, base_url="http://localhost/v1/", timeout=60)


@pytest.fixture
def app(provider: Provider, tmp_path: Path) -> Iterator[Callable[..., App]]:
    made: list[App] = []

    def start(*settings: str, **more: Any) -> App:
        made.append(App(tmp_path, provider.url, *settings, **more))
        return made[-1]

    yield start
    for each in made:
        each.journal.close()


Serve = Callable[..., ServerProcess]
FILES = ("--pool", "pool.toml", "--workflow", "two.wf")


def new_key() -> str:
    """An Idempotency-Key that no other test has."""
    return uuid4().hex


def prepare(folder: Path, url: str) -> None:
    """Write the files of a server whose workers are at this address."""
    (folder / "pool.toml").write_text(POOL.format(url=url, conductor=CONDUCTOR))
    (folder / "two.wf").write_text(WORKFLOW)


@pytest.fixture(scope="session")
def workers() -> Iterator[Provider]:
    found = Provider()
    yield found
    found.close()


@pytest.fixture
def provider(workers: Provider) -> Iterator[Provider]:
    """The workers of all servers, which know nothing of earlier tests."""
    workers.reset()
    yield workers
    workers.released.set()


@pytest.fixture(scope="session")
def shared(workers: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    folder = tmp_path_factory.mktemp("served")
    prepare(folder, workers.url)
    running: dict[tuple[str, ...], ServerProcess] = {}

    def start(*options: str) -> ServerProcess:
        if options not in running:
            running[options] = ServerProcess(folder, *FILES, *options)
        return running[options]

    yield start
    for each in running.values():
        each.stop()


@pytest.fixture
def serve(shared: Serve, provider: Provider) -> Serve:
    """A server with these options, which tests have in common."""
    return shared


@pytest.fixture
def server(serve: Serve) -> ServerProcess:
    """A server without options, which tests have in common."""
    return serve()


@pytest.fixture
def own(provider: Provider, tmp_path: Path) -> Iterator[Serve]:
    """Servers of one test, in its folder."""
    prepare(tmp_path, provider.url)
    running: list[ServerProcess] = []

    def start(*options: str) -> ServerProcess:
        running.append(ServerProcess(tmp_path, *FILES, *options))
        return running[-1]

    yield start
    provider.released.set()
    for each in running:
        each.stop()
