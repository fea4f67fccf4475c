"""A worker's limits hold for all runs together; refusals give it a pace."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING, Any

import pytest
from tests.interpreter.toy_workers import Answering, always, on_test_clock, pool_of

from wfdsl import Budget, RunFailed, Step, UsageError, Workflow
from wfdsl.interpreter.limits import WINDOW_S, RateWindow
from wfdsl.interpreter.running import run
from wfdsl.protocols import Call, Reply, Usage, WorkerFailure

if TYPE_CHECKING:
    from wfdsl import Pool
    from wfdsl.interpreter.record import Run

ALL_STEPS: dict[str, Any] = {"run_dead_steps": True}
RETRIED = [{"retries": 1}]
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


def test_subsets_of_a_pool_and_workers_of_one_account_share_limits() -> None:
    worker, limits = always("x", delay_s=5), {"concurrency": 3, "account": "ours"}
    pool = pool_of(worker, worker, entries=[{"limits": limits, "model": name} for name in ("m", "n")])
    eight = Workflow((*(Step(index % 2, f"try {index}") for index in range(8)),))

    async def both() -> None:
        await asyncio.gather(run(eight, "Q", pool, **ALL_STEPS), many(pool.subset([0]), 3))

    on_test_clock(both())

    assert (len(worker.calls), worker.most_in_flight) == (11, 3)
    with pytest.raises(UsageError, match=r'"w0" and "w1" .* share the account "ours", but not its limits'):
        pool_of(worker, worker, entries=[{"limits": limits}, {"limits": {**limits, "concurrency": 4}}])


def test_no_minute_has_more_requests_than_the_limit() -> None:
    worker = always("x")

    on_test_clock(many(pool_of(worker, entries=[{"limits": {"requests_per_minute": 4}}]), 14))

    times = worker.times
    assert len(times) == 14
    assert all(later - earlier > 61 for earlier, later in zip(times, times[4:], strict=False))
    assert times[-1] - times[0] == pytest.approx(3 * WINDOW_S, abs=1)


def test_tokens_per_minute_are_counted_as_they_turn_out() -> None:
    worker = always("x", usage=Usage(10, 40))
    pool = pool_of(worker, entries=[{"limits": {"tokens_per_minute": 1050}, "max_tokens": 900}])

    async def one_after_the_other() -> None:
        for _ in range(4):
            await run(ONE, "Q", pool)

    on_test_clock(one_after_the_other())

    assert worker.times[2] - worker.times[0] == pytest.approx(0.0)
    assert worker.times[3] - worker.times[0] == pytest.approx(WINDOW_S, abs=1)


class RateLimited:
    """A provider that serves so many calls in any window, and refuses the others with 429."""

    def __init__(self, most: int, window_s: float, retry_after: float | None = None, *, takes_s: float = 0.05) -> None:
        self.most, self.window_s, self.retry_after, self.takes_s = most, window_s, retry_after, takes_s
        self.served: list[float] = []
        self.refused: list[float] = []

    async def __call__(self, call: Call) -> Reply:
        now = asyncio.get_running_loop().time()
        if sum(at > now - self.window_s for at in self.served) >= self.most:
            self.refused.append(now)
            raise WorkerFailure("HTTP 429: slow down", retryable=True, status=429, retry_after=self.retry_after)
        self.served.append(now)
        await asyncio.sleep(self.takes_s)
        return Reply("x", usage=Usage(1, 1))


@pytest.mark.parametrize(
    ("steps", "limits"),
    [(200, (10, 1.0, 1.0)), (150, (60, 10.0))],
    ids=["10 a second with Retry-After", "60 in ten seconds without"],
)
def test_a_wide_workflow_is_refused_seldom_by_a_provider_with_a_rate(steps: int, limits: tuple[Any, ...]) -> None:
    """That it is no slower than need be is seen by the simulator."""
    wide = Workflow((*(Step(0, f"try {index}") for index in range(steps)), Step(0, "pick", "all")))
    provider = RateLimited(*limits)

    done = on_test_clock(run(wide, "Q", pool_of(Answering(provider), entries=RETRIED)))

    assert done.status == "done"
    assert len(provider.served) == steps + 1
    assert sum(step.retries for step in done.steps) == len(provider.refused) <= 20


def test_nothing_is_asked_while_the_provider_wants_to_be_left_alone() -> None:
    provider = RateLimited(1, 30.0, 30.0)
    pool = pool_of(Answering(provider), entries=RETRIED)

    async def later() -> None:
        first = asyncio.create_task(many(pool, 3))
        await asyncio.sleep(5)
        await asyncio.gather(first, many(pool, 2))

    on_test_clock(later())

    began = provider.served[0]
    assert provider.refused[0] == began
    assert all(at >= began + 30 for at in (*provider.served[1:], *provider.refused[1:]))


def test_a_worker_that_is_held_back_keeps_no_other_from_work() -> None:
    provider, free = RateLimited(1, 30.0, 30.0), always("y")
    pool = pool_of(Answering(provider), free, entries=[*RETRIED, {}])
    steps = (*(Step(0, f"try {index}") for index in range(4)), Step(1, "other"), Step(1, "pick", (4,)))

    async def first_thirty_seconds() -> int:
        whole = asyncio.create_task(run(Workflow(steps), "Q", pool, concurrency=2, run_dead_steps=True))
        await asyncio.sleep(29)
        found = len(free.calls)
        await whole
        return found

    assert on_test_clock(first_thirty_seconds()) == 2


def test_a_request_that_waits_for_its_minute_waits_for_the_provider_too() -> None:
    provider = RateLimited(1, 100.0, 100.0)
    entry = {"retries": 1, "limits": {"requests_per_minute": 2}}

    async def slow(call: Call) -> Reply:
        await asyncio.sleep(1)
        return await provider(call)

    on_test_clock(many(pool_of(Answering(slow), entries=[entry]), 3))

    first, *later = provider.served
    assert provider.refused[0] == first
    assert all(at - first >= 100 for at in (*later, *provider.refused[1:]))


def test_runs_that_wait_for_the_same_provider_do_not_all_come_back_at_the_same_moment() -> None:
    def second_try() -> float:
        provider = RateLimited(1, 100.0, 100.0)
        on_test_clock(many(pool_of(Answering(provider), entries=RETRIED), 2))
        return provider.served[1] - provider.served[0]

    waits = {second_try() for _ in range(5)}

    assert len(waits) == 5
    assert all(100 <= wait <= 110 for wait in waits)


def test_a_provider_that_refuses_everything_is_given_up_after_the_longest_wait() -> None:
    pool = pool_of(Answering(RateLimited(0, 1.0)), entries=RETRIED)

    with pytest.raises(RunFailed, match=r"HTTP 429: slow down; the provider has refused every call for 1[0-9][0-9] s"):
        on_test_clock(run(ONE, "Q", pool, longest_wait_s=100))


def test_a_worker_with_a_fallback_is_given_up_after_its_attempts() -> None:
    worker = Answering(RateLimited(0, 1.0))
    pool = pool_of(worker, always("saved"), entries=[{"fallback": "w1", "retries": 2}, {}])

    done = on_test_clock(run(ONE, "Q", pool))

    assert (done.answer, len(worker.calls)) == ("saved", 3)


def test_a_request_is_counted_when_it_leaves_and_not_when_the_budget_makes_it_wait() -> None:
    async def answer(call: Call) -> Reply:
        await asyncio.sleep(40 if len(worker.calls) == 1 else 1)
        return Reply("x", usage=Usage(10, 10))

    entry = {"limits": {"requests_per_minute": 2}, "max_tokens": 100}
    worker = Answering(answer)
    pool = pool_of(worker, entries=[entry])
    four = Workflow((*(Step(0, f"try {index}") for index in range(4)),))

    on_test_clock(run(four, "Q", pool, budget=Budget(tokens=190), run_dead_steps=True))

    assert [at - worker.times[0] for at in worker.times] == pytest.approx([0, 40, WINDOW_S, WINDOW_S + 40], abs=1.1)


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


def test_an_amount_over_the_whole_limit_goes_through_alone() -> None:
    async def twice() -> float:
        loop = asyncio.get_running_loop()
        window, began = RateWindow(100), loop.time()
        await window.take(500)
        await window.take(500)
        return loop.time() - began

    assert on_test_clock(twice()) == pytest.approx(WINDOW_S, abs=1)


def test_limits_do_not_keep_an_event_loop_that_has_ended() -> None:
    async def loop_of_a_run() -> weakref.ref[asyncio.AbstractEventLoop]:
        await run(ONE, "Q", pool_of(always("x"), entries=[{"limits": {"requests_per_minute": 9}}]))
        return weakref.ref(asyncio.get_running_loop())

    left = asyncio.run(loop_of_a_run())
    gc.collect()

    assert left() is None
