"""Deadlines: each call ends at its own time, and leaves nothing that would ring later."""

from __future__ import annotations

import asyncio

import pytest
from tests.interpreter.toy_workers import always, in_turn, on_test_clock, pool_of

from wfdsl import RunFailed, Step, Workflow, run
from wfdsl.protocols import Reply

CHAIN = Workflow((Step(0, "a"), Step(1, "b", (0,))))


def test_a_cancel_from_outside_is_no_deadline() -> None:
    async def cancelled() -> bool:
        work = asyncio.create_task(run(CHAIN, "Q", pool_of(always(delay_s=9), always()), step_timeout_s=100))
        await asyncio.sleep(1)
        work.cancel()
        await asyncio.wait([work])
        return work.cancelled()

    assert on_test_clock(cancelled())


def test_a_step_may_take_its_whole_time_and_the_next_one_has_its_own() -> None:
    pool = pool_of(in_turn(Reply("one"), delay_s=9), in_turn(Reply("two"), delay_s=9))

    assert on_test_clock(run(CHAIN, "Q", pool, step_timeout_s=10)).answer == "two"


def test_no_timer_is_left_behind() -> None:
    async def timers() -> list[asyncio.TimerHandle]:
        await run(CHAIN, "Q", pool_of(always(), always()), step_timeout_s=100)
        with pytest.raises(RunFailed, match="timed out"):
            await run(CHAIN, "Q", pool_of(always(delay_s=50), always()), step_timeout_s=10)
        scheduled: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        return [timer for timer in scheduled if not timer.cancelled()]

    assert on_test_clock(timers()) == []
