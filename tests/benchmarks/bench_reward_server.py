"""The reward server: many requests at once, memory over many requests, and waiting calls in one process.

Run with `python -m tests.benchmarks reward_server`; WFDSL_REQUESTS sets how many requests the memory is watched over.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.connection import Connection
from tests.benchmarks.measuring import processor_ms, resident_mib
from tests.running_server import RunningServer
from wfdsl import Pool
from wfdsl.interpreter.budget import Budget
from wfdsl.protocols import Call, Reply
from wfdsl.tasks.task import Task
from wfdsl.workers.entry import Limits, WorkerEntry
from wfdsl_rl.reward import Reward

AT_ONCE, DELAY_S, WAITING, WAIT_S = 1000, 0.05, 10_000, 2.0
REQUESTS = int(os.environ.get("WFDSL_REQUESTS", "50000"))
TASKS = [Task(id="t", question="Q?", gold="yes", kind="text")]
ONE = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'


def pool(delay_s: float, **limits: int) -> Pool:
    """A worker that only waits."""

    async def wait(call: Call) -> Reply:
        await asyncio.sleep(delay_s)
        return Reply("yes")

    return Pool.from_workers([(WorkerEntry(name="w", provider="function", limits=Limits.model_validate(limits)), wait)])


def serve(folder: Path) -> None:
    """The server's process."""
    from wfdsl.experiment import ServeSettings
    from wfdsl.server.listening import address_of, listen
    from wfdsl.server.listening import serve as answer
    from wfdsl_rl.engines.server import build_app

    journal = folder / "journal.db"
    with Reward(pool(DELAY_S), TASKS, journal=journal, budget=Budget()) as reward, listen("127.0.0.1", 0) as listening:
        app = build_app(reward, ServeSettings(max_requests=4096), keys=None, parallel=1024, log=lambda _: None)
        answer(app, listening, 5.0, lambda: print(address_of(listening), file=sys.stderr, flush=True))


async def ask(port: int, count: int, at_once: int, *, first: int = 0) -> tuple[list[float], int, float]:
    """Seconds of each request, how many failed, and seconds of all."""
    left, seconds, failed = iter(range(first, first + count)), list[float](), 0
    connections = [Connection(port, "/v1/score") for _ in range(at_once)]

    async def work(connection: Connection) -> None:
        nonlocal failed
        for number in left:
            asked = {"task": "t", "completion": ONE, "sample_id": f"s{number}"}
            took, answer = await connection.ask(json.dumps(asked).encode())
            seconds.append(took)
            failed += json.loads(answer).get("score") != 1.0

    began = time.perf_counter()
    await asyncio.gather(*map(work, connections))
    total = time.perf_counter() - began
    await asyncio.gather(*(each.close() for each in connections))
    return seconds, failed, total


def over_http(folder: Path) -> None:
    server = RunningServer(Path.cwd(), "-m", "tests.benchmarks.bench_reward_server", str(folder), prefix=("env",))
    port, pid = int(server.url.rpartition(":")[2]), server.process.pid
    seconds, failed, total = asyncio.run(ask(port, AT_ONCE, AT_ONCE))
    worst = sorted(seconds)[int(len(seconds) * 0.99)]
    print(f"{AT_ONCE} requests at once, workers of {DELAY_S * 1000:.0f} ms: {failed} failed, ", end="")
    print(f"{total:.2f} s in all, median {statistics.median(seconds):.2f} s, 99th percentile {worst:.2f} s")
    done = AT_ONCE
    print(f"after {done:6} requests: {resident_mib(pid):6.1f} MiB", flush=True)
    for until in (REQUESTS // 5 * part for part in range(1, 6)):
        before = processor_ms(pid)
        _, failed, total = asyncio.run(ask(port, until - done, 64, first=done))
        used_ms = (processor_ms(pid) - before) / (until - done)
        print(f"after {until:6} requests: {resident_mib(pid):6.1f} MiB, {(until - done) / total:5.0f} a second", end="")
        print(f", {used_ms:.2f} ms of a processor for each, {failed} failed", flush=True)
        done = until
    server.stop()


async def waiting(folder: Path) -> None:
    with Reward(pool(WAIT_S), TASKS, journal=folder / "waiting.db", concurrency=WAITING) as reward:
        began, before = time.perf_counter(), time.process_time()
        scored = await reward([ONE] * WAITING, ["t"] * WAITING)
        total, used_s = time.perf_counter() - began, time.process_time() - before
    assert all(each.score == 1.0 for each in scored)
    each_us, memory = used_s / WAITING * 1e6, resident_mib(os.getpid())
    print(f"{WAITING} calls of {WAIT_S:.0f} s wait in one process: {total:.1f} s, {memory:.0f} MiB", end="")
    print(f", {each_us:.0f} us of a processor for each")


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(waiting(Path(folder)))
        over_http(Path(folder))


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
