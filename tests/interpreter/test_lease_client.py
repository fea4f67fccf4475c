"""What a process draws leases with, at servers that are gone, or that answer something else."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from wfdsl.errors import UsageError
from wfdsl.interpreter.budget import BudgetUsage
from wfdsl.interpreter.leases import LeaseClient
from wfdsl.protocols import WorkerFailure

BOUND = BudgetUsage(1, 100, 0.5)
SOON_S = 20.0
"""More than a stop takes on a busy machine, and less than the patience of any client here."""


class Other(BaseHTTPRequestHandler):
    """A server of something else."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def other_url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def closed_url() -> Iterator[str]:
    """An address where connections are refused."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture
def silent_url() -> Iterator[str]:
    """An address that accepts connections, and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


async def test_an_answer_without_leases_fails_every_call_that_waits(other_url: str) -> None:
    with LeaseClient(other_url) as leases:
        async with asyncio.timeout(SOON_S):
            found = await asyncio.gather(*(leases.take("ann", BOUND) for _ in range(3)), return_exceptions=True)

    assert [type(each) for each in found] == [UsageError] * 3
    assert "answers without leases: {}" in str(found[0])


async def test_a_server_that_is_gone_is_told_of_once_and_fails_the_calls_in_the_end(closed_url: str) -> None:
    said: list[str] = []
    with LeaseClient(closed_url, patience_s=1.0, say=said.append, silence_s=0.2) as leases:
        found = await asyncio.gather(*(leases.take(name, BOUND) for name in ("ann", "bob")), return_exceptions=True)

    assert [type(each) for each in found] == [WorkerFailure] * 2
    assert f"the server at {closed_url} does not answer" in str(found[0])
    (line,) = said
    assert f"the server at {closed_url} does not answer" in line


@pytest.mark.parametrize("url", ["closed_url", "silent_url"])
async def test_closing_ends_requests_that_are_not_answered(url: str, request: pytest.FixtureRequest) -> None:
    leases = LeaseClient(request.getfixturevalue(url))
    waiting = asyncio.create_task(leases.take("ann", BOUND))
    await asyncio.sleep(0.2)
    waiting.cancel()
    await asyncio.wait([waiting])
    began = time.monotonic()

    leases.close()

    assert time.monotonic() - began < SOON_S
