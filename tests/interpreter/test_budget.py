"""A budget is never overrun, not by parallel steps, retries or nested runs; a larger one resumes the run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.interpreter.toy_workers import always, in_turn, on_test_clock, pool_of

from wfdsl import BudgetExhausted, Step, UsageError, Workflow
from wfdsl.interpreter import events
from wfdsl.interpreter.budget import Budget, BudgetTracker, BudgetUsage
from wfdsl.interpreter.running import run
from wfdsl.protocols import Reply, Usage, WorkerFailure

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


@pytest.mark.parametrize(("thinking", "needed"), [(0, 14), (100, 114)])
def test_the_upper_bound_of_a_call_is_reserved_before_it_is_made(thinking: int, needed: int) -> None:
    worker = always("x", usage=Usage(4, 1))
    pool = pool_of(worker, entries=[{**DOLLAR_A_TOKEN, "thinking_budget": thinking}])  # "Q\n\na" has 4 bytes

    with pytest.raises(BudgetExhausted, match=rf"has \$13\.000000 left, and this call may cost \${needed}\.0"):
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


@pytest.mark.parametrize(
    ("failure", "charged"),
    [
        (WorkerFailure("connection refused", retryable=True, sent=False), BudgetUsage()),
        (WorkerFailure("HTTP 429", retryable=True, status=429), BudgetUsage(calls=1)),
        (WorkerFailure("the connection broke", retryable=True), BudgetUsage(1, 14, 14.0)),
    ],
    ids=["never sent", "refused", "outcome unknown"],
)
def test_a_failed_call_is_charged_what_it_may_have_cost(failure: WorkerFailure, charged: BudgetUsage) -> None:
    pool = pool_of(in_turn(failure, Reply("ok", usage=Usage(4, 1))), entries=[{**DOLLAR_A_TOKEN, "retries": 1}])

    done = on_test_clock(run(ONE, "Q", pool, budget=Budget(usd=100)))

    assert done.charged == charged.plus(BudgetUsage(1, 5, 5.0))
    assert done.paid_usd == pytest.approx(5.0)


@pytest.mark.parametrize(("first", "worker"), [({}, 1), ({"fallback": "w1"}, 0)], ids=["worker", "fallback worker"])
def test_a_price_that_is_not_known_under_a_dollar_budget_is_refused_before_the_first_call(
    first: dict[str, Any], worker: int
) -> None:
    asked = always("x")
    pool = pool_of(asked, always("y"), entries=[first, {"prices": None}])
    workflow = Workflow((Step(0, "a"), Step(worker, "b", (0,))))

    with pytest.raises(UsageError, match=r"worker 1 \(w1\) has no known price"):
        on_test_clock(run(workflow, "Q", pool, budget=Budget(usd=5)))

    assert not asked.calls


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


def test_after_a_reply_over_its_bound_no_further_call_is_made_unless_only_calls_are_limited() -> None:
    greedy = always("x", usage=Usage(10, 2_000_000), paid_usd=2.00001)
    pool = pool_of(greedy, entries=[{"max_tokens": 100, "prices": {"input": 1.0, "output": 1.0}}])
    chain = Workflow((Step(0, "a"), Step(0, "b", (0,)), Step(0, "c", (1,))))

    with pytest.raises(BudgetExhausted, match=r"a reply took 2000010 tokens, where at most 1[0-9][0-9] were reserved"):
        on_test_clock(run(chain, "Q", pool, budget=Budget(tokens=10_000_000)))
    with pytest.raises(BudgetExhausted, match=r"a reply cost \$2\.000010, where at most \$0\.0001"):
        on_test_clock(run(chain, "Q", pool, budget=Budget(usd=1000.0)))

    assert len(greedy.calls) == 2
    assert on_test_clock(run(chain, "Q", pool, budget=Budget(calls=3))).status == "done"


def test_what_a_chat_template_adds_breaks_no_bound() -> None:
    pool = pool_of(always("x", usage=Usage(60, 100)), entries=[{"max_tokens": 100}])
    chain = Workflow((Step(0, "a"), Step(0, "b", (0,))))

    done = on_test_clock(run(chain, "Q", pool, budget=Budget(tokens=1000)))

    assert done.charged is not None
    assert done.charged.tokens == 320
