"""The capacity model against the local engine, on a simulated clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest

from tests.interpreter.toy_workers import on_test_clock
from wfdsl import Pool
from wfdsl.grading.sandbox import Sandbox
from wfdsl.grading.sandbox.process import Ran
from wfdsl.grading.sandbox.sandbox import Slot
from wfdsl.interpreter.limits import WINDOW_S
from wfdsl.protocols import Call, Reply, Usage
from wfdsl.tasks.task import CodeTests, Task
from wfdsl.workers.entry import Limits, WorkerEntry
from wfdsl_rl.engines.capacity import Capacity
from wfdsl_rl.reward_maker import make_reward

TASKS = [Task(id="t", question="Q?", gold="yes", kind="text")]
PROGRAMS = [
    Task(id="t", question="Q?", gold="", kind="code", tests=CodeTests(style="stdin", inputs=("",), expected=("yes",)))
]
TOKENS, INPUT = 200, 10
LATENCY_S = 8.0


def rollouts_per_hour(
    setup: Capacity,
    rollouts: int,
    *,
    limits: dict[str, int],
    passed: float = 0.0,
    tasks: Sequence[Task] = TASKS,
    **options: Any,
) -> float:
    """What the local engine gives. `passed` of the rollouts are not counted: an empty limit lets them pass at once."""
    number = count()

    async def answer(call: Call) -> Reply:
        await asyncio.sleep(setup.latency_s)
        text = "yes" if tasks is TASKS else f"```python\nprint('yes')  # {next(number)}\n```"
        return Reply(text, usage=Usage(input_tokens=INPUT, output_tokens=TOKENS - INPUT))

    async def seconds() -> float:
        entry = WorkerEntry(
            name="w", provider="function", limits=Limits.model_validate(limits), max_tokens=TOKENS - INPUT
        )
        reward = make_reward(Pool.from_workers([(entry, answer)]), tasks, concurrency=setup.workflows, **options)
        begun = asyncio.get_running_loop().time()
        scored = await reward([completion(setup)] * rollouts, ["t"] * rollouts)
        assert {each.score for each in scored} == {1.0}
        return asyncio.get_running_loop().time() - begun

    return (rollouts - passed) / on_test_clock(seconds()) * 3600


def completion(setup: Capacity) -> str:
    """A workflow with the calls and the depth of a set-up: a chain, and steps beside it."""
    calls, depth = int(setup.calls), int(setup.calls if setup.depth is None else setup.depth)
    chain = [[number - 1] if number else [] for number in range(depth - 1)]
    access = [*chain, *([] for _ in range(calls - depth)), list(range(calls - 1))]
    subtasks = [f"Do {number}." for number in range(calls)]
    return f"model_id = {[0] * calls}\nsubtasks = {json.dumps(subtasks)}\naccess_list = {access}"


@pytest.mark.parametrize(
    ("limit", "setup", "rollouts", "limits"),
    [
        ("workflows in flight", Capacity(calls=3, latency_s=LATENCY_S, workflows=8), 160, {}),
        ("workflows in flight", Capacity(calls=5, depth=2, latency_s=LATENCY_S, workflows=8), 160, {}),
        ("calls in flight", Capacity(calls=3, latency_s=LATENCY_S, calls_in_flight=12), 400, {"concurrency": 12}),
        ("calls in flight", Capacity(calls=1, latency_s=0.2, calls_in_flight=25), 500, {"concurrency": 25}),
    ],
)
def test_what_is_in_flight_limits_the_engine_as_the_model_says(
    limit: str, setup: Capacity, rollouts: int, limits: dict[str, int]
) -> None:
    assert setup.limit == limit
    assert rollouts_per_hour(setup, rollouts, limits=limits) == pytest.approx(setup.rollouts_per_hour, rel=0.03)


@pytest.mark.parametrize(
    ("limit", "value", "given"),
    [
        ("requests per minute", 120, {"requests_per_minute": 120}),
        ("tokens per minute", 24_000, {"tokens_per_minute": 24_000}),
    ],
)
def test_limits_per_minute_hold_for_a_little_more_than_a_minute(limit: str, value: int, given: dict[str, Any]) -> None:
    setup = Capacity(calls=1, latency_s=1.0, tokens=TOKENS, **given)
    at_once = value if limit == "requests per minute" else value / TOKENS

    found = rollouts_per_hour(setup, int(at_once * 5), limits=given, passed=at_once)

    assert setup.limit == limit
    assert found == pytest.approx(setup.rollouts_per_hour * 60 / WINDOW_S, rel=0.03)


def test_sandbox_slots_limit_the_engine_as_the_model_says(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = Capacity(calls=1, latency_s=1.0, programs_s=0.5, sandbox_slots=4)

    async def run(self: Slot, source: str, *, stdin: str, timeout_s: float) -> Ran:
        async with self._turns:
            await asyncio.sleep(setup.programs_s)
        return Ran("ended", 0, b"yes\n", "", setup.programs_s)

    monkeypatch.setattr(Slot, "run", run)
    sandbox = Sandbox(slots=setup.sandbox_slots, unsafe=True)

    found = rollouts_per_hour(setup, 400, limits={}, tasks=PROGRAMS, sandbox=sandbox)

    assert setup.limit == "sandbox slots"
    assert found == pytest.approx(setup.rollouts_per_hour, rel=0.03)


def test_the_smallest_rate_is_the_rate_of_the_whole() -> None:
    setup = Capacity(
        calls=2,
        latency_s=4.0,
        processor_s=0.01,
        programs_s=0.5,
        sandbox_slots=4,
        generated_tokens_per_s=10_000,
        completion_tokens=500,
    )

    assert setup.rates() == pytest.approx(
        {"process": 360_000, "workflows in flight": 460_800, "sandbox slots": 28_800, "generation": 72_000}
    )
    assert setup.limit == "sandbox slots"
    assert setup.rollouts_per_hour == pytest.approx(28_800)
