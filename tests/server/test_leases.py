"""Leases: what other processes draw is within the limits and the budget, whatever becomes of them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wfdsl.interpreter.budget import Budget, BudgetTracker, BudgetUsage
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_reading import run_of, summaries
from wfdsl.interpreter.limits import ConcurrencyLimiter, WorkerLimits
from wfdsl.interpreter.worker_profile import WorkerProfile, profile_of
from wfdsl.protocols import Call, Reply
from wfdsl.server.api_errors import ApiError
from wfdsl.server.leases import LEASE_S, Leases
from wfdsl.server.live_limits import LiveLimits
from wfdsl.workers.entry import Limits, WorkerEntry
from wfdsl.workers.pool import Pool
from wfdsl_rl.reward import budget_tracker

LATER = LEASE_S + 1
CALL = (100, 0.5)


def profile(**limits: int) -> WorkerProfile:
    """A worker with these limits."""

    async def never(call: Call) -> Reply:
        raise AssertionError("leases call no worker")

    return profile_of(
        Pool.from_workers(
            [(WorkerEntry(name="ann", provider="function", limits=Limits.model_validate(limits)), never)]
        ),
        0,
    )


def now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def opened(path: Path, budget: Budget | None = None, **limits: int) -> AsyncIterator[Leases]:
    """A server's leases on a journal, as they are after a start."""
    with Journal(path) as journal:
        workers = {"ann": WorkerLimits(profile(**limits), asyncio.get_running_loop().time)}
        found = Leases(workers, budget_tracker(budget or Budget(), journal), journal)
        async with found.running():
            yield found


def used(lease: str, tokens: int = 50, usd: float = 0.25, **more: Any) -> dict[str, Any]:
    return {"lease": lease, "calls": 1, "tokens": tokens, "usd": usd, **more}


