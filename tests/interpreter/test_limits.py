"""A worker's limits hold for all runs together; its concurrency shrinks and grows with what the provider says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.interpreter.toy_workers import Answering, always, on_test_clock, pool_of

from wfdsl import RunFailed, Step, Workflow
from wfdsl.interpreter.limits import AdaptiveLimiter, ConcurrencyLimiter, RateWindow
from wfdsl.interpreter.running import run
from wfdsl.protocols import Call, Reply, Usage, WorkerFailure

if TYPE_CHECKING:
    from wfdsl import Pool
    from wfdsl.interpreter.record import Run

ONE = Workflow((Step(0, "a"),))
WIDE = Workflow((*(Step(0, f"try {index}") for index in range(6)), Step(0, "pick", "all")))


async def many(pool: Pool, count: int) -> list[Run]:
    return await asyncio.gather(*(run(ONE, "Q", pool) for _ in range(count)))


def test_a_workers_concurrency_holds_across_runs() -> None:
    worker = always("x", delay_s=5)
    pool = pool_of(worker, entries=[{"limits": {"concurrency": 3}}])

    runs = on_test_clock(many(pool, 10))

    assert worker.most_in_flight == 3
    assert max(done.seconds or 0 for done in runs) == pytest.approx(20.0)


def test_a_subset_of_a_pool_shares_its_limits() -> None:
    worker = always("x", delay_s=5)
    pool = pool_of(worker, always("y"), entries=[{"limits": {"concurrency": 1}}, {}])

    async def both() -> None:
        await asyncio.gather(run(ONE, "Q", pool), run(ONE, "Q", pool.subset([0])))

    on_test_clock(both())

    assert worker.most_in_flight == 1


def test_no_minute_has_more_requests_than_the_limit() -> None:
    times: list[float] = []

    async def answer(call: Call) -> Reply:
        times.append(asyncio.get_running_loop().time())
        return Reply("x")

    pool = pool_of(Answering(answer), entries=[{"limits": {"requests_per_minute": 4}}])

    on_test_clock(many(pool, 14))

    assert len(times) == 14
    assert all(later - earlier >= 60 for earlier, later in zip(times, times[4:], strict=False))
    assert times[-1] - times[0] == pytest.approx(180, abs=1)


def test_tokens_per_minute_are_counted_as_they_turn_out() -> None:
    times: list[float] = []

    async def answer(call: Call) -> Reply:
        times.append(asyncio.get_running_loop().time())
        return Reply("x", usage=Usage(10, 40))

    pool = pool_of(Answering(answer), entries=[{"limits": {"tokens_per_minute": 1050}, "max_tokens": 900}])

    async def one_after_the_other() -> None:
        for _ in range(4):
            await run(ONE, "Q", pool)

    on_test_clock(one_after_the_other())

    assert times[2] - times[0] == pytest.approx(0.0)
    assert times[3] - times[0] == pytest.approx(60.0, abs=1)


def test_concurrency_halves_when_there_is_overloaded_and_grows_again() -> None:
    gate = AdaptiveLimiter(16)
    for _ in range(16):
        assert gate.try_acquire()

    gate.overloaded(began=1.0, now=2.0)
    gate.overloaded(began=1.5, now=2.1)
    shrunk = gate.limit
    for _ in range(8):
        gate.succeeded()

    assert shrunk == 8
    assert 8.9 < gate.limit < 9.0


def test_concurrency_grows_no_further_than_its_limit_and_never_below_one() -> None:
    gate = AdaptiveLimiter(2)
    gate.try_acquire()
    for moment in range(5):
        gate.overloaded(began=moment, now=moment)

    assert gate.limit == 1
    for _ in range(10):
        gate.succeeded()
    assert gate.limit == 2


def test_calls_that_are_refused_as_too_many_lead_to_fewer_at_once() -> None:
    seen: list[int] = []

    async def answer(call: Call) -> Reply:
        seen.append(worker.in_flight)
        await asyncio.sleep(1)
        if worker.in_flight > 2:
            raise WorkerFailure("HTTP 429", retryable=True, status=429)
        return Reply("x")

    worker = Answering(answer)
    pool = pool_of(worker, entries=[{"retries": 30}])

    done = on_test_clock(run(WIDE, "Q", pool))

    assert done.status == "done"
    assert max(seen[:6]) == 6
    assert max(seen[6:]) <= 3


def test_a_gate_lets_in_first_who_came_first() -> None:
    order: list[int] = []

    async def through(gate: ConcurrencyLimiter, number: int) -> None:
        await gate.acquire()
        order.append(number)
        await asyncio.sleep(1)
        gate.release()

    async def all_of_them() -> None:
        gate = ConcurrencyLimiter(2)
        await asyncio.gather(*(through(gate, number) for number in range(7)))

    on_test_clock(all_of_them())

    assert order == list(range(7))


@pytest.mark.parametrize("turn_has_come", [False, True])
def test_who_is_cancelled_at_a_gate_takes_no_place(turn_has_come: bool) -> None:
    async def cancelled_in_line() -> int:
        gate = ConcurrencyLimiter(1)
        await gate.acquire()
        waiting = asyncio.create_task(gate.acquire())
        await asyncio.sleep(0)
        if turn_has_come:
            gate.release()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        if not turn_has_come:
            gate.release()
        return gate.active

    assert on_test_clock(cancelled_in_line()) == 0


def test_an_amount_over_the_whole_limit_goes_through_alone() -> None:
    async def twice() -> float:
        loop = asyncio.get_running_loop()
        window, began = RateWindow(100, loop.time), loop.time()
        await window.take(500)
        await window.take(500)
        return loop.time() - began

    assert on_test_clock(twice()) == pytest.approx(60.0, abs=1)


def test_a_call_that_is_cancelled_in_line_leaves_the_line_in_order() -> None:
    worker: Any = always("x", delay_s=5)
    pool = pool_of(worker, entries=[{"limits": {"concurrency": 1}}])

    async def one_gives_up() -> list[Any]:
        results = await asyncio.gather(
            run(ONE, "Q", pool), run(ONE, "Q", pool, timeout_s=2), run(ONE, "Q", pool), return_exceptions=True
        )
        return list(results)

    first, given_up, third = on_test_clock(one_gives_up())

    assert isinstance(given_up, RunFailed)
    assert "while queued" in str(given_up)
    assert (first.answer, third.answer) == ("x", "x")
    assert third.seconds == pytest.approx(10.0)
