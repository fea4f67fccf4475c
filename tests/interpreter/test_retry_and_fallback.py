"""Failures that may pass are tried again, others are not, and nothing waits past its deadline."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.interpreter.toy_workers import Answering, always, in_turn, on_test_clock, pool_of

from wfdsl import Budget, Pool, RunFailed, Step, UsageError, Workflow, WorkflowError
from wfdsl.interpreter import events
from wfdsl.interpreter.running import run
from wfdsl.protocols import Call, Reply, Usage, WorkerFailure

if TYPE_CHECKING:
    from wfdsl.interpreter.record import Run

ONE = Workflow((Step(0, "a"),))


def busy(retry_after: float | None = None, status: int = 429) -> WorkerFailure:
    return WorkerFailure(f"HTTP {status}", retryable=True, status=status, retry_after=retry_after)


def run_one(*replies: Reply | Exception, retries: int = 4, heard: list[Any] | None = None, **options: Any) -> Run:
    pool = pool_of(in_turn(*replies), entries=[{"retries": retries}])
    return on_test_clock(run(ONE, "Q", pool, on_event=None if heard is None else heard.append, **options))


class Unprintable(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise AssertionError


class UnprintableUsage(Unprintable, UsageError):  # noqa: N818
    pass


async def paid(_: object) -> str:
    return "paid for"


def raising(error: Exception) -> Pool:
    async def second(messages: object) -> str:
        raise error

    return Pool.from_functions([paid, second])


def worker_raising(error: Exception) -> Pool:
    return pool_of(always("paid for"), in_turn(error))


@pytest.mark.parametrize(
    "pool",
    [
        *map(raising, [UsageError("no key"), UsageError(""), ValueError("x"), Unprintable()]),
        *map(worker_raising, [UsageError("no key"), WorkflowError([]), UnprintableUsage()]),
    ],
)
async def test_what_a_function_or_a_worker_raises_ends_its_step_and_the_run_has_what_was_paid_for(pool: Pool) -> None:
    with pytest.raises(RunFailed) as caught:
        await run(Workflow((Step(0, "a"), Step(1, "b", (0,)))), "Q", pool)

    assert [step.status for step in caught.value.run.steps] == ["done", "failed"]
    assert caught.value.run.steps[0].response == "paid for"


def test_a_passing_failure_is_tried_again_after_a_growing_wait() -> None:
    heard: list[Any] = []

    done = run_one(busy(), busy(), busy(), Reply("ok"), heard=heard)

    waits = [event.wait_s for event in heard if isinstance(event, events.Retried)]
    assert done.answer == "ok"
    assert [low <= wait <= 2 * low for wait, low in zip(waits, (0.25, 0.5, 1.0), strict=True)] == [True] * 3
    assert done.steps[0].retries == 3
    assert done.steps[0].retry_s == pytest.approx(sum(waits))


def test_the_server_s_wait_is_kept_to_where_it_is_longer_than_the_back_off() -> None:
    done = run_one(busy(30.0), Reply("ok"))

    assert 30.0 <= (done.seconds or 0) <= 33.0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_failure_that_stays_is_not_tried_again(status: int) -> None:
    worker = in_turn(WorkerFailure(f"HTTP {status}", retryable=False, status=status), Reply("never"))

    with pytest.raises(RunFailed):
        on_test_clock(run(ONE, "Q", pool_of(worker, entries=[{"retries": 4}])))

    assert len(worker.calls) == 1


def test_a_reply_that_could_not_be_used_counts_towards_what_the_step_cost() -> None:
    empty = Reply("", "empty", usage=Usage(10, 40), paid_usd=0.25, list_usd=0.5)

    done = run_one(empty, Reply("ok", usage=Usage(10, 2), paid_usd=0.125, list_usd=0.125))

    assert done.steps[0].usage == Usage(20, 42)
    assert (done.steps[0].paid_usd, done.steps[0].list_usd) == (0.375, 0.625)
    assert done.paid_usd == 0.375


def test_a_step_that_fails_says_what_its_rejected_replies_cost() -> None:
    rejected = Reply("", "empty", usage=Usage(10, 40), paid_usd=0.25, list_usd=0.25)
    refused = WorkerFailure("no room for an answer", retryable=False, rejected=rejected)

    with pytest.raises(RunFailed) as caught:
        run_one(rejected, refused, budget=Budget(calls=5))

    failed = caught.value.run
    assert (failed.steps[0].usage, failed.paid_usd) == (Usage(20, 80), 0.5)
    assert failed.charged == (2, 100, 0.5)


@pytest.mark.parametrize("finish", ["only_thinking", "tool_calls"])
def test_a_reply_without_text_is_tried_again_and_said_to_be_what_it_is(finish: Any) -> None:
    with pytest.raises(RunFailed, match=r"only thinking|asked for a tool"):
        run_one(Reply("", finish), Reply("", finish), retries=1)

    assert run_one(Reply("", finish), Reply("ok"), retries=1).answer == "ok"


def test_a_reply_that_ran_out_of_tokens_before_any_text_is_not_bought_again() -> None:
    with pytest.raises(RunFailed, match="raise max_tokens"):
        run_one(Reply("", "out_of_tokens"))  # there is no second reply


@pytest.mark.parametrize("finish", ["length", "refusal"])
def test_a_cut_or_refused_reply_is_a_response_with_a_mark(finish: Any) -> None:
    done = run_one(Reply("I cannot", finish))

    assert done.answer == "I cannot"
    assert done.steps[0].finish == finish


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"timeout_s": 60, "longest_wait_s": 1e9}, "which would pass the deadline"),
        ({}, "more than the 600 s that a run waits at most"),
    ],
)
def test_a_wait_past_the_deadline_or_of_weeks_fails_at_once(options: dict[str, Any], why: str) -> None:
    async def timed() -> float:
        began = asyncio.get_running_loop().time()
        with pytest.raises(RunFailed, match=rf"asks to wait 1e\+06 s, {why}"):
            await run(ONE, "Q", pool_of(in_turn(busy(1e6)), entries=[{"retries": 4}]), **options)
        return asyncio.get_running_loop().time() - began

    assert on_test_clock(timed()) == pytest.approx(0.0)


@pytest.mark.parametrize("option", ["timeout_s", "step_timeout_s"])
def test_a_hang_becomes_an_error_that_names_what_it_waited_for(option: str) -> None:
    options: dict[str, Any] = {option: 20.0}
    with pytest.raises(RunFailed, match="timed out while waiting for the worker's reply"):
        on_test_clock(run(ONE, "Q", pool_of(Answering(hang)), **options))


def test_a_step_s_time_begins_when_the_step_may_start() -> None:
    chain = Workflow((Step(0, "a"), Step(0, "b", (0,)), Step(0, "c", (1,))))

    done = on_test_clock(run(chain, "Q", pool_of(always("x", delay_s=8)), step_timeout_s=10))

    assert done.seconds == pytest.approx(24.0)


def test_a_fallback_worker_answers_where_another_failed_for_good() -> None:
    heard: list[Any] = []
    broken = in_turn(WorkerFailure("HTTP 404: no such model", retryable=False, status=404))
    pool = pool_of(broken, always("saved"), entries=[{"fallback": "w1"}, {}])

    done = on_test_clock(run(ONE, "Q", pool, on_event=heard.append))

    assert done.answer == "saved"
    assert done.steps[0].answered_by == 1
    assert [event.worker_name for event in heard if isinstance(event, events.FellBack)] == ["w1"]


async def hang(call: Call) -> Reply:
    await asyncio.sleep(1e9)
    return Reply("never")


def test_a_worker_that_uses_up_the_step_s_time_is_replaced_by_its_fallback_with_as_much_time() -> None:
    heard: list[Any] = []
    pool = pool_of(
        Answering(hang),
        Answering(hang),
        always("saved", delay_s=15),
        entries=[{"fallback": "w1"}, {"fallback": "w2"}, {}],
    )

    done = on_test_clock(run(ONE, "Q", pool, step_timeout_s=20, on_event=heard.append))

    assert (done.answer, done.steps[0].answered_by) == ("saved", 2)
    assert done.seconds == pytest.approx(55.0)
    assert [event.worker_name for event in heard if isinstance(event, events.FellBack)] == ["w1", "w2"]


def test_no_fallback_worker_outlasts_the_run_s_own_time() -> None:
    pool = pool_of(Answering(hang), Answering(hang), entries=[{"fallback": "w1"}, {}])

    async def timed(**limits: Any) -> float:
        began = asyncio.get_running_loop().time()
        with pytest.raises(RunFailed, match=r"timed out"):
            await run(ONE, "Q", pool, **limits)
        return asyncio.get_running_loop().time() - began

    assert on_test_clock(timed(step_timeout_s=20, timeout_s=30)) == pytest.approx(30.0)
    assert on_test_clock(timed(timeout_s=30)) == pytest.approx(30.0)


def test_a_worker_is_told_the_deadline() -> None:
    worker = always("x")

    on_test_clock(run(ONE, "Q", pool_of(worker), timeout_s=50, step_timeout_s=20))

    assert worker.calls[0].deadline == pytest.approx(1020.0)


def test_a_ring_of_fallbacks_ends() -> None:
    def broken(name: str) -> Answering:
        return in_turn(*[WorkerFailure(f"{name} is down", retryable=False)] * 2)

    pool = pool_of(broken("first"), broken("second"), entries=[{"fallback": "w1"}, {"fallback": "w0"}])

    with pytest.raises(RunFailed, match=r"first is down; fallback worker 1 \(w1\): second is down"):
        on_test_clock(run(ONE, "Q", pool))
