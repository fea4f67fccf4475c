"""What a process draws leases with, at servers that are gone, refuse, hang, or answer something else."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from wfdsl.errors import UsageError
from wfdsl.interpreter.budget import BudgetUsage
from wfdsl.interpreter.leases import LeaseClient
from wfdsl.protocols import WorkerFailure
from wfdsl.server_client import ServerClient, ServerGone, ServerRefused

BOUND = BudgetUsage(1, 100, 0.5)
SOON_S = 20.0
"""More than a stop takes on a busy machine, and less than the patience of any client here."""


class Answers(ThreadingHTTPServer):
    """Answers each path with a status and JSON, `{}` unless given."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.by_path: dict[str, tuple[int, object]] = {}
        self.asked: list[str] = []
        self.bodies: list[bytes] = []
        self.going = threading.Event()
        """Unset, requests with POST wait for it."""
        self.going.set()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Answers)
        self.server.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(self.path)
        self.server.going.wait(SOON_S)
        with suppress(ConnectionError):  # the client may have left
            self.do_GET()

    def do_GET(self) -> None:
        assert isinstance(self.server, Answers)
        status, answer = self.server.by_path.get(self.path, (200, {}))
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Answers]:
    with Answers() as found:
        threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True).start()
        yield found
        found.going.set()
        found.shutdown()


def refusal(status: int, message: str, code: str) -> tuple[int, object]:
    return status, {"error": {"message": message, "code": code}}


LEASE: tuple[int, object] = (200, {"leases": ["1"], "seconds": 60.0})
DOWN = refusal(503, "the disk is full", "journal_failed")


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


async def test_an_answer_without_leases_fails_every_call_that_waits(server: Answers) -> None:
    with LeaseClient(server.url) as leases:
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


def test_a_server_that_asks_to_come_again_is_told_of_as_one_that_refuses(server: Answers) -> None:
    said: list[str] = []
    server.by_path["/a"] = DOWN
    client = ServerClient(server.url, patience_s=0.3, say=said.append, silence_s=0.0)

    with pytest.raises(ServerGone) as gone:
        client.request("POST", "/a", {})
    client.close()

    assert str(gone.value) == f"the server at {server.url} refuses for now: the disk is full"
    (line,) = said
    assert line.startswith(f"the server at {server.url} refuses for now: the disk is full; it is asked for another")


def test_a_request_that_fails_while_others_succeed_is_told_of_once_until_it_succeeds(server: Answers) -> None:
    said: list[str] = []
    client = ServerClient(server.url, patience_s=SOON_S, say=said.append, silence_s=0.0)
    for _ in range(2):
        server.asked.clear()
        server.by_path["/a"] = DOWN
        failing = client.submit("POST", "/a", {})
        while server.asked.count("/a") < 4:
            client.request("POST", "/b", {})
        server.by_path["/a"] = (200, {})
        failing.result(SOON_S)
    client.close()

    assert len(said) == 2


def test_a_server_that_hangs_is_told_of_after_one_timeout(silent_url: str) -> None:
    said: list[str] = []
    client = ServerClient(silent_url, patience_s=1.9, timeout_s=1.0, say=said.append, silence_s=0.9)

    with pytest.raises(ServerGone, match=r"does not answer \(timed out\)"):
        client.request("POST", "/a", {})
    client.close()

    assert len(said) == 1


def test_a_server_that_is_busy_is_waited_for_beyond_the_patience(server: Answers) -> None:
    said: list[str] = []
    client = ServerClient(server.url, patience_s=1.0, timeout_s=0.5, say=said.append, silence_s=0.0)
    server.going.clear()
    asked = client.submit("POST", "/a", {})
    while server.asked.count("/a") < 3 and not asked.done():
        time.sleep(0.01)
    server.going.set()

    assert asked.result(SOON_S) == {}
    client.close()
    (line,) = said
    assert re.fullmatch(f"the server at {server.url} is still working on it \\(\\d+ s\\); it is waited for", line)


def test_a_server_that_was_busy_and_answers_no_more_is_told_of_and_given_up(server: Answers) -> None:
    said: list[str] = []
    client = ServerClient(server.url, patience_s=1.0, timeout_s=0.5, say=said.append, silence_s=0.0)
    server.going.clear()
    asked = client.submit("POST", "/a", {})
    while not said:
        time.sleep(0.01)
    server.by_path["/health"] = DOWN

    with pytest.raises(ServerGone, match=r"does not answer \(timed out\)"):
        asked.result(SOON_S)
    client.close()
    assert ["still working" in line for line in said] == [True, False]


def test_a_request_that_is_refused_as_too_large_while_it_is_sent_is_sent_once() -> None:
    heads: list[bytes] = []

    def refuse(listening: socket.socket) -> None:
        with suppress(OSError):  # the test is over
            while True:
                with listening.accept()[0] as connection:
                    heads.append(connection.recv(100))
                    content = json.dumps(refusal(413, "the body must have at most 9 bytes", "body_too_large")[1])
                    head = f"HTTP/1.1 413 Large\r\nconnection: close\r\ncontent-length: {len(content)}\r\n\r\n"
                    connection.sendall(f"{head}{content}".encode())

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=refuse, args=(listening,), daemon=True).start()
        client = ServerClient(f"http://127.0.0.1:{listening.getsockname()[1]}", patience_s=1.0)
        with pytest.raises(
            ServerRefused, match="at most 9 bytes; send less at a time, such as fewer samples"
        ) as refused:
            client.request("POST", "/a", "x" * 30_000_000)
        client.close()
        listening.shutdown(socket.SHUT_RDWR)

    assert (refused.value.status, refused.value.code) == (413, "body_too_large")
    assert len(heads) == 1


@pytest.mark.parametrize(("text", "sent"), [("é€", '"é€"'), ("é\ud800", '"\\u00e9\\ud800"')])
def test_texts_are_sent_in_utf_8_unless_it_cannot_hold_them(server: Answers, text: str, sent: str) -> None:
    client = ServerClient(server.url)
    client.request("POST", "/a", text)
    client.close()

    assert server.bodies == [sent.encode()]


async def test_a_normal_end_waits_for_a_server_that_is_restarted_and_a_stop_does_not(
    server: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wfdsl.interpreter.leases._STOP_S", 0.05)
    for stopped, told in ((True, 1), (False, 0)):
        said: list[str] = []
        server.by_path |= {"/v1/leases": LEASE, "/v1/leases/settle": DOWN}
        restarted = threading.Timer(0.5, server.by_path.update, [{"/v1/leases/settle": (200, {"expired": []})}])
        with suppress(KeyboardInterrupt), LeaseClient(server.url, say=said.append) as leases:
            leases.end(await leases.take("ann", BOUND), BOUND)
            while "/v1/leases/settle" not in server.asked:  # noqa: ASYNC110  (another thread asks)
                await asyncio.sleep(0.01)
            restarted.start()
            if stopped:
                raise KeyboardInterrupt

        restarted.join()
        server.asked.clear()
        assert len(said) == told
        assert all(line.endswith("; 1 call charged at the upper bound") for line in said)


async def test_a_charge_that_the_server_refuses_is_told_of_in_its_words(server: Answers) -> None:
    said: list[str] = []
    refused = refusal(400, "the charge of lease 1 is far above its bound", "beyond_bound")
    server.by_path |= {"/v1/leases": LEASE, "/v1/leases/settle": refused}
    with LeaseClient(server.url, say=said.append) as leases:
        leases.end(await leases.take("ann", BOUND), BOUND)

    assert said == [f"the server at {server.url} refuses: the charge of lease 1 is far above its bound"]
