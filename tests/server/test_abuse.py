"""Requests that are meant to do harm: each gets the right status and tells nothing, and the next one is answered."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from wfdsl.server.keys import make_key

from .conftest import FILES, ServerProcess, prepare
from .provider import Provider

pytestmark = pytest.mark.slow
ASK: Any = [{"role": "user", "content": "Why?"}]


class Target:
    """A server with two keys."""

    def __init__(self, folder: Path) -> None:
        self.workers = Provider()
        path = str(folder / "keys.toml")
        self.keys = {name: make_key(path, name, {}) for name in ("ann", "eve")}
        prepare(folder, self.workers.url)
        self.server = ServerProcess(folder, *FILES, "--keys", path)

    def headers(self, who: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.keys[who]}"}

    def post(self, path: str, content: bytes, who: str = "eve", **headers: str) -> httpx2.Response:
        url = f"{self.server.url}{path}"
        return httpx2.post(url, content=content, headers={**self.headers(who), **headers}, timeout=60, verify=False)

    def raw(self, content: bytes) -> bytes:
        """The beginning of the answer to some bytes."""
        with socket.create_connection(self.server.address, timeout=60) as connection:
            with suppress(OSError):  # the server has answered and closed before it has read all
                connection.sendall(content)
            try:
                return connection.recv(1 << 16)
            except ConnectionResetError:
                return b""

    def close(self) -> None:
        self.server.stop()
        self.workers.close()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    found = Target(tmp_path_factory.mktemp("served"))
    yield found
    found.close()


@pytest.fixture(autouse=True)
def answers_afterwards(target: Target) -> Iterator[None]:
    target.workers.bodies.clear()
    yield
    url = f"{target.server.url}/models"
    assert httpx2.get(url, headers=target.headers("ann"), timeout=60, verify=False).status_code == 200
    assert not [line for line in target.server.lines if "Traceback" in line]


def body(**more: Any) -> bytes:
    return json.dumps({"model": "two", "messages": ASK, **more}).encode()


BODIES = {
    "empty": b"",
    "cut": b"{",
    "null": b"null",
    "not UTF-8": b'{"model": "\xff\xfe"}',
    "deep": b'{"model": "two", "messages": ' + b"[" * 200_000,
    "long number": b'{"model": ' + b"9" * 5000 + b"}",
    "NaN": b'{"model": NaN}',
    "half a pair": body(stop="\ud800", input="x"),
    "UTF-16": body(input="x").decode().encode("utf-16"),
    "types": b'{"model": "two", "input": [{"type": {"a": []}}], "messages": [{"role": {"a": []}}]}',
    "roles": b'{"model": "two", "input": [{"role": "king", "content": "x"}], "messages": [{"role": "root"}]}',
    "path": body(model="../../etc/passwd", input="x"),
}


@pytest.mark.parametrize("path", ["/chat/completions", "/responses"])
@pytest.mark.parametrize("name", BODIES)
def test_bodies(target: Target, path: str, name: str) -> None:
    reply = target.post(path, BODIES[name])

    assert reply.status_code == (404 if name == "path" else 400)
    assert reply.json()["error"]["message"]
    assert target.workers.bodies == []


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models/../../../etc/passwd",
        "/v1/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/v1/models/%00",
        "/v1/models/%ff",
        "//v1/models",
        "/v1/models/" + "a" * 8000,
        "http://evil.example/v1/models",
        "/v1/chat/completions/..",
        "*",
    ],
)
def test_paths(target: Target, path: str) -> None:
    key = target.headers("eve")["Authorization"]
    reply = target.raw(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {key}\r\n\r\n".encode())

    assert reply.startswith(b"HTTP/1.1 404")
    assert b"root:" not in reply


def test_a_path_begins_no_line_of_the_log(target: Target) -> None:
    target.raw(b"GET /v1/%0aGET%20/forged%20200 HTTP/1.1\r\nHost: x\r\n\r\n")
    target.raw(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
    while not any(line.startswith("GET /health") for line in target.server.lines):
        time.sleep(0.01)

    assert not [line for line in target.server.lines if line.startswith("GET /forged")]
    assert any(line.startswith("GET /v1/%0AGET%20/forged%20200 404") for line in target.server.lines)


@pytest.mark.parametrize(
    "head",
    [
        "".join(f"X-{n}: {'a' * 90}\r\n" for n in range(2000)),
        f"X: {'a' * 200_000}\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: -1\r\n",
        "X\x00: 1\r\n",
    ],
    ids=["many", "long", "two lengths and a coding", "two lengths", "below 0", "NUL"],
)
def test_headers(target: Target, head: str) -> None:
    reply = target.raw(f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n{head}\r\nhello".encode())

    assert reply == b"" or reply.startswith((b"HTTP/1.1 400", b"HTTP/1.1 401", b"HTTP/1.1 413"))
    assert target.raw(b"\x00\xff\r\n\r\n").startswith(b"HTTP/1.1 400"), "not HTTP"
    assert target.workers.bodies == []


@pytest.mark.parametrize(("depth", "status"), [(150, 200), (490, 400)])
def test_tools_are_nested_no_deeper_than_the_journal_can_hold(target: Target, depth: int, status: int) -> None:
    deep = "null"
    for _ in range(depth):
        deep = f'{{"a": {deep}}}'
    tool = f'{{"type": "function", "function": {{"name": "f", "parameters": {{"x": {deep}}}}}}}'
    content = f'{{"model": "two", "messages": {json.dumps(ASK)}, "tools": [{tool}]}}'

    assert target.post("/chat/completions", content.encode()).status_code == status
    assert target.post("/chat/completions", body()).status_code == 200


def test_a_request_that_two_servers_may_read_differently_is_answered_once(target: Target) -> None:
    key = target.headers("eve")["Authorization"]
    head = f"POST /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: {key}\r\nContent-Length: 5\r\n"
    smuggled = f"GET /health HTTP/1.1\r\nHost: x\r\nAuthorization: {key}\r\n\r\n"
    content = f"{head}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}".encode()
    with socket.create_connection(target.server.address, timeout=60) as connection:
        connection.sendall(content)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))

    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(("size", "status"), [(65_000, 200), (66_000, 431)])
def test_headers_have_64_kib(target: Target, size: int, status: int) -> None:
    headers = {**target.headers("ann"), "X-Long": "a" * (size - 300)}

    assert httpx2.get(f"{target.server.url}/models", headers=headers, timeout=60, verify=False).status_code == status


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer x", "Basic eDp4", "Basic !", "Bearer \xff"])
@pytest.mark.parametrize("path", ["/chat/completions", "/responses"])
def test_no_key_and_wrong_keys(target: Target, path: str, authorization: str) -> None:
    headers = [(b"Authorization", authorization.encode("latin-1"))] if authorization else []
    reply = httpx2.post(f"{target.server.url}{path}", content=body(), headers=headers, timeout=60, verify=False)

    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "invalid_api_key")
    assert target.workers.bodies == []


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/two", "/metrics"])
def test_lists_and_metrics_need_a_key(target: Target, path: str) -> None:
    assert httpx2.get(target.server.url.removesuffix("/v1") + path, timeout=60, verify=False).status_code == 401


def test_a_key_finds_no_run_of_another_one(target: Target) -> None:
    first = target.post("/chat/completions", body(), "ann", **{"Idempotency-Key": "one"}).json()
    other = target.post("/chat/completions", body(), "eve", **{"Idempotency-Key": "one"}).json()
    different = target.post("/chat/completions", body(seed=1), "eve", **{"Idempotency-Key": "one"})

    assert first["wfdsl"]["run"] != other["wfdsl"]["run"]
    assert len(target.workers.bodies) == 4
    assert different.status_code == 422
    assert first["wfdsl"]["run"] not in different.text


def test_tool_calls_of_another_key_continue_nothing(target: Target) -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": {}}}
    target.workers.calls["bob"] = [("weather", "{}")]
    first = target.post("/chat/completions", body(tools=[tool]), "ann").json()
    said = first["choices"][0]["message"]
    told = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "rain"}
    stolen = target.post("/chat/completions", body(messages=[*ASK, said, told], tools=[tool]), "eve").json()
    target.workers.calls.clear()

    assert stolen["wfdsl"]["run"] != first["wfdsl"]["run"]
    assert len(target.workers.asked("ann")) == 2  # a new run, from its first step


def test_tool_ids_that_no_encoding_has_are_refused(target: Target) -> None:
    told = {"role": "tool", "tool_call_id": "call_\ud800", "content": "rain"}

    assert target.post("/chat/completions", body(messages=[*ASK, told])).status_code == 400


def test_streams_that_are_left_give_their_places_up(target: Target) -> None:
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: {target.headers('eve')['Authorization']}\r\n"
    )
    content = body(stream=True)
    for _ in range(70):  # more than are answered at a time
        with socket.create_connection(target.server.address, timeout=60) as connection:
            connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)

    replies = (target.post("/chat/completions", body(), "ann") for _ in range(50))
    assert next(reply for reply in replies if reply.status_code != 429).status_code == 200
