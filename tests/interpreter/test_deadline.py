"""Deadlines: the calls of a run share one timer, and each still ends at its own time."""

from __future__ import annotations

import asyncio

import pytest
from tests.interpreter.toy_workers import always, in_turn, on_test_clock, pool_of

from wfdsl import RunFailed, Step, Workflow, run
from wfdsl.interpreter.limits import DeadlineTimer
from wfdsl.protocols import Reply

CHAIN = Workflow((Step(0, "a"), Step(1, "b", (0,))))


async def ended_after_s(watch: DeadlineTimer, seconds: float) -> float:
    """Wait for a deadline that passes after a number of seconds; how long that took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    limit = watch.start(began + seconds)
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        assert limit.take_back()
        return loop.time() - began
    finally:
        watch.stop(limit)
    raise AssertionError("the deadline did not come")


def test_each_call_ends_at_its_own_deadline_in_whatever_order_they_began() -> None:
    async def several() -> list[float]:
        with DeadlineTimer(asyncio.get_running_loop()) as watch:
            return await asyncio.gather(*(ended_after_s(watch, seconds) for seconds in (5, 1, 3, 3)))

    assert on_test_clock(several()) == pytest.approx([5, 1, 3, 3])


def test_a_call_that_begins_after_another_deadline_has_come_is_ended_too() -> None:
    async def one_after_the_other() -> list[float]:
        with DeadlineTimer(asyncio.get_running_loop()) as watch:
            return [await ended_after_s(watch, 2), await ended_after_s(watch, 7)]

    assert on_test_clock(one_after_the_other()) == pytest.approx([2, 7])


def test_a_deadline_inside_another_ends_only_what_it_holds_for() -> None:
    async def nested() -> float:
        loop = asyncio.get_running_loop()
        with DeadlineTimer(loop) as watch:
            outer = watch.start(loop.time() + 9)
            inner_s = await ended_after_s(watch, 2)
            await asyncio.sleep(1)
            watch.stop(outer)
            return inner_s

    assert on_test_clock(nested()) == pytest.approx(2)


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
