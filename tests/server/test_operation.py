"""What operators rely on: limits on slow clients, metrics, logs, and an OpenAPI document that says what is there."""

from __future__ import annotations

import socket
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from wfdsl.experiment import ServeSettings
from wfdsl.server.app import build_app
from wfdsl.server.endpoints import AccessLog
from wfdsl.server.openapi import openapi_document

from .conftest import Serve
from .provider import Provider

ASK = {"model": "two", "messages": [{"role": "user", "content": "A secret question?"}]}


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


@pytest.mark.slow
def test_metrics_and_logs_say_what_happened(own: Serve, provider: Provider) -> None:
    server = own()
    url = server.url.removesuffix("/v1")
    run = httpx.post(f"{server.url}/chat/completions", json=ASK, timeout=60).json()["wfdsl"]["run"]
    provider.status["bob"] = 400
    httpx.post(f"{server.url}/responses", json={"model": "two", "input": "x"}, timeout=60)
    httpx.get(f"{url}/no/such/{'x' * 50}", timeout=60)
    page = httpx.get(f"{url}/metrics", timeout=60)
    found = dict(line.rsplit(" ", 1) for line in page.text.splitlines() if not line.startswith("#"))
    server.stop()
    lines = [line.split() for line in server.lines if " s" in line]

    assert page.headers["content-type"].startswith("text/plain")
    assert {name: float(found[name]) for name in EXPECTED} == EXPECTED
    requests = [line for line in lines if line[0] in ("GET", "POST")]
    assert [line[2] for line in requests] == ["200", "502", "404", "200"]
    assert requests[0][-2:] == ["run", run]
    assert "secret" not in "".join(server.lines)


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