async def test_all_holders_together_have_as_many_calls_in_flight_as_the_worker_allows(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db", concurrency=3) as leases:
        first = await leases.take("a", "ann", [CALL] * 5)
        waiting = asyncio.create_task(leases.take("b", "ann", [CALL] * 2))
        await asyncio.sleep(0.01)
        assert (len(first), waiting.done()) == (3, False)

        leases.settle("a", [used(first[0])])

        assert len(await waiting) == 1


async def test_money_is_reserved_by_a_lease_and_settled_at_its_end(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db", Budget(usd=1.2)) as leases:
        held = await leases.take("a", "ann", [CALL] * 9)
        assert (len(held), leases.budget.reserved.usd, leases.budget.spent.usd) == (2, 1.0, 0.0)

        leases.settle("a", [used(each) for each in held])
        (last,) = await leases.take("b", "ann", [CALL] * 9)
        leases.settle("b", [used(last)])

        assert leases.budget.spent == BudgetUsage(3, 150, 0.75)
        with pytest.raises(ApiError, match=r"the budget of \$1\.2 has \$0\.450000 left") as spent:
            await leases.take("b", "ann", [CALL])
        assert (spent.value.status, spent.value.code) == (429, "insufficient_quota")


async def test_calls_of_a_dead_holder_stay_charged_and_give_their_places_back(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    async with opened(path, Budget(usd=2.25), concurrency=2) as leases:
        held = await leases.take("dead", "ann", [CALL] * 2)
        leases.settle("dead", [used(held[0])])
        other = asyncio.create_task(leases.take("other", "ann", [CALL] * 4))
        leases.expire(now() + LEASE_S - 1)
        assert len(await other) == 1  # the place of the call that was settled

        leases.settle("other", [])
        leases._holders["dead"].expires = now()
        leases.expire(now())

        assert leases.budget.spent == BudgetUsage(2, 150, 0.75)  # one at its cost, one at its bound
        assert leases.settle("dead", [used(held[1])]) == [held[1]]
        assert len(await leases.take("other", "ann", [CALL] * 4)) == 1
        assert leases.counts == {"settled": 1, "lost": 1}
    (lost,) = run_of(path, "leases/dead").lost
    assert (lost.worker_name, lost.tokens, lost.usd) == ("ann", 100, 0.5)


@pytest.mark.parametrize("wrong", [{"usd": 1e12}, {"tokens": 10**12}, {"calls": 2}, {"tokens": 101, "usd": 1e12}])
async def test_a_charge_far_above_the_bound_is_refused_and_the_bound_is_charged(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    async with opened(tmp_path / "j.db", Budget(usd=3.0, tokens=10_000), concurrency=2) as leases:
        first, second = await leases.take("a", "ann", [CALL] * 2)

        with pytest.raises(
            ApiError, match=rf"lease {first} is far above its bound of 1 call, 100 tokens and"
        ) as refused:
            leases.settle("a", [{**used(first), **wrong}, used(second)])

        assert (refused.value.status, refused.value.code) == (400, "beyond_bound")
        assert leases.budget.spent == BudgetUsage(2, 150, 0.75)  # one at its bound, one at its cost
        assert len(await leases.take("b", "ann", [CALL] * 2)) == 2


async def test_a_call_somewhat_above_its_bound_is_charged_and_ends_the_budget_of_its_holder_only(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path / "j.db", Budget(usd=3.0)) as leases:
        (lease,) = await leases.take("a", "ann", [CALL])
        leases.settle("a", [used(lease, tokens=400, usd=1.0)])

        assert leases.budget.spent.usd == 1.0
        with pytest.raises(ApiError, match=r"for a: a reply cost \$1\.000000, where at most \$0\.500000") as ended:
            await leases.take("a", "ann", [CALL])
        assert (ended.value.status, ended.value.code) == (429, "insufficient_quota")
        assert len(await leases.take("b", "ann", [CALL])) == 1


async def test_without_a_budget_a_call_may_take_more_than_its_bound_which_may_be_unknown(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db") as leases:
        (lease,) = await leases.take("a", "ann", [(20, 0.0)])

        assert leases.settle("a", [used(lease, tokens=30_000, usd=0.5)]) == []
        assert len(await leases.take("a", "ann", [CALL])) == 1


async def test_a_change_of_the_budget_lets_calls_through_again_after_a_reply_above_its_bound(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db", Budget(usd=3.0)) as leases:
        live = LiveLimits(leases._workers, leases.budget, ConcurrencyLimiter(4))
        assert leases.budget.try_reserve(BudgetUsage(1, *CALL))
        leases.budget.settle(BudgetUsage(1, *CALL), BudgetUsage(1, 100, 1.0))  # a call of the server's own
        live.change({"workers": {"ann": {"concurrency": 2}}})
        with pytest.raises(ApiError, match="the budget cannot be enforced any more"):
            await leases.take("a", "ann", [CALL])

        live.change({"budget": {"usd": 3.0}})

        assert len(await leases.take("a", "ann", [CALL])) == 1


async def test_leases_outlive_the_server(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    async with opened(path, Budget(usd=2.0), concurrency=3) as leases:
        held = await leases.take("a", "ann", [CALL] * 3, request="r1")
        leases.settle("a", [used(held[0])])

    async with opened(path, Budget(usd=2.0), concurrency=3) as leases:
        assert (leases.budget.spent.usd, leases.budget.reserved.usd) == (0.25, 1.0)
        assert await leases.take("a", "ann", [CALL] * 3, request="r1") == held[1:]  # the answer was lost, asked again
        assert len(await leases.take("b", "ann", [CALL] * 3)) == 1
        assert leases.settle("a", [used(held[1])]) == []
        assert leases.budget.spent.usd == 0.5
        leases.expire(now() + LATER)

    assert {each.id: each.charged for each in summaries(path)} == {
        "leases/a": BudgetUsage(3, 200, 1.0),
        "leases/b": BudgetUsage(1, 100, 0.5),
    }


async def test_a_refusal_that_one_holder_sees_narrows_the_worker_for_all(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db", concurrency=8) as leases:
        held = await leases.take("a", "ann", [CALL] * 8)
        leases.settle("a", [used(held[0], status=429, retry_after=7.0, tokens=0, usd=0.0)])
        limits = leases._workers["ann"]

        assert limits.held_s >= 7.0
        assert limits.concurrency.allowed == 6  # those in flight, without the one that was refused
        leases.settle("a", [used(each) for each in held[1:]])
        waiting = asyncio.create_task(leases.take("b", "ann", [CALL] * 8))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        waiting.cancel()


async def test_a_lease_of_a_worker_that_left_the_pool_ends_as_others_do(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    async with opened(path) as leases:
        held = await leases.take("a", "ann", [CALL] * 2)
    async with opened(path) as leases:
        leases._workers = {}

        assert leases.settle("a", [used(held[0]), used(held[1], status=429)]) == []

        assert leases.budget.spent == BudgetUsage(2, 100, 0.5)
    assert [each.charged for each in summaries(path)] == [BudgetUsage(2, 100, 0.5)]


async def test_a_take_that_the_budget_or_the_tokens_per_minute_hold_up_uses_no_request_of_the_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wfdsl.server.leases.WAIT_S", 0.01)
    limits = {"requests_per_minute": 3, "tokens_per_minute": 150}
    async with opened(tmp_path / "j.db", Budget(usd=0.5), **limits) as leases:
        (held,) = await leases.take("a", "ann", [CALL])
        for _ in range(3):
            assert await leases.take("b", "ann", [(10, 0.5)]) == []
        leases.settle("a", [used(held, tokens=100, usd=0.0)])
        for _ in range(3):
            assert await leases.take("b", "ann", [CALL]) == []  # 100 more tokens do not fit

        assert leases.budget.reserved.usd == 0.0
        assert len(await leases.take("b", "ann", [(10, 0.1)] * 9)) == 2


async def test_a_call_that_was_not_made_gives_its_request_of_the_minute_back(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db", requests_per_minute=2) as leases:
        held = await leases.take("a", "ann", [CALL] * 2)
        leases.settle("a", [used(each, tokens=0, usd=0.0, calls=0) for each in held])

        assert len(await leases.take("a", "ann", [CALL] * 2)) == 2


async def test_a_client_that_leaves_while_it_waits_takes_nothing_with_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db", Budget(calls=9), concurrency=1) as leases:
        (held,) = await leases.take("a", "ann", [CALL])
        waiting = asyncio.create_task(leases.take("b", "ann", [CALL]))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        leases.settle("a", [used(held)])

        assert leases.budget.reserved.calls == 0
        assert len(await leases.take("c", "ann", [CALL] * 2)) == 1


async def test_calls_per_minute_hold_for_all(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db", requests_per_minute=3) as leases:
        assert len(await leases.take("a", "ann", [CALL] * 2)) == 2
        assert len(await leases.take("b", "ann", [CALL] * 2)) == 1


async def test_limits_of_a_running_server_are_changed_all_or_none(tmp_path: Path) -> None:
    async with opened(tmp_path / "j.db", Budget(usd=1.0), concurrency=1) as leases:
        live = LiveLimits(leases._workers, leases.budget, ConcurrencyLimiter(4))
        await leases.take("a", "ann", [CALL])
        waiting = asyncio.create_task(leases.take("b", "ann", [CALL] * 3))
        await asyncio.sleep(0.01)
        wrong: list[dict[str, Any]] = [{"workflows": 0}, {"budget": {"usd": -1}}, {"huh": 1}, {"workers": 1}]
        for each in wrong:
            with pytest.raises(ApiError) as refused:
                live.change({"workers": {"ann": {"concurrency": 2}}, **each})
            assert refused.value.status == 400

        assert not waiting.done()
        live.change({"workers": {"ann": {"concurrency": 3, "requests_per_minute": 5}}, "budget": {"usd": 1.5}})

        assert len(await waiting) == 2
        shown = live.describe()
        assert (shown["workers"]["ann"]["concurrency"], shown["workers"]["ann"]["requests_per_minute"]) == (3, 5)
        assert shown["budget"]["usd"] == 1.5
        live.change({"workers": {"ann": {"concurrency": None}}})
        assert leases._workers["ann"].concurrency.limit == math.inf


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_whatever_happens_no_limit_is_exceeded_and_nothing_is_lost(data: st.DataObject, tmp_path_factory: Any) -> None:
    asyncio.run(_anything(data, tmp_path_factory.mktemp("leases") / "j.db"))


async def _anything(data: st.DataObject, path: Path) -> None:
    budget, places = Budget(usd=6.0), 5
    held: dict[str, list[str]] = {"a": [], "b": [], "c": []}
    for _ in range(2):  # the second time, after a restart
        async with opened(path, budget, concurrency=places) as leases:
            for _ in range(data.draw(st.integers(1, 8))):
                holder = data.draw(st.sampled_from(sorted(held)))
                match data.draw(st.sampled_from(["take", "settle", "die"])):
                    case "take":
                        if leases._workers["ann"].concurrency.active < places and leases.budget.try_reserve(
                            BudgetUsage(1, *CALL)
                        ):
                            leases.budget.settle(BudgetUsage(1, *CALL), BudgetUsage())
                            held[holder] += await leases.take(holder, "ann", [CALL] * data.draw(st.integers(1, 4)))
                    case "settle":
                        ended = held[holder][: data.draw(st.integers(0, 3))]
                        del held[holder][: len(ended)]
                        assert leases.settle(holder, [used(each) for each in ended]) == []
                    case "die" if holder in leases._holders:
                        leases._holders[holder].expires = now()
                        leases.expire(now())
                        held[holder].clear()
                open_calls = sum(map(len, held.values()))
                assert open_calls == leases._workers["ann"].concurrency.active <= places
                assert leases.budget.reserved.usd == pytest.approx(open_calls * CALL[1])
                assert leases.budget.spent.usd + leases.budget.reserved.usd <= 6.0 + 1e-9
                assert isinstance(leases.budget, BudgetTracker)
