"""`wfdsl serve --score` as a process of its own, on a provider that counts what it is asked."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import httpx2
import pytest

from tests.interpreter.chat_server import ChatServer, Refused
from tests.running_server import RunningServer
from wfdsl_rl.engines.client import RewardClient

POOL = """
[pool]
name = "two"

[pool.defaults]
provider = "openai"
base_url = "{url}"
prices = {{ input = 1000.0, output = 2000.0 }}
max_tokens = 20
retries = 3

[[pool.workers]]
name = "ann"
model = "ann"

[[pool.workers]]
name = "bob"
model = "bob"
"""
post, get = partial(httpx2.post, timeout=60.0, verify=False), partial(httpx2.get, timeout=60.0, verify=False)
"""Requests that wait on a busy machine, and read no certificates."""
FLOW = 'step plan by ann: "Plan it."\nstep solve by bob sees plan: "Solve it now."\n'
CALL_USD = 10 * 1000e-6 + 2 * 2000e-6
"""What the provider's reply costs."""


def completion(*subtasks: str) -> str:
    """A workflow of steps one after the other, each with a subtask that the provider is asked."""
    workers = [number % 2 for number in range(len(subtasks))]
    access = [[number - 1] if number else [] for number in range(len(subtasks))]
    return f"model_id = {workers}\nsubtasks = {json.dumps(list(subtasks))}\naccess_list = {access}"


def verdict(subtask: str) -> str:
    """What the provider of these tests answers to a subtask, each time the same."""
    return "yes" if crc32(subtask.encode()) % 2 else "no"


def eventually(what: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


class Provider(ChatServer):
    """Answers each subtask with its verdict, once `going` is set, and refuses requests that are more than `most` at
    once.
    """

    def __init__(self, *, delay_s: float = 0.0, most: int = 1000) -> None:
        self.going = threading.Event()
        self.going.set()
        self.inside, self.refusals, self._most = 0, 0, most
        self._lock = threading.Lock()
        super().__init__(delay_s=delay_s)

    def answer(self, body: dict[str, Any]) -> str:
        with self._lock:
            if self.inside >= self._most:
                self.refusals += 1
                raise Refused
            self.inside += 1
        try:
            super().answer(body)
            self.going.wait()
        finally:
            with self._lock:
                self.inside -= 1
        return verdict(self.asked_of(body))

    def close(self) -> None:
        self.going.set()
        super().close()

    @staticmethod
    def asked_of(body: dict[str, Any]) -> str:
        return str(body["messages"][-1]["content"]).rpartition("\n")[2]


class RewardProcess(RunningServer):
    """A running `wfdsl serve --score`."""

    def __init__(self, folder: Path, *options: str, prefix: tuple[str, ...] = ()) -> None:
        command = ["-m", "wfdsl", "serve", "--score", "--pool", "pool.toml", "--tasks", "tasks.jsonl"]
        command += ["--journal", "journal.db", *options]
        self._clients: list[RewardClient] = []
        super().__init__(folder, *command, prefix=prefix, env={"OPENAI_API_KEY": "none"})

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def client(self, **options: Any) -> RewardClient:
        self._clients.append(RewardClient(self.url, **{"patience_s": 60.0, **options}))
        return self._clients[-1]

    def stop(self, how: int = signal.SIGTERM) -> int:
        """End it, and close its clients; its exit code."""
        code = super().stop(how)
        while self._clients:
            self._clients.pop().close()
        return code


Serve = Callable[..., RewardProcess]


def write_files(folder: Path, url: str) -> None:
    """The pool, and two tasks."""
    (folder / "pool.toml").write_text(POOL.format(url=url))
    tasks = [{"id": f"t{number}", "question": f"Question {number}?", "gold": "yes"} for number in range(2)]
    (folder / "tasks.jsonl").write_text("".join(json.dumps({**task, "kind": "text"}) + "\n" for task in tasks))


@pytest.fixture
def provider() -> Iterator[Provider]:
    found = Provider()
    yield found
    found.close()


@pytest.fixture
def serve(provider: Provider, tmp_path: Path) -> Iterator[Serve]:
    write_files(tmp_path, provider.url)
    running: list[RewardProcess] = []

    def start(*options: str, port: int = 0, prefix: tuple[str, ...] = ()) -> RewardProcess:
        running.append(RewardProcess(tmp_path, "--port", str(port), *options, prefix=prefix))
        return running[-1]

    yield start
    for each in running:
        each.stop(signal.SIGKILL)
