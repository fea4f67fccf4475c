"""What the sandbox offers to those who use it, and what it says where there is none."""

from __future__ import annotations

import asyncio
import os
from itertools import pairwise
from pathlib import Path

import pytest

from tests.grading.sandboxes import LIMITS, in_both_tiers, left_running, needs_sandbox, the_sandbox
from wfdsl.grading.code import grade_program
from wfdsl.grading.sandbox import Sandbox, SandboxLimits, SandboxMissing, isolation, probe
from wfdsl.grading.sandbox.isolation import site_packages
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
async def test_no_more_programs_run_at_one_time_than_there_are_slots_and_waiting_takes_none_of_their_time() -> None:
    sandbox = Sandbox(slots=1, limits=LIMITS)
    await sandbox.probe()
    source = "import time\nbegun = time.monotonic()\ntime.sleep(0.5)\nprint(begun, time.monotonic())"

    ran = await asyncio.gather(*(sandbox.run(source, timeout_s=1.5) for _ in range(4)))

    spans = sorted(tuple(map(float, one.output.split())) for one in ran)
    assert [one.ending for one in ran] == ["ended"] * 4
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans))
    assert left_running() == []


@needs_sandbox
def test_one_sandbox_serves_several_event_loops() -> None:
    async def some() -> list[bytes]:
        return [one.output for one in await asyncio.gather(*(the_sandbox().run("print(1)") for _ in range(4)))]

    outputs = [asyncio.run(some()), asyncio.run(some())]

    assert outputs == [[b"1\n"] * 4] * 2


@needs_sandbox
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives programs user ids")
async def test_programs_of_two_sandboxes_have_different_user_ids() -> None:
    source = "import os, time\ntime.sleep(0.5)\nprint(os.getuid())"

    ran = await asyncio.gather(*(Sandbox(slots=1, limits=LIMITS).run(source) for _ in range(2)))

    assert ran[0].output != ran[1].output


@needs_sandbox
def test_packages_are_there_when_they_are_asked_for(tmp_path: Path) -> None:
    tmp_path.joinpath("shared_tool.py").write_text("VALUE = 7", "utf-8")
    tmp_path.chmod(0o755)
    sandbox = Sandbox(slots=1, limits=LIMITS, packages=tmp_path)

    ran = asyncio.run(sandbox.run("import shared_tool; print(shared_tool.VALUE)"))

    assert ran.output == b"7\n", ran


def test_the_packages_of_a_virtual_environment_are_those_of_its_site_packages(tmp_path: Path) -> None:
    modules = tmp_path / "lib" / "python3.11" / "site-packages"
    modules.mkdir(parents=True)

    assert site_packages(tmp_path) == str(modules)
    with pytest.raises(SandboxMissing):
        site_packages(tmp_path / "nonesuch")


@pytest.mark.parametrize("broken", ["missing", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1"])
async def test_without_namespaces_programs_are_graded_by_landlock_or_unjudged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, broken: str
) -> None:
    """Where `unshare` is refused."""
    if broken != "missing":
        for name in ("bwrap", "unshare"):
            (tmp_path / name).write_text(f"#!/bin/sh\n{broken}\n", "utf-8")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
    sandbox = Sandbox(slots=1, limits=LIMITS)

    right = await grade_program("def f(x): return 1", TESTS, sandbox=sandbox)
    wrong = await grade_program("def f(x): return 2", TESTS, sandbox=sandbox)

    assert (right.outcome, wrong.outcome) in {("right", "wrong"), ("unjudged", "unjudged")}
    assert right.rule == ("tests in Landlock" if right.outcome == "right" else "")


async def test_where_neither_tier_holds_nothing_is_judged_and_the_reason_names_both(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(isolation, "_LANDLOCK", 999)  # as on a kernel without it

    sandbox = Sandbox(slots=1, limits=LIMITS)
    found = [await grade_program(f"def f(x): return {n}", TESTS, sandbox=sandbox) for n in (1, 2)]

    assert [verdict.outcome for verdict in found] == ["unjudged"] * 2
    assert "`bwrap` is not installed" in found[0].reason
    assert "Landlock needs Linux" in found[0].reason


@needs_sandbox
async def test_walls_that_do_not_hold_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = Sandbox(slots=1, limits=LIMITS)
    harmless = "broken = ['read passwords']\nimport json\nprint(json.dumps(broken))"
    monkeypatch.setattr(probe, "_HOSTILE", harmless)

    with pytest.raises(SandboxMissing, match="does not hold: a program in it could read passwords"):
        await sandbox.run("print(1)")


@pytest.mark.parametrize("tier", in_both_tiers)
@pytest.mark.parametrize(
    ("program", "outcome"),
    [
        ("def f(x): return 1", "right"),
        ("def f(x): return 2", "wrong"),
        ("import numpy\ndef f(x): return 1", "unjudged"),
        ("import nonesuch\ndef f(x): return 1", "wrong"),
    ],
)
async def test_the_verdict_names_the_tier_and_a_missing_package_is_unjudged(
    tier: str, program: str, outcome: str
) -> None:
    verdict = await grade_program(program, TESTS, sandbox=the_sandbox(tier))

    assert (verdict.outcome, verdict.rule) == (outcome, f"tests in {tier}")
    assert ("numpy" in verdict.reason) == (outcome == "unjudged")


@pytest.mark.parametrize("tier", in_both_tiers[1:])
async def test_what_the_second_tier_refuses_is_unjudged_and_its_files_are_bounded(tier: str) -> None:
    writing = "for n in range(100): open(f'{n}', 'wb').write(bytes(1 << 20))\nimport time\ntime.sleep(9)"

    verdict = await grade_program("import os\ndef f(x): return os.fork() and 1", TESTS, sandbox=the_sandbox(tier))
    ran = await the_sandbox(tier).run(writing)

    assert verdict.outcome == "unjudged"
    assert ran.exit_code != 0
    assert ran.errors.endswith("MiB of files")


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="memory_mib must be at least 1"):
        SandboxLimits(memory_mib=0)
