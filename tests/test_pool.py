"""Pools: indices, subsets, prices, and what they open and close."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

from wfdsl import Step, Workflow, run
from wfdsl.errors import UsageError
from wfdsl.protocols import Call, Reply, Usage
from wfdsl.workers.entry import Prices, WorkerEntry
from wfdsl.workers.pool import Pool

ASK = Call(({"role": "user", "content": "?"},))


def _entry(name: str, **more: Any) -> WorkerEntry:
    return WorkerEntry(name=name, provider="scripted", **{"options": {"replies": [name], "repeat": True}, **more})


def _pool() -> Pool:
    return Pool([_entry("a", tags=("x",)), _entry("b", tags=("x", "y"), fallback="c"), _entry("c")])


@pytest.mark.parametrize(
    ("renumber", "found"), [(False, ((0, 2), ("a", "c"))), (True, ((0, 1), ("c", "a")))], ids=["kept", "renumbered"]
)
def test_a_subset_keeps_its_indices_or_is_renumbered_in_the_order_asked_for(renumber: bool, found: Any) -> None:
    part = _pool().subset([2, 0], renumber=renumber)

    assert (part.indices, part.names) == found


def test_a_subset_has_no_fallback_that_it_does_not_offer() -> None:
    pool = _pool()

    assert pool.subset([1]).entry(1).fallback is None
    assert pool.subset([1, 2]).entry(1).fallback == "c"
    assert pool.entry(1).fallback == "c"


def test_workers_that_are_not_there_and_a_subset_of_nothing_are_refused() -> None:
    pool = _pool()

    with pytest.raises(UsageError, match='"pool"'):
        pool.entry(7)
    for indices in ([], [5]):
        with pytest.raises(UsageError, match='"pool"'):
            pool.subset(indices)


async def test_a_subset_asks_the_same_workers() -> None:
    pool = _pool()

    async with pool.open():
        assert pool.subset([2], renumber=True).worker(0) is pool.worker(2)


def test_prices_count_cached_tokens_apart() -> None:
    prices = Prices(input=2.0, output=10.0, cached=0.5)

    assert prices.usd(Usage(1_000_000, 100_000)) == pytest.approx(3.0)
    assert prices.usd(Usage(1_000_000, 0, 0, 400_000)) == pytest.approx(0.6 * 2 + 0.4 * 0.5)
    assert Prices(input=2.0, output=1.0).usd(Usage(1_000_000, 0, 0, 400_000)) == pytest.approx(2.0)
    assert Prices(input=2, output=1, cache_write=2.5).usd(Usage(1_000_000, 0, 0, 0, 400_000)) == pytest.approx(2.2)


def test_a_pool_survives_a_trip_to_another_process() -> None:
    pool = _pool()
    pool.worker(0)

    copy = pickle.loads(pickle.dumps(pool))

    assert (copy.names, copy.indices, copy.name) == (pool.names, pool.indices, pool.name)
    assert asyncio.run(copy.worker(0)(ASK)).text == "a"


class _Closing:
    """A worker that counts how often it is asked and closed."""

    def __init__(self) -> None:
        self.asked = self.closed = 0

    async def __call__(self, call: Call) -> Reply:
        self.asked += 1
        return Reply("here")

    async def aclose(self) -> None:
        self.closed += 1


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[_Closing]:
    """The workers that pools build, in the order of building."""
    made: list[_Closing] = []

    def build(entry: WorkerEntry, bench: Any) -> _Closing:
        made.append(_Closing())
        return made[-1]

    monkeypatch.setattr("wfdsl.workers.pool.build_worker", build)
    return made


async def test_the_last_open_block_closes_what_was_built(built: list[_Closing]) -> None:
    pool = _pool()

    async with pool.open() as outer:
        async with outer.subset([0]).open() as inner:
            await inner.worker(0)(ASK)
        assert [worker.closed for worker in built] == [0]
    assert [worker.closed for worker in built] == [1]

    async with pool.open():
        pool.worker(0)
    assert [worker.closed for worker in built] == [1, 1]


async def test_a_run_after_the_workers_were_closed_asks_new_ones(built: list[_Closing]) -> None:
    pool, workflow = _pool(), Workflow((Step(0, "Say it."),))

    for _ in range(2):
        async with pool.open():
            await run(workflow, "?", pool)
            await run(workflow, "?", pool)

    assert [worker.asked for worker in built] == [2, 2]


async def test_an_error_in_the_block_closes_too(built: list[_Closing]) -> None:
    pool = _pool()

    async def fail() -> None:
        async with pool.open():
            pool.worker(0)
            raise KeyError

    with pytest.raises(KeyError):
        await fail()

    assert [worker.closed for worker in built] == [1]


def test_each_event_loop_has_workers_of_its_own(built: list[_Closing]) -> None:
    pool = _pool()

    async def once() -> None:
        async with pool.open():
            await pool.worker(0)(ASK)

    asyncio.run(once())
    asyncio.run(once())

    assert [worker.closed for worker in built] == [1, 1]


async def test_workers_that_were_given_are_the_givers_to_close() -> None:
    given = _Closing()
    pool = Pool.from_workers([(_entry("a"), given)])

    async with pool.open():
        assert (await pool.worker(0)(ASK)).text == "here"

    assert given.closed == 0
