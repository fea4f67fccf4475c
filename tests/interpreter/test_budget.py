"""A budget is never overrun, not by parallel steps, retries or nested runs; a larger one resumes the run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.interpreter.toy_workers import Answering, always, in_turn, on_test_clock, pool_of

from wfdsl import BudgetExhausted, Step, UsageError, Workflow
from wfdsl.interpreter import events
from wfdsl.interpreter.budget import Budget, BudgetTracker, BudgetUsage
from wfdsl.interpreter.running import run
from wfdsl.protocols import Call, Reply, Usage, WorkerFailure

ONE = Workflow((Step(0, "a"),))
WIDE = Workflow((*(Step(0, f"try {index}") for index in range(6)), Step(0, "pick", "all")))
DOLLAR_A_TOKEN = {"prices": {"input": 1e6, "output": 1e6}, "max_tokens": 10}


def test_no_more_calls_are_made_than_allowed_also_by_parallel_steps() -> None:
    worker = always("x", delay_s=1)

    with pytest.raises(BudgetExhausted) as caught:
        on_test_clock(run(WIDE, "Q", pool_of(worker), budget=Budget(calls=4)))

    assert len(worker.calls) == 4
    assert "the budget of 4 calls is spent" in str(caught.value)
    assert caught.value.run.status == "budget"


def test_retries_count_as_calls() -> None:
    worker = in_turn(*[WorkerFailure("HTTP 500", retryable=True, status=500)] * 9)

    with pytest.raises(BudgetExhausted):
        on_test_clock(run(ONE, "Q", pool_of(worker, entries=[{"retries": 9}]), budget=Budget(calls=3)))

    assert len(worker.calls) == 3


def test_a_call_that_was_never_sent_is_not_counted() -> None:
    refused = WorkerFailure("connection refused", retryable=True, sent=False)
    pool = pool_of(in_turn(refused, refused, Reply("ok")), entries=[{"retries": 2}])

    done = on_test_clock(run(ONE, "Q", pool, budget=Budget(calls=1)))

    assert done.charged == BudgetUsage(1, 4 + 2, 0.0)


def test_the_upper_bound_of_a_call_is_reserved_before_it_is_made() -> None:
    worker = always("x", usage=Usage(4, 1))
    pool = pool_of(worker, entries=[DOLLAR_A_TOKEN])  # "Q\n\na": 4 bytes, so the bound is $14

    with pytest.raises(BudgetExhausted, match=r"has \$13\.000000 left, and this call may cost \$14"):
        on_test_clock(run(ONE, "Q", pool, budget=Budget(usd=13)))

    assert not worker.calls


def test_what_is_not_used_of_a_bound_is_given_back_and_waited_for() -> None:
    worker = always("x", delay_s=1, usage=Usage(4, 1))
    pair = Workflow((Step(0, "a"), Step(0, "b"), Step(0, "c", (0, 1))))
    pool = pool_of(worker, entries=[{**DOLLAR_A_TOKEN, "max_tokens": 30}])

    done = on_test_clock(run(pair, "Q", pool, budget=Budget(usd=60)))

    assert done.status == "done"
    assert worker.most_in_flight == 1  # two bounds of $34 do not fit into $60 together
    assert done.paid_usd == pytest.approx(15.0)


def test_a_call_whose_outcome_nobody_knows_stays_charged_at_its_bound() -> None:
    lost = WorkerFailure("the connection broke", retryable=True)
    pool = pool_of(in_turn(lost, Reply("ok", usage=Usage(4, 1))), entries=[{**DOLLAR_A_TOKEN, "retries": 1}])

    done = on_test_clock(run(ONE, "Q", pool, budget=Budget(usd=100)))

    assert done.charged == BudgetUsage(2, 14 + 5, 14.0 + 5.0)
    assert done.paid_usd == pytest.approx(5.0)


def test_a_call_that_the_provider_refused_costs_a_call_and_nothing_else() -> None:
    refused = WorkerFailure("HTTP 429", retryable=True, status=429)
    pool = pool_of(in_turn(refused, Reply("ok", usage=Usage(4, 1))), entries=[{**DOLLAR_A_TOKEN, "retries": 1}])

    done = on_test_clock(run(ONE, "Q", pool, budget=Budget(usd=100)))

    assert done.charged == BudgetUsage(2, 5, 5.0)


def test_thinking_tokens_are_part_of_the_bound() -> None:
    pool = pool_of(always("x"), entries=[{**DOLLAR_A_TOKEN, "thinking_budget": 100}])

    with pytest.raises(BudgetExhausted, match=r"may cost \$114"):
        on_test_clock(run(ONE, "Q", pool, budget=Budget(usd=50)))


def test_a_price_that_is_not_known_under_a_dollar_budget_is_refused_before_the_first_call() -> None:
    worker = always("x")
    pool = pool_of(worker, always("y"), entries=[{}, {"prices": None}])

    with pytest.raises(UsageError, match=r"worker 1 \(w1\) has no known price"):
        on_test_clock(run(Workflow((Step(0, "a"), Step(1, "b", (0,)))), "Q", pool, budget=Budget(usd=5)))

    assert not worker.calls


def test_a_fallback_without_a_price_is_refused_as_well() -> None:
    pool = pool_of(always("x"), always("y"), entries=[{"fallback": "w1"}, {"prices": None}])

    with pytest.raises(UsageError, match="no known price"):
        on_test_clock(run(ONE, "Q", pool, budget=Budget(usd=5)))


def test_several_runs_can_share_one_account() -> None:
    worker = always("x")
    account = BudgetTracker(Budget(calls=3))

    async def five() -> list[Any]:
        work = (run(ONE, "Q", pool_of(worker), budget=account) for _ in range(5))
        return list(await asyncio.gather(*work, return_exceptions=True))

    results = on_test_clock(five())

    assert sum(isinstance(result, BudgetExhausted) for result in results) == 2
    assert len(worker.calls) == 3


@pytest.mark.parametrize("wrong", [{"calls": -1}, {"usd": float("nan")}, {"tokens": -5}])
def test_a_budget_below_zero_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be"):
        Budget(**wrong)


def test_listeners_hear_what_is_left() -> None:
    heard: list[Any] = []

    on_test_clock(run(ONE, "Q", pool_of(always("x")), budget=Budget(calls=5), on_event=heard.append))

    charged = [event for event in heard if isinstance(event, events.BudgetCharged)]
    assert [(event.calls, event.limits) for event in charged] == [(1, (5, None, None))]


def test_after_a_reply_over_its_bound_no_further_call_is_made() -> None:
    greedy = Answering(_greedy)
    pool = pool_of(greedy, entries=[{"max_tokens": 100, "prices": {"input": 1.0, "output": 1.0}}])
    chain = Workflow((Step(0, "a"), Step(0, "b", (0,)), Step(0, "c", (1,))))

    with pytest.raises(BudgetExhausted, match=r"a reply took 2000010 tokens, where at most 1[0-9][0-9] were reserved"):
        on_test_clock(run(chain, "Q", pool, budget=Budget(tokens=10_000_000)))
    with pytest.raises(BudgetExhausted, match=r"a reply cost \$2\.000010, where at most \$0\.0001"):
        on_test_clock(run(chain, "Q", pool, budget=Budget(usd=1000.0)))

    assert len(greedy.calls) == 2


def test_what_a_chat_template_adds_breaks_no_bound() -> None:
    async def templated(call: Call) -> Reply:
        return Reply("x", usage=Usage(60, 100))

    pool = pool_of(Answering(templated), entries=[{"max_tokens": 100}])
    chain = Workflow((Step(0, "a"), Step(0, "b", (0,))))

    done = on_test_clock(run(chain, "Q", pool, budget=Budget(tokens=1000)))

    assert done.charged is not None
    assert done.charged.tokens == 320


async def _greedy(call: Call) -> Reply:
    return Reply("x", usage=Usage(10, 2_000_000), paid_usd=2.00001)


class _Meter:
    """Counts what really happened, apart from the account."""

    def __init__(self) -> None:
        self.tokens = 0


@settings(max_examples=60, deadline=None)
@given(
    cap=st.integers(0, 300),
    used=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 10)), min_size=7, max_size=7),
    delays=st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=7, max_size=7),
)
def test_tokens_never_exceed_the_budget_for_any_schedule(
    cap: int, used: list[tuple[int, int]], delays: list[float]
) -> None:
    meter = _Meter()

    async def answer(call: Call) -> Reply:
        step = call.path[0]
        await asyncio.sleep(delays[step])
        meter.tokens += sum(used[step])
        return Reply("x", usage=Usage(*used[step]))

    async def tried() -> None:
        try:
            await run(WIDE, "Q", pool_of(Answering(answer), entries=[{"max_tokens": 10}]), budget=Budget(tokens=cap))
        except BudgetExhausted:
            return

    on_test_clock(tried())

    assert meter.tokens <= cap


def test_replies_over_their_bounds_leave_a_budget_of_calls_alone() -> None:
    chain = Workflow((Step(0, "a"), Step(0, "b", (0,))))

    done = on_test_clock(run(chain, "Q", pool_of(Answering(_greedy)), budget=Budget(calls=2)))

    assert done.status == "done"
