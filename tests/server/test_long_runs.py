"""A run of twenty minutes, on a test clock, for a client that leaves when no event comes for a while."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.interpreter.toy_workers import on_test_clock
from wfdsl.experiment import read_experiment
from wfdsl.server.app import build_app
from wfdsl.server.models import served_models

POOL = """
[pool]
name = "slow"
[pool.defaults]
provider = "scripted"
prices = { input = 0.0, output = 0.0 }
options = { replies = ["Done."], repeat = true, delay_s = 590 }
[[pool.workers]]
name = "ann"
[[pool.workers]]
name = "bob"
"""
WORKFLOW = (
    'step plan by ann: "Plan it."\nstep solve by bob sees plan: "Solve it."\nstep end by ann sees all: "End it."\n'
)
IDLE_S = 300.0
"""How long Codex waits for an event; comments do not count."""
REQUESTS = {
    "/v1/chat/completions": {"model": "three", "messages": [{"role": "user", "content": "Why?"}], "stream": True},
    "/v1/responses": {"model": "three", "input": "Why?", "stream": True},
}


class Client:
    """Asks the application once, notes when events come, and leaves when none has come for too long."""

    def __init__(self, path: str, body: bytes) -> None:
        self._scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
        }
        self._body: bytes | None = body
        self._events = asyncio.Event()
        self.times: list[float] = []
        self.text = b""
        self.left = False

    async def ask(self, app: Any) -> None:
        await app(self._scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        while True:
            self._events.clear()
            try:
                await asyncio.wait_for(self._events.wait(), IDLE_S)
            except TimeoutError:
                self.left = True
                return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        piece = message.get("body", b"")
        self.text += piece
        if b"data: " in piece:
            self.times.append(asyncio.get_running_loop().time())
            self._events.set()


@pytest.mark.parametrize("path", REQUESTS)
def test_a_run_of_twenty_minutes_survives_an_idle_timer_of_five(path: str, tmp_path: Path) -> None:
    (tmp_path / "slow.toml").write_text(POOL)
    (tmp_path / "three.wf").write_text(WORKFLOW)
    experiment = read_experiment(str(tmp_path / "slow.toml"))

    async def asked() -> Client:
        models = served_models(experiment, [str(tmp_path / "three.wf")])
        app = build_app(models, experiment.serve, keys=None, journal=None, log=lambda line: None)
        client = Client(path, json.dumps(REQUESTS[path]).encode())
        await client.ask(app)
        return client

    client = on_test_clock(asked())

    assert not client.left
    assert b"Done." in client.text
    assert client.text.rstrip().endswith(b"data: [DONE]")
    assert client.times[-1] - client.times[0] >= 20 * 60
    assert max(after - before for before, after in zip(client.times, client.times[1:], strict=False)) < IDLE_S
