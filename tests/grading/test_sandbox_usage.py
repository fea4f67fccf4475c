"""Limits of a sandbox that are counted from outside: processor time, and memory and files of all its processes."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from tests.grading.sandboxes import needs_sandbox
from wfdsl.grading.sandbox import Sandbox, SandboxLimits
from wfdsl.grading.sandbox.process import Inside, time_limit
from wfdsl.grading.sandbox.usage import Usage

EACH_100_MIB = """
import os, time
for _ in range(4):
    if not os.fork():
        a = b'1' * (100 << 20)
        time.sleep(20)
os.wait()
"""


class Process:
    """A process that uses a share of the processor, or waits."""

    def __init__(self, *, share: float, is_waiting: bool = False) -> None:
        self.share, self.is_waiting = share, is_waiting

    def usage(self) -> Usage:
        now = asyncio.get_running_loop().time()
        return Usage(processor_s=now * self.share, is_waiting=self.is_waiting)

    def kill(self, exceeded: str = "") -> None:
        raise AssertionError(exceeded)


async def run_for(seconds: float, process: Process, limit_s: float) -> None:
    async with time_limit([cast("Inside", process)], limit_s):
        await asyncio.sleep(seconds)


async def test_a_program_that_a_busy_machine_slows_down_has_its_processor_time() -> None:
    await run_for(0.4, Process(share=0.1), limit_s=0.2)


async def test_what_a_program_wrote_last_may_be_read_late_on_a_busy_machine() -> None:
    await run_for(0.9, Process(share=0.0, is_waiting=True), limit_s=0.4)


@pytest.mark.parametrize(
    "process",
    [Process(share=1.0), Process(share=0.0, is_waiting=True), Process(share=0.0)],
    ids=["runs", "waits", "late"],
)
async def test_processor_time_waiting_and_four_times_the_limit_end_a_program(process: Process) -> None:
    with pytest.raises(TimeoutError):
        await run_for(30, process, limit_s=0.05)


@needs_sandbox
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("for i in range(10**6): open(f'/tmp/{i}', 'w')", "it made more than 1,000 files"),
        ("for i in range(10**6): open(f'/dev/shm/{i}', 'w')", "it made more than 1,000 files"),
        (EACH_100_MIB, "its processes used more than 256 MiB of memory"),
    ],
)
async def test_files_and_memory_of_all_processes_are_bounded(source: str, reason: str) -> None:
    sandbox = Sandbox(limits=SandboxLimits(files=1_000, all_memory_mib=256))

    ran = await sandbox.run(source, timeout_s=10)

    assert ran.exit_code != 0
    assert ran.errors.endswith(reason)


@needs_sandbox
async def test_a_program_stays_the_first_that_the_kernel_ends_for_memory() -> None:
    source = """
print(open('/proc/self/oom_score_adj').read().strip())
for score in ('0', '-1000'):
    try:
        open('/proc/self/oom_score_adj', 'w').write(score)
    except OSError:
        pass
print(open('/proc/self/oom_score_adj').read().strip())
"""

    ran = await Sandbox().run(source)

    assert ran.output == b"1000\n1000\n", ran
