"""The simulator: schedules that break no promise, and faults of workers, disks and bills that it finds."""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import sqlite3
import subprocess
import sys
from typing import Any

import pytest

from wfdsl import Call, Reply, UsageError, Workflow
from wfdsl.interpreter.budget import BudgetTracker, BudgetUsage
from wfdsl.interpreter.config import RunRequest
from wfdsl.interpreter.limits import Pace
from wfdsl.testing import simulate, simulated_machine
from wfdsl.testing.simulated_provider import SimulatedProvider

CHAIN = Workflow.from_lists([0, 0, 0], ["a", "b", "c"], [[], [0], [1]])


def test_hundreds_of_schedules_break_no_promise() -> None:
    assert simulate(300) == []


@pytest.mark.parametrize("seed", [31, 139], ids=["that refuses at once", "that is slow, and refuses bursts"])
def test_a_provider_is_used_at_its_rate(seed: int) -> None:
    trace: list[str] = []

    assert simulate(1, first=seed, trace=trace.append) == []
    assert "are possible" in trace[-1]


def test_a_seed_gives_the_same_schedule_in_every_process() -> None:
    command = "from wfdsl.testing import simulate; simulate(12, trace=print)"
    traces = [
        subprocess.run(
            [sys.executable, "-c", command],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=True,
            timeout=100,
        ).stdout
        for seed in ("1", "2")
    ]

    assert traces[0] == traces[1]
    assert traces[0].count(b"\n") > 12


def test_a_violation_says_how_to_see_it_again() -> None:
    async def never_the_same(call: Call) -> Reply:
        return Reply(f"reply {next(numbers)}")

    numbers = itertools.count()

    found = simulate(2, first=5, workflow=CHAIN, workers=[never_the_same])

    assert [(each.seed, each.check) for each in found] == [(5, "answer"), (6, "answer")]
    assert str(found[0]).splitlines()[-1].endswith('simulate(1, first=5, trace=print)"')


def test_a_worker_that_never_answers_is_found() -> None:
    async def silent(call: Call) -> Reply:
        if "b" in call.messages[-1]["content"].splitlines():
            await asyncio.get_running_loop().create_future()
        return Reply("fine")

    assert {each.check for each in simulate(5, workflow=CHAIN, workers=[silent])} == {"ends"}


def test_a_worker_that_leaves_a_task_is_found() -> None:
    async def careless(call: Call) -> Reply:
        tasks.append(asyncio.create_task(asyncio.sleep(1000)))
        return Reply("fine")

    tasks: list[asyncio.Task[None]] = []

    assert "left" in {each.check for each in simulate(5, workflow=CHAIN, workers=[careless])}


def test_a_disk_that_forgets_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(simulated_machine._Connection):
        commits = 0

        def execute(self, statement: str, /, *parameters: Any) -> sqlite3.Cursor:
            if statement == "COMMIT":
                self.commits += 1
                statement = "COMMIT" if self.commits < 4 else "ROLLBACK"
            return super().execute(statement, *parameters)

    monkeypatch.setattr(simulated_machine, "_Connection", Forgetful)

    assert "twice" in {each.check for each in simulate(10, workflow=CHAIN)}


def doubled_by_each_call(pace: Pace, began: float, retry_after: float | None = None) -> None:
    """As if no other call had been under way."""
    pace._refused_at, pace._left = -math.inf, 0
    REFUSED(pace, began, retry_after)


def charged_twice(provider: SimulatedProvider, *args: Any) -> None:
    CHARGE(provider, *args)
    CHARGE(provider, *args)


async def taken_at_once(tracker: BudgetTracker, bound: BudgetUsage) -> None:
    """As if there were no limit."""


REFUSED, CHARGE = Pace.refused, SimulatedProvider._charge
FAULTS: dict[str, tuple[type, str, Any, int, str]] = {
    "a run id that is used for another question": (RunRequest, "changes", lambda *_: [], 0, "identity"),
    "a back-off that doubles with each call": (Pace, "refused", doubled_by_each_call, 31, "makespan"),
    "a reservation that is not taken": (BudgetTracker, "reserve", taken_at_once, 0, "budget"),
    "a call that is not charged": (SimulatedProvider, "_charge", charged_twice, 0, "budget"),
}


@pytest.mark.parametrize(("place", "name", "fault", "first", "check"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_found(
    place: type, name: str, fault: Any, first: int, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, fault)

    assert {each.check for each in simulate(5, first=first)} == {check}


def test_an_unknown_check_is_refused() -> None:
    with pytest.raises(UsageError, match="'answers'"):
        simulate(1, skip=["answers"])
