"""What operators rely on: limits on clients, metrics, logs, and an OpenAPI document that says what is there."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from tests.cli.conftest import Command, wfdsl  # noqa: F401  (a fixture)
from wfdsl.experiment import ServeSettings
from wfdsl.server.app import build_app
from wfdsl.server.endpoints import AccessLog
from wfdsl.server.keys import ApiKeys, make_key
from wfdsl.server.openapi import openapi_document

from .conftest import App, Serve, ServerProcess
from .provider import Provider

ASK = [{"role": "user", "content": "A secret question?"}]


def test_the_openapi_document_has_every_address_and_method() -> None:
    app = build_app({}, ServeSettings(), keys=None, journal=None, log=lambda _: None)
    assert isinstance(app, AccessLog)
    assert isinstance(app.app, Starlette)
    routes = [route for route in app.app.routes if isinstance(route, Route)]
    real = {
        (route.path.replace(":path", ""), method) for route in routes for method in (route.methods or set()) - {"HEAD"}
    }
    written = {
        (path, method.upper())
        for path, methods in openapi_document([], needs_key=True)["paths"].items()
        for method in methods
    }

    assert written == real


def test_every_reference_of_the_openapi_document_leads_somewhere() -> None:
    document = openapi_document([], needs_key=False)

    def names(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"].rpartition("/")[2]} if "$ref" in value else set()
            return own.union(*map(names, value.values()))
        return set().union(*map(names, value)) if isinstance(value, list) else set()

    assert names(document) == document["components"]["schemas"].keys()
    assert "security" not in document


@pytest.mark.slow
def test_slow_clients_are_cut_off_and_others_are_answered(serve: Serve) -> None:
    server = serve("--set", "serve.receive_s=0.5")
    with socket.create_connection(server.address, timeout=60) as slow:
        slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")

        assert server.client.models.list().data
        assert slow.recv(1 << 16).startswith(b"HTTP/1.1 408")


async def test_metrics_and_the_log_say_what_happened_without_texts_and_keys(
    app: Callable[..., App], provider: Provider, tmp_path: Path
) -> None:
    key = make_key(str(tmp_path / "keys.toml"), "ann", {"metrics": True})
    server, bearer = app(keys=ApiKeys(str(tmp_path / "keys.toml"), print)), {"authorization": f"Bearer {key}"}
    run = (await server.post(headers=bearer, messages=ASK)).json()["wfdsl"]["run"]
    provider.status["bob"] = 400
    await server.post("responses", headers=bearer, input="A secret question?")
    await server.get(f"/no/such/{'x' * 50}", **bearer)
    page = await server.get("/metrics", **bearer)
    found = dict(line.rsplit(" ", 1) for line in page.text.splitlines() if not line.startswith("#"))

    assert page.headers["content-type"].startswith("text/plain")
    assert {name: float(found[name]) for name in EXPECTED} == EXPECTED
    assert [line.split()[2] for line in server.lines] == ["200", "502", "404", "200"]
    assert server.lines[0].endswith(f" key ann run {run}")
    log = "".join(server.lines)
    assert not [text for text in (key, "secret", "did:") if text in log]


EXPECTED = {
    'wfdsl_requests_total{path="/v1/chat/completions",status="200"}': 1.0,
    'wfdsl_requests_total{path="/v1/responses",status="502"}': 1.0,
    'wfdsl_requests_total{path="other",status="404"}': 1.0,
    'wfdsl_runs_total{model="two",status="done"}': 1.0,
    'wfdsl_runs_total{model="two",status="failed"}': 1.0,
    'wfdsl_calls_total{model="two",status="done",worker="ann"}': 2.0,
    'wfdsl_calls_total{model="two",status="failed",worker="bob"}': 1.0,
    'wfdsl_tokens_total{kind="input",model="two",worker="ann"}': 20.0,
    'wfdsl_cost_usd_total{model="two",worker="bob"}': 18e-6,
    "wfdsl_requests_in_progress": 0.0,
}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--pool", "paper", "--host", "0.0.0.0"), "--host 0.0.0.0 needs --keys"),
        (("--pool", "openai:gpt-5,openai:gpt-5-mini"), 'worker "gpt-5" needs a key'),
    ],
)
def test_a_missing_key_is_told_before_the_server_starts(
    wfdsl: Command,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    done = wfdsl("serve", *options, "--port", "0")

    assert done.code == 2
    assert said in done.err


@pytest.mark.slow
def test_a_body_that_is_too_large_is_refused_before_it_is_read(server: ServerProcess) -> None:
    with socket.create_connection(server.address, timeout=60) as connection:
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
        connection.sendall(head + b"Content-Length: 50000000\r\n\r\n{")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 413")
    for more in ({}, {"Expect": "100-continue"}):
        reply = httpx2.post(f"{server.url}/chat/completions", content=[b"x" * 2_000_000] * 3, headers=more, timeout=60)
        assert (reply.status_code, reply.json()["error"]["code"]) == (413, "body_too_large")
