"""How long requests at the server's limits stop its event loop, which all other requests wait for.

Run with `make bench` or `python -m tests.benchmarks blocking`. The application runs in this process, on workers of
another `wfdsl serve`, beside a watchdog that asks for a turn each millisecond; the longest that it waited is shown.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.benchmarks.measuring import mark, show
from tests.running_server import RunningServer
from wfdsl.experiment import read_experiment
from wfdsl.interpreter.journal import Journal
from wfdsl.server.app import build_app
from wfdsl.server.models import served_models

TARGET_MS: Final = 50.0
ROUNDS: Final = 3
_BODY_BYTES: Final = 4_000_000
_SCRIPTED: Final = """
[pool.defaults]
provider = "scripted"
options = { replies = ["A short reply."], repeat = true }
[[pool.workers]]
name = "ann"
"""
_POOL: Final = '[[pool.workers]]\nname = "bob"\nprovider = "openai"\nmodel = "one"\nbase_url = "{url}"\n'
_FLOW: Final = 'step solve by {worker}: "Solve it."\n'


def requests() -> dict[str, dict[str, Any]]:
    """Bodies at the limits: of messages, of bytes, of parts, of tools and of depth."""
    part = {"type": "text", "text": "word " * 40}
    tool = {"type": "function", "function": {"name": "f", "description": "x" * 1000, "parameters": _deep(90)}}
    return {
        "one short message": {"messages": _messages(1, 20)},
        "2,000 messages": {"messages": _messages(1999, 100)},
        "2,000 messages, 4 MB": {"messages": _messages(1999, _BODY_BYTES // 2000 - 60)},
        "one message of 4 MB": {"messages": _messages(1, _BODY_BYTES)},
        "1,000 messages of 4 parts": {"messages": [{**each, "content": [part] * 4} for each in _messages(999, 1)]},
        "128 tools": {"messages": _messages(1, 20), "tools": [tool] * 128},
        "a schema of 150 levels": {
            "messages": _messages(1, 20),
            "response_format": {"type": "json_schema", "json_schema": {"name": "deep", "schema": _deep(70)}},
        },
    }


def _messages(count: int, chars: int) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": "word " * (chars // 5)} for at in range(count)]


def _deep(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": {}}
    for _ in range(levels):
        found = {"type": "object", "properties": {"a": found}}
    return found


async def _watch(waits: list[float]) -> None:
    while True:
        start = time.perf_counter()
        await asyncio.sleep(0.001)
        waits.append(time.perf_counter() - start - 0.001)


async def _measure(folder: Path, url: str) -> list[tuple[str, int, float]]:
    (folder / "pool.toml").write_text(_POOL.format(url=url))
    (folder / "two.wf").write_text(_FLOW.format(worker="bob"))
    found = read_experiment(None, [f"pool.use={folder / 'pool.toml'}"])
    with Journal(folder / "journal.db") as journal:
        models = served_models(found, [str(folder / "two.wf")])
        app = build_app(models, found.serve, keys=None, journal=journal, log=lambda line: None)
        transport, rows = httpx2.ASGITransport(app), []
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=120) as client:
            for name, fields in requests().items():
                body = json.dumps({"model": "two", **fields}).encode()
                longest = []
                for _ in range(ROUNDS):
                    waits: list[float] = []
                    watchdog = asyncio.create_task(_watch(waits))
                    await asyncio.sleep(0.05)
                    reply = await client.post("/v1/chat/completions", content=body)
                    watchdog.cancel()
                    longest.append(max(waits))
                rows.append((name, reply.status_code, 1000 * min(longest)))
    return rows


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        upstream = folder / "upstream"
        upstream.mkdir()
        (upstream / "pool.toml").write_text(_SCRIPTED)
        (upstream / "one.wf").write_text(_FLOW.format(worker="ann"))
        options = ("--workflow", "one.wf", "--port", "0", "--pool", "pool.toml")
        server = RunningServer(upstream, "-m", "wfdsl", "serve", *options, prefix=("env",))
        try:
            rows = asyncio.run(_measure(folder, server.url))
        finally:
            server.stop()
    shown = [(request, str(status), f"{stop:.1f}", mark(stop, TARGET_MS)) for request, status, stop in rows]
    headings = "request", "status", "longest stop, ms", f"at most {TARGET_MS:g}"
    show(f"Event loop of wfdsl serve, the best of {ROUNDS} times each", headings, shown)
