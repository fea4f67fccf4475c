"""The server under load: what it adds to a run with 200 requests at a time, and whether its memory grows.

Run with `make bench` or `python -m tests.benchmarks server`. A workflow of two steps runs on scripted workers of 50 ms,
so the critical path of each request is 100 ms. The floor is a bare Starlette app on the same HTTP server, which sleeps
as long and sends a reply of the same size. Both are processes of their own, asked in turn by a client that writes its
requests by hand; what it adds itself is in the floor, too. *At once*: all requests begin together, so that the last
one waits until all others were read. *One after the other*: 200 connections begin at even distances.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Final, NamedTuple

from tests.benchmarks.connection import Connection
from tests.benchmarks.measuring import load, processor_ms, resident_mib, show
from tests.running_server import RunningServer

CONNECTIONS: Final = 200
ROUNDS: Final = 10
WORKER_S: Final = 0.05
PATH_S: Final = 2 * WORKER_S
APART_S: Final = 0.01
"""Seconds between two beginnings where requests come one after the other: 100 a second."""
REQUESTS: Final = 20_000
TARGET_MEDIAN_MS, TARGET_P99_MS, TARGET_MIB = 15.0, 60.0, 8.0
POOL: Final = f"""
[pool.defaults]
provider = "scripted"
prices = {{ input = 1.0, output = 2.0 }}
options = {{ replies = ["A short reply."], repeat = true, delay_s = {WORKER_S} }}
[[pool.workers]]
name = "ann"
[[pool.workers]]
name = "bob"
"""
WORKFLOW: Final = 'step plan by ann: "Plan it."\nstep solve by bob sees plan: "Solve it."\n'
PATH: Final = "/v1/chat/completions"
BODY: Final = json.dumps({"model": "two", "messages": [{"role": "user", "content": "What is 6 times 7?"}]}).encode()


def floor(reply: str) -> None:
    """Serve a bare app that sleeps and sends the same reply each time."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from wfdsl.server.listening import listen, serve

    content = json.loads(reply)

    async def answer(request: Request) -> JSONResponse:
        json.loads(await request.body())
        await asyncio.sleep(PATH_S)
        return JSONResponse(content)

    listening = listen("127.0.0.1", 0)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    app = Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])
    serve(app, listening, 1, lambda: print(address, file=sys.stderr, flush=True))


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[tuple[int, int]]:
    """A server as a process of its own; its port and its process id."""
    server = RunningServer(folder, *arguments, prefix=("env", f"PYTHONPATH={Path.cwd()}"))
    try:
        yield int(server.url.split(":")[2].partition("/")[0]), server.process.pid
    finally:
        server.stop()


async def at_once(connections: list[Connection]) -> list[float]:
    """All requests begin together, several times."""
    return [each for _ in range(ROUNDS) for each in await _asked(connections, 0.0)]


async def apart(connections: list[Connection]) -> list[float]:
    """Each request begins a little after the one before."""
    return [each for _ in range(ROUNDS // 2) for each in await _asked(connections, APART_S)]


async def _asked(connections: list[Connection], apart_s: float) -> list[float]:
    async def one(index: int, connection: Connection) -> float:
        await asyncio.sleep(index * apart_s)
        return (await connection.ask(BODY))[0]

    return await asyncio.gather(*(one(index, each) for index, each in enumerate(connections)))


class Found(NamedTuple):
    """What was measured."""

    added_ms: list[float]
    """What each request took beyond the critical path."""
    processor_ms: float
    """Processor time of the server for each request."""
    failures: int


async def measured(port: int, pid: int, how: Callable[[list[Connection]], Awaitable[list[float]]]) -> Found:
    """One server under one kind of load."""
    connections = [Connection(port, PATH) for _ in range(CONNECTIONS)]
    await _asked(connections, APART_S)
    before = processor_ms(pid)
    added = [(seconds - PATH_S) * 1e3 for seconds in await how(connections)]
    used = processor_ms(pid) - before
    await asyncio.gather(*(each.close() for each in connections))
    return Found(added, used / len(added), sum(each.failures for each in connections))


async def memory(port: int, pid: int) -> tuple[list[float], float, int]:
    """The memory after each tenth of the requests, in MiB; the requests per second; and how many failed."""
    connections, sizes = [Connection(port, PATH) for _ in range(CONNECTIONS)], []
    began = time.perf_counter()
    for _ in range(10):
        await asyncio.gather(*(_repeated(each, REQUESTS // CONNECTIONS // 10) for each in connections))
        sizes.append(resident_mib(pid))
    rate = REQUESTS / (time.perf_counter() - began)
    await asyncio.gather(*(each.close() for each in connections))
    return sizes, rate, sum(each.failures for each in connections)


async def _repeated(connection: Connection, times: int) -> None:
    for _ in range(times):
        await connection.ask(BODY)


def _row(name: str, found: Found, target: str = "") -> tuple[str, ...]:
    added = found.added_ms
    shown = f"{median(added):.1f} ms", f"{quantiles(added, n=100)[98]:.1f} ms", f"{found.processor_ms:.2f} ms"
    return name, *shown, f"{found.failures} of {len(added)}", target


def main() -> None:
    """Print the table."""
    title, rows = f"{CONNECTIONS} requests at a time, {load()}", []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pool.toml").write_text(POOL)
        (folder / "two.wf").write_text(WORKFLOW)
        files = ("--pool", str(folder / "pool.toml"), "--workflow", str(folder / "two.wf"), "--port", "0")
        serve = ("-m", "wfdsl", "serve", *files, "--set", f"serve.max_requests={2 * CONNECTIONS}")
        with running(folder, *serve) as (port, pid):
            reply = asyncio.run(Connection(port, PATH).ask(BODY))[1].decode()
            with running(folder, "-m", "tests.benchmarks.bench_server", "floor", reply) as (floor_port, floor_pid):
                for what, how in (("at once", at_once), ("one after the other", apart)):
                    rows.append(_row(f"{what}: floor", asyncio.run(measured(floor_port, floor_pid, how))))
                    target = f"<= {TARGET_MEDIAN_MS:g}, {TARGET_P99_MS:g} ms"
                    rows.append(_row(f"{what}: wfdsl serve", asyncio.run(measured(port, pid, how)), target))
            with running(folder, *serve, "--set", "run.journal=false") as (free_port, free_pid):
                rows.append(_row("one after the other, no journal", asyncio.run(measured(free_port, free_pid, apart))))
            sizes, rate, failures = asyncio.run(memory(port, pid))
    show(title, ("what is added to 100 ms", "median", "99th percentile", "processor", "failures", "target"), rows)
    grown = sizes[-1] - sizes[0]
    shown = " ".join(f"{size:.0f}" for size in sizes)
    print(f"{REQUESTS} requests, {failures} failed, {rate:.0f} a second; MiB after each tenth: {shown}")
    print(f"grown from the first tenth to the last: {grown:.1f} MiB (target: at most {TARGET_MIB:g})")


if __name__ == "__main__":
    if sys.argv[1:2] == ["floor"]:
        floor(sys.argv[2])
    else:
        main()
