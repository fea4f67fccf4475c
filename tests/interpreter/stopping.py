"""Runs that are killed or cancelled at a moment that a seed chooses, and what must hold when they are resumed.

A killed run is a real process with a real server. It begins at once, since a server of forks has imported its modules.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import time
from contextlib import closing, suppress
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from tests.interpreter.chat_server import ChatServer

from wfdsl import Pool, Run, Step, WorkerEntry, Workflow
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.running import resume, run
from wfdsl.workers.entry import Prices

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.context import ForkServerProcess
    from pathlib import Path

_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload(["wfdsl.conductor.conductor", "wfdsl.workers.openai_api", "tests.interpreter.stopping"])
_DELAY_S = 0.02


def begun(work: Callable[..., Any], *arguments: Any) -> ForkServerProcess:
    """A process that does some work."""
    process = _FORKS.Process(target=work, args=arguments, daemon=True)
    process.start()
    return process


def wide(width: int) -> Workflow:
    """A number of steps side by side, one that sees them all, and one more."""
    steps = (Step(0, f"Attempt {index}.") for index in range(width))
    return Workflow((*steps, Step(0, "Compare.", tuple(range(width))), Step(0, "Conclude.", "all")))


def pool_at(url: str) -> Pool:
    """One worker at a server."""
    entry = WorkerEntry(name="chat", provider="openai", model="m", base_url=url, max_tokens=100, retries=8)
    return Pool([entry.model_copy(update={"prices": Prices(input=1.0, output=1.0)})])


async def work(width: int, url: str, path: Path) -> Run:
    """Make the run that is stopped."""
    return await run(wide(width), "Q", pool_at(url), journal=path, run_id="r", concurrency=4)


def _work(width: int, url: str, path: Path) -> None:
    asyncio.run(work(width, url, path))


def rows(path: Path) -> list[tuple[int, str, str | None]]:
    """Step, status and reply of each call in the journal."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT path, status, reply FROM calls ORDER BY id").fetchall()
    return [(json.loads(steps)[0], status, reply and json.loads(reply)["text"]) for steps, status, reply in found]


def broken_by_a_kill(seed: int, path: Path, *, width: int = 38) -> list[str]:
    """The promises that a run does not keep whose process is killed, with `kill -9`, at a moment of the seed."""
    chance = random.Random(seed)
    with ChatServer(delay_s=_DELAY_S) as server:
        process = begun(_work, width, server.url, path)
        server.wait_for(chance.randint(1, width + 2))
        time.sleep(chance.uniform(0, 2 * _DELAY_S))
        process.kill()
        process.join()
        time.sleep(2 * _DELAY_S)  # what the server was still writing
        before = rows(path)
        in_flight = sorted(step for step, status, _ in before if status == "started")
        return _broken(path, server, before, asyncio.run(resume("r", pool_at(server.url), journal=path)), in_flight)


def broken_by_a_cancel(seed: int, path: Path, *, width: int = 8) -> list[str]:
    """The promises that a run does not keep that is cancelled at a moment of the seed."""
    chance = random.Random(seed)

    async def cancelled(server: ChatServer) -> list[str]:
        with Journal(path) as journal:
            task = asyncio.create_task(
                run(wide(width), "Q", pool_at(server.url), journal=journal, run_id="r", concurrency=4)
            )
            first = chance.randint(0, width + 2)
            while len(server.asked) < first and not task.done():  # noqa: ASYNC110  (the server is in a thread)
                await asyncio.sleep(0.001)
            await asyncio.sleep(chance.uniform(0, 1.5 * _DELAY_S))
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        left = asyncio.all_tasks() - {asyncio.current_task()}
        return [f"left over: task {each.get_name()}" for each in left]

    with ChatServer(delay_s=_DELAY_S) as server:
        broken = asyncio.run(cancelled(server))
        time.sleep(2 * _DELAY_S)
        before = rows(path)
        broken += [f"left over: a call of step {step}" for step, status, _ in before if status == "started"]
        lost = sorted(step for step, status, _ in before if status == "lost")
        done = asyncio.run(resume("r", pool_at(server.url), journal=path))
        return [*broken, *_broken(path, server, before, done, lost)]


def _broken(
    path: Path, server: ChatServer, before: list[tuple[int, str, str | None]], done: Run, lost: list[int]
) -> list[str]:
    """The promises that a resumed run has not kept; `before` is what the journal had, and `lost` was in flight."""
    kept = {step: reply for step, status, reply in before if status == "finished"}
    asked = [_step_of(text, done.workflow) for text in server.asked]
    broken = [
        f"repeated: step {step}, whose reply was kept" for step in kept if asked.count(step) > 1 + lost.count(step)
    ]
    if done.status != "done" or sorted(each.path[0] for each in done.lost) != lost:
        broken.append(f"the run is {done.status}, and has lost {[each.path for each in done.lost]} instead of {lost}")
    if done.charged is None or done.charged.calls != len(done.steps) + len(lost):
        broken.append(f"charged: {done.charged} for {len(done.steps)} steps and {len(lost)} lost calls")
    for step in done.steps:
        if step.response != kept.get(step.step, step.response) or step.replayed != (step.step in kept):
            broken.append(f"step {step.step} is not what was kept of it")
        shown = [message["content"] for message in step.messages if message["role"] == "assistant"]
        if shown != [done.steps[seen].response for seen in done.workflow.sees(step.step)]:
            broken.append(f"step {step.step} was shown other responses than the record has")
    if {status for _, status, _ in rows(path)} - {"finished", "lost", "failed"}:
        broken.append("left over: a call that has not ended")
    return broken


def _step_of(text: str, workflow: Workflow) -> int:
    return next(index for index, step in enumerate(workflow) if text.removeprefix("Q\n\n") == step.subtask)
