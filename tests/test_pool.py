"""Pools: indices, subsets, and what they open and close."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

from wfdsl import Step, Workflow, run
from wfdsl.errors import UsageError
from wfdsl.protocols import Call, Reply
from wfdsl.workers.entry import WorkerEntry
from wfdsl.workers.pool import Pool

ASK = Call(({"role": "user", "content": "?"},))


def _entry(name: str, **more: Any) -> WorkerEntry:
    return WorkerEntry(name=name, provider="scripted", **{"options": {"replies": [name], "repeat": True}, **more})


def _pool() -> Pool:
    return Pool([_entry("a", tags=("x",)), _entry("b", tags=("x", "y"), fallback="c"), _entry("c")])


async def test_a_subset_has_the_same_workers_under_their_indices_or_new_ones_and_no_fallback_beside_them() -> None:
    pool = _pool()
    part, renumbered = pool.subset([2, 0]), pool.subset([2, 0], renumber=True)

    assert (part.indices, part.names) == ((0, 2), ("a", "c"))
    assert (renumbered.indices, renumbered.names) == ((0, 1), ("c", "a"))
    assert pool.subset([1]).entry(1).fallback is None
    assert pool.subset([1, 2]).entry(1).fallback == pool.entry(1).fallback == "c"
    async with pool.open():
        assert renumbered.worker(0) is pool.worker(2)


def test_workers_that_are_not_there_are_told_apart_from_those_that_are() -> None:
    with pytest.raises(UsageError, match='the pool "pool" has no worker 7; it has 0, 1, 2'):
        _pool().entry(7)
    with pytest.raises(UsageError, match="has no worker 5"):
        _pool().subset([5])
    with pytest.raises(UsageError, match='two workers called "a"'):
        Pool([_entry("a")] * 2)
    with pytest.raises(UsageError, match="has no workers"):
        _pool().subset([])


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


def test_each_event_loop_has_workers_of_its_own_and_closes_them_after_an_error_too(built: list[_Closing]) -> None:
    pool = _pool()

    async def once() -> None:
        async with pool.open():
            await pool.worker(0)(ASK)
            raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            asyncio.run(once())

    assert [worker.closed for worker in built] == [1, 1]


async def test_workers_that_were_given_are_the_givers_to_close() -> None:
    given = _Closing()
    pool = Pool.from_workers([(_entry("a"), given)])

    async with pool.open():
        assert (await pool.worker(0)(ASK)).text == "here"

    assert given.closed == 0
