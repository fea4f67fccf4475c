"""What the sandbox offers to those who use it, and what it says where there is none."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise
from pathlib import Path

import pytest

from tests.grading.sandboxes import LIMITS, left_running, needs_sandbox, the_sandbox
from wfdsl.errors import UsageError
from wfdsl.grading import code
from wfdsl.grading.code import grade_program
from wfdsl.grading.sandbox import Sandbox, SandboxLimits, SandboxMissing, probe
from wfdsl.tasks.task import CodeTests

TESTS = CodeTests(style="function", inputs=("[1]",), expected=("1",), entry_point="f", timeout_s=10)


@needs_sandbox
async def test_a_program_gets_its_input_and_its_output_comes_back() -> None:
    ran = await the_sandbox().run("import sys; print(input()); sys.stderr.write('no'); exit(3)", stdin="hé\n")

    assert (ran.ending, ran.exit_code, ran.output.decode(), ran.errors) == ("ended", 3, "hé\n", "no")


@needs_sandbox
async def test_two_runs_of_a_program_are_alike() -> None:
    source = "print({str(n) for n in range(50)}, hash('x'))"

    first, second = await the_sandbox().run(source), await the_sandbox().run(source)

    assert first.output == second.output != b""


@needs_sandbox
async def test_no_more_programs_run_at_one_time_than_there_are_slots() -> None:
    sandbox = Sandbox(slots=1, limits=LIMITS)
    await sandbox.probe()
    source = "import time\nbegun = time.monotonic()\ntime.sleep(0.2)\nprint(begun, time.monotonic())"

    ran = await asyncio.gather(*(sandbox.run(source) for _ in range(3)))

    spans = sorted(tuple(map(float, one.output.split())) for one in ran)
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans))
    assert left_running() == []


@needs_sandbox
async def test_waiting_for_a_turn_takes_nothing_from_the_time_of_a_program() -> None:
    sandbox = Sandbox(slots=1, limits=LIMITS)
    await sandbox.probe()

    ran = await asyncio.gather(*(sandbox.run("import time; time.sleep(0.5)", timeout_s=1.5) for _ in range(4)))

    assert [one.ending for one in ran] == ["ended"] * 4


@needs_sandbox
def test_one_sandbox_serves_several_event_loops() -> None:
    async def some() -> list[bytes]:
        return [one.output for one in await asyncio.gather(*(the_sandbox().run("print(1)") for _ in range(4)))]

    outputs = [asyncio.run(some()), asyncio.run(some())]

    assert outputs == [[b"1\n"] * 4] * 2


@needs_sandbox
def test_packages_are_there_when_they_are_asked_for(tmp_path: Path) -> None:
    tmp_path.joinpath("shared_tool.py").write_text("VALUE = 7", "utf-8")
    tmp_path.chmod(0o755)
    sandbox = Sandbox(slots=1, limits=LIMITS, packages=tmp_path)

    ran = asyncio.run(sandbox.run("import shared_tool; print(shared_tool.VALUE)"))

    assert ran.output == b"7\n", ran


async def test_without_bubblewrap_nothing_is_judged_and_the_reason_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code.shared_sandbox.cache_clear()

    right = await grade_program("def f(x): return 1", TESTS, verdicts=None)
    wrong = await grade_program("def f(x): return 2", TESTS, verdicts=None)

    assert (right.outcome, wrong.outcome) == ("unjudged", "unjudged")
    assert "`bwrap` is not installed: install bubblewrap 0.8 or later" in right.reason
    with pytest.raises(UsageError, match="apt-get install bubblewrap"):
        Sandbox()


@needs_sandbox
async def test_a_bubblewrap_that_cannot_build_walls_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n", "utf-8")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    sandbox = Sandbox(slots=1)

    verdict = await grade_program("def f(x): return 1", TESTS, sandbox=sandbox, verdicts=None)

    assert verdict.outcome == "unjudged"
    assert "No permissions to create new namespace" in verdict.reason
    assert "capability SYS_ADMIN" in verdict.reason


@needs_sandbox
async def test_walls_that_do_not_hold_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = Sandbox(slots=1, limits=LIMITS)
    harmless = "broken = ['read passwords']\nimport json\nprint(json.dumps(broken))"
    monkeypatch.setattr(probe, "_HOSTILE", harmless)

    with pytest.raises(SandboxMissing, match="does not hold: a program in it could read passwords"):
        await sandbox.run("print(1)")


async def test_a_sandbox_without_walls_is_said_aloud_and_in_every_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        sandbox = Sandbox(slots=1, unsafe=True)

    verdict = await grade_program("def f(x): return 1", TESTS, sandbox=sandbox, verdicts=None)

    assert "WITHOUT a sandbox" in caplog.text
    assert (verdict.outcome, verdict.reason) == ("right", "UNSAFE, without a sandbox: all 1 tests passed")


async def test_without_walls_a_program_and_its_children_still_end_in_time() -> None:
    sandbox = Sandbox(slots=1, unsafe=True)

    ran = await sandbox.run("import os\nprint(os.getpid(), os.fork(), flush=True)\nwhile True: pass", timeout_s=1.0)
    gone = await sandbox.run("print(1)")

    assert (ran.ending, gone.output) == ("timeout", b"1\n")


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="memory_mib must be at least 1"):
        SandboxLimits(memory_mib=0)
