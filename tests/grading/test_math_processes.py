"""The processes that compare expressions: limits hold, the event loop keeps running, no process is left over."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from wfdsl.grading.math_processes import MathProcesses
from wfdsl.grading.mathematics import grade_math

BOMB = "9^{9^{9^9}}"
PROC = Path("/proc/self/task")


@pytest.fixture(scope="module")  # a process takes seconds to start
def processes() -> Iterator[MathProcesses]:
    pool = MathProcesses(processes=1, limit_s=1.0)
    yield pool
    pool.close()


def _children() -> set[int]:
    """The processes that this one has started, zombies too."""
    found: set[int] = set()
    for task in PROC.iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has ended in between
            found.update(map(int, (task / "children").read_text(encoding="ascii").split()))
    return found


async def test_a_comparison_that_never_ends_is_not_judged_and_the_next_one_is(processes: MathProcesses) -> None:
    bomb = await grade_math("x+5", BOMB, processes=processes)
    after = await grade_math("x+5", "5+x", processes=processes)

    assert (bomb.outcome, bomb.reason) == ("unjudged", "comparing the expressions took longer than 1 s")
    assert after.outcome == "right"


async def test_a_comparison_that_takes_too_much_memory_is_unjudged() -> None:
    pool = MathProcesses(processes=1, memory_bytes=1)

    found = await pool.compare("x+5", "10^{10^{9}}")

    pool.close()
    assert "died" in found


@pytest.mark.skipif(not PROC.is_dir(), reason="finds processes in /proc")
def test_a_process_sees_no_keys_is_replaced_if_it_was_killed_while_idle_and_ends_with_the_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    before, pool = _children(), MathProcesses()
    asyncio.run(pool.compare("x", "x+1"))
    (worker,) = _children() - before
    seen = Path(f"/proc/{worker}/environ").read_bytes()

    os.kill(worker, signal.SIGKILL)
    os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)
    after = asyncio.run(pool.compare("x", "x"))
    pool.close()

    assert after == "right"
    assert _children() == before
    assert b"PATH=" in seen
    assert b"secret" not in seen


async def test_the_event_loop_goes_on_while_expressions_are_compared(processes: MathProcesses) -> None:
    order: list[str] = []

    async def compare() -> None:
        await processes.compare("x+5", BOMB)
        order.append("compared")

    async def tick() -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        order.append("ticked")

    await asyncio.gather(compare(), tick())

    assert order == ["ticked", "compared"]


async def test_many_gradings_in_flight_are_each_answered_with_their_own_verdict(processes: MathProcesses) -> None:
    asked = [(f"x+{n}", f"{n if n % 3 else n + 1}+x") for n in range(60)]

    verdicts = await asyncio.gather(*(grade_math(gold, answer, processes=processes) for gold, answer in asked))

    assert [verdict.outcome for verdict in verdicts] == ["right" if n % 3 else "wrong" for n in range(60)]


async def test_a_grading_that_is_cancelled_leaves_the_pool_usable(processes: MathProcesses) -> None:
    bomb = asyncio.ensure_future(processes.compare("x+5", BOMB))
    await asyncio.sleep(0)

    bomb.cancel()
    with pytest.raises(asyncio.CancelledError):
        await bomb
    after = await processes.compare("x", "x")

    assert after == "right"


def test_a_program_that_graded_ends_without_a_warning_or_a_leftover() -> None:
    program = (
        "from wfdsl.grading.grade import grade_sync; from wfdsl.tasks.task import Task;"
        "task = Task(id='1', question='?', gold='x+5');"
        "print(*[grade_sync(task, f'\\\\boxed{{{said}}}').outcome for said in ('5+x', 'x+6', '5+x')])"
    )

    ran = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )

    said = [line for line in ran.stderr.splitlines() if not line.startswith("Executing <Task")]  # asyncio: a slow start
    assert (ran.stdout, said) == ("right wrong right\n", [])
