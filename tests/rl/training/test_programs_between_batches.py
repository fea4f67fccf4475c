"""Programs of a training: processes that will run those of the next batch start behind this one."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch", reason="needs torch, in the extra rl")

from tests.grading.sandboxes import left_running, needs_sandbox
from tests.rl.training.toy import TASKS, a_prompt, a_setup
from wfdsl.grading.code import SHARED_CACHE, shared_sandbox
from wfdsl.tasks.task import CodeTests, Task
from wfdsl.workers.pool import Pool
from wfdsl_rl.training.data import Draw, make_rows
from wfdsl_rl.training.stages import programs_between_batches

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from pathlib import Path

TESTS = CodeTests(style="stdin", inputs=("",), expected=("1",), timeout_s=10)
PRINTING = Task(id="c", question="Print 1.", gold="", kind="code", tests=TESTS)
COMPLETION = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'


async def programmer(messages: list[dict[str, Any]]) -> str:
    return "```python\nprint(1)\n```"


@contextmanager
def loop_in_a_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """As TRL judges: in an event loop that runs until the end."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def run_in(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result()


async def prepared() -> int:
    await shared_sandbox().warm_up()
    return shared_sandbox().warm


async def standing() -> int:
    return shared_sandbox().warm


@needs_sandbox
def test_processes_stand_ready_between_batches_and_none_is_left_behind_them(tmp_path: Path) -> None:
    SHARED_CACHE.clear()
    pool = Pool.from_functions([programmer])
    setup = replace(a_setup(tmp_path), pool=pool, tasks=(PRINTING,), eval_tasks=())
    rewarder = setup.reward("base")
    (row,) = make_rows((PRINTING,), pool, a_prompt(), count=1, max_steps=5, draw=Draw(), split="train")
    columns = {name: [value] for name, value in row.items() if name != "prompt"}

    with loop_in_a_thread() as loop:
        with programs_between_batches(setup, rewarder, loop):
            judged = run_in(loop, rewarder.trl([COMPLETION], **columns))
            between = run_in(loop, prepared())
        behind = run_in(loop, standing())

    assert judged == [1.0]
    assert between >= 1
    assert behind == 0
    assert left_running() == []


def test_where_there_are_no_programs_no_sandbox_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise AssertionError("no sandbox is needed")

    monkeypatch.setattr("wfdsl.grading.code.shared_sandbox", missing)
    setup = replace(a_setup(tmp_path), tasks=TASKS, eval_tasks=())
    rewarder = setup.reward("base")
    before = list(rewarder.listeners)

    with loop_in_a_thread() as loop, programs_between_batches(setup, rewarder, loop):
        assert rewarder.listeners == before
