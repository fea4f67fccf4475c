"""The warm pool: processes of the sandbox that are ready for programs to come."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest

from tests.grading.sandboxes import LIMITS, left_running, needs_sandbox
from wfdsl.grading.code import grade_program
from wfdsl.grading.sandbox import Sandbox, SandboxFailed
from wfdsl.grading.sandbox import sandbox as places
from wfdsl.grading.sandbox.process import Inside
from wfdsl.grading.sandbox.sandbox import MOST_WARM, WarmPool
from wfdsl.tasks.task import CodeTests

FUNCTION = CodeTests(style="function", inputs=("[1]",), expected=("2",), entry_point="f", timeout_s=10)
CHECKER = CodeTests(style="program", entry_point="f", checker="assert f(1) == 2", timeout_s=10)


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    sandbox = Sandbox(slots=2, limits=LIMITS)
    sandbox._probed = True  # it was tested when the tests were collected, and programs are counted here
    yield sandbox
    await sandbox.cool_down()
    assert left_running() == []


@needs_sandbox
async def test_as_many_stand_ready_as_were_taken_and_the_next_programs_take_them(sandbox: Sandbox) -> None:
    assert sandbox.warm == 0
    await asyncio.gather(*(sandbox.run("print(1)") for _ in range(3)))

    await sandbox.warm_up()
    assert sandbox.warm == 3
    ran = await asyncio.gather(*(sandbox.run("print(input())", stdin=str(number)) for number in range(2)))

    assert [one.output for one in ran] == [b"0\n", b"1\n"]
    assert sandbox.warm == 1


@needs_sandbox
async def test_each_kind_of_test_has_processes_of_its_own(sandbox: Sandbox) -> None:
    graded = [("def f(x): return x + 1", FUNCTION), ("def f(x): return x", FUNCTION), ("f = lambda x: 2", CHECKER)]
    before = [await grade_program(program, tests, sandbox=sandbox, verdicts=None) for program, tests in graded]

    await sandbox.warm_up()
    assert sandbox.warm == 4  # three programs and a checker
    after = [await grade_program(program, tests, sandbox=sandbox, verdicts=None) for program, tests in graded]

    assert sandbox.warm == 0
    assert [verdict.outcome for verdict in after] == ["right", "wrong", "right"]
    assert after == before


@needs_sandbox
async def test_a_process_that_died_while_it_stood_is_given_no_program(sandbox: Sandbox) -> None:
    await asyncio.gather(sandbox.run("print(1)"), sandbox.run("print(1)"))
    await sandbox.warm_up()
    assert sandbox.warm == 2
    waiting: list[Inside] = sandbox._state().pool._ready["program"]

    for inside in waiting:
        os.kill(inside.process.pid, signal.SIGKILL)
        await inside.process.wait()
    ran = await sandbox.run("print(2)")

    assert ran.output == b"2\n"
    assert sandbox.warm == 0


@needs_sandbox
async def test_a_program_has_its_time_however_long_its_process_stood(sandbox: Sandbox) -> None:
    endless = "while True: pass"
    await sandbox.run("print(1)")
    await sandbox.warm_up()
    assert sandbox.warm == 1
    await asyncio.sleep(0.6)

    slept = await sandbox.run("import time; time.sleep(0.3); print(1)", timeout_s=20)
    ran = await sandbox.run(endless, timeout_s=0.3)

    assert (slept.ending, ran.ending) == ("ended", "timeout")
    assert slept.seconds >= 0.3


@needs_sandbox
async def test_processor_time_is_bounded_by_what_is_asked_for_in_the_end(sandbox: Sandbox) -> None:
    asked = "import resource; print(resource.getrlimit(resource.RLIMIT_CPU))"
    await asyncio.gather(sandbox.run("print(1)"), sandbox.run("print(1)"))
    await sandbox.warm_up()
    assert sandbox.warm == 2

    short, long = await sandbox.run(asked, timeout_s=3.0), await sandbox.run(asked, timeout_s=7.5)

    assert (short.output, long.output) == (b"(4, 4)\n", b"(9, 9)\n")


@needs_sandbox
async def test_preparing_ends_where_it_is_when_it_is_dismissed(sandbox: Sandbox) -> None:
    await asyncio.gather(*(sandbox.run("print(1)") for _ in range(6)))
    preparing = sandbox.warm_up()
    await asyncio.wait([preparing], timeout=0.05)

    await sandbox.cool_down()

    assert preparing.done()
    assert sandbox.warm == 0
    assert left_running() == []


@needs_sandbox
async def test_the_largest_burst_so_far_says_how_many_stand(sandbox: Sandbox) -> None:
    stood = []
    for burst in (1, 4, 2):
        await asyncio.gather(*(sandbox.run("print(1)") for _ in range(burst)))
        await sandbox.warm_up()
        stood.append(sandbox.warm)

    assert stood == [1, 4, 4]


async def test_never_more_of_a_role_stand_than_there_may_be() -> None:
    started = []

    async def start(role: str) -> None:
        started.append(role)
        raise SandboxFailed("enough was seen")

    pool = WarmPool(start)  # type: ignore[arg-type]
    pool._used["program"] = MOST_WARM + 1
    pool._ready["program"] = [None] * MOST_WARM  # type: ignore[list-item]

    await pool.warm_up()

    assert started == []


@needs_sandbox
async def test_where_nothing_can_be_started_any_more_it_is_said_and_programs_say_why(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await sandbox.run("print(1)")
    monkeypatch.setattr(places.Sandbox, "_command", lambda *_: lambda _: ("/nowhere/bwrap",))

    await sandbox.warm_up()

    assert "the sandbox has no warm processes: the sandbox could not be started" in caplog.text
    with pytest.raises(SandboxFailed, match="could not be started"):
        await sandbox.run("print(1)")
