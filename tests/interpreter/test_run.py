"""One run: its record, its events, and that nothing is left running after it."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest
from tests.interpreter.toy_workers import Answering, always, cancelled, in_turn, on_test_clock, pool_of

from wfdsl import Pool, RunFailed, Step, UsageError, Workflow
from wfdsl.interpreter import events
from wfdsl.interpreter.limits import ConcurrencyLimiter
from wfdsl.interpreter.running import run, run_sync, stream
from wfdsl.protocols import Call, Reply, Usage, WorkerFailure
from wfdsl.workers.entry import WorkerEntry

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl.interpreter.record import Run

FAN_OUT = Workflow((Step(0, "a"), Step(1, "b"), Step(0, "c"), Step(1, "d", "all")))
WITH_DEAD = Workflow((Step(0, "kept"), Step(0, "dead"), Step(0, "answer", (0,))))


async def test_a_pool_of_functions_runs_a_workflow() -> None:
    async def plan(messages: list[dict[str, str]]) -> str:
        return f"plan for: {messages[0]['content']}"

    async def solve(messages: list[dict[str, str]]) -> str:
        return messages[1]["content"].upper()

    done = await run(Workflow((Step(0, "Plan."), Step(1, "Solve.", (0,)))), "Q", Pool.from_functions([plan, solve]))

    assert done.answer == "PLAN FOR: Q\n\nPLAN."


async def test_the_record_says_what_each_step_was_sent_and_what_it_cost() -> None:
    worker = always("x", usage=Usage(10, 5), paid_usd=0.25, list_usd=0.5, model="m-1")

    done = await run(FAN_OUT, "Q", pool_of(worker, worker), names=["one", "two", "three", "four"])

    step = done.steps[3]
    assert ([each.status for each in done.steps], done.status) == (["done"] * 4, "done")
    assert (done.answer, step.response) == ("x", "x")
    assert step.messages == worker.calls[3].messages
    assert (step.worker, step.worker_name, step.model) == (1, "w1", "m-1")
    assert (step.usage, step.paid_usd, step.list_usd) == (Usage(10, 5), 0.25, 0.5)
    assert (done.usage, done.paid_usd, done.list_usd) == (Usage(40, 20), 1.0, 2.0)
    assert done.name_of(3) == "four"
    unpriced = await run(FAN_OUT, "Q", pool_of(worker, always("y", paid_usd=None)))
    assert (unpriced.answer, unpriced.paid_usd, unpriced.list_usd) == ("y", None, 1.0)


async def test_dead_steps_are_left_out_and_the_record_says_so() -> None:
    worker = always("x")

    done = await run(WITH_DEAD, "Q", pool_of(worker))

    assert [step.status for step in done.steps] == ["done", "pruned", "done"]
    assert len(worker.calls) == 2


@pytest.mark.parametrize(("limit", "seconds"), [(1, 20.0), (2, 15.0), (3, 10.0)])
def test_concurrency_holds_a_runs_calls_to_a_number(limit: int, seconds: float) -> None:
    worker = always("x", delay_s=5)

    done = on_test_clock(run(FAN_OUT, "Q", pool_of(worker, worker), concurrency=limit))

    assert worker.most_in_flight == limit
    assert done.seconds == pytest.approx(seconds)
    assert sum(step.queue_s for step in done.steps) == pytest.approx({1: 15.0, 2: 5.0, 3: 0.0}[limit])


def test_a_common_gate_holds_several_runs_together() -> None:
    worker, gate = always("x", delay_s=5), ConcurrencyLimiter(2)

    async def three() -> list[Run]:
        return await asyncio.gather(*(run(FAN_OUT, "Q", pool_of(worker, worker), limiter=gate) for _ in range(3)))

    on_test_clock(three())

    assert worker.most_in_flight == 2
    assert len(worker.calls) == 12


async def test_a_failed_step_ends_the_run_with_an_error_that_names_step_worker_and_cause() -> None:
    pool = pool_of(always("x"), in_turn(WorkerFailure("HTTP 401: no such key; check the key", retryable=False)))

    with pytest.raises(RunFailed) as caught:
        await run(Workflow((Step(0, "a"), Step(1, "b", (0,)))), "Q", pool, names=["plan", "solve"])

    assert str(caught.value) == ("step 1 (solve) failed, worker 1 (w1): HTTP 401: no such key; check the key")
    assert (caught.value.run_id, caught.value.resumable) == (caught.value.run.id, False)
    assert isinstance(caught.value.cause, WorkerFailure)
    assert caught.value.run.answer is None
    assert [step.status for step in caught.value.run.steps] == ["done", "failed"]
    assert caught.value.run.steps[0].response == "x"
    assert caught.value.run.error == str(caught.value)


def test_steps_in_flight_are_cancelled_when_another_fails() -> None:
    slow = always("x", delay_s=60)
    failing = in_turn(WorkerFailure("broken", retryable=False), delay_s=1)

    async def observed() -> tuple[Run, int]:
        with pytest.raises(RunFailed) as caught:
            await run(FAN_OUT, "Q", pool_of(slow, failing))
        return caught.value.run, len(asyncio.all_tasks())

    partial, tasks = on_test_clock(observed())

    assert [step.status for step in partial.steps] == ["stopped", "failed", "stopped", "waiting"]
    assert partial.seconds == pytest.approx(1.0)
    assert slow.in_flight == 0
    assert tasks == 1


def test_a_cancelled_run_leaves_nothing_running() -> None:
    slow = always("x", delay_s=60)
    heard: list[events.Event] = []

    assert on_test_clock(cancelled(run(FAN_OUT, "Q", pool_of(slow, slow), on_event=heard.append))) == 1
    assert slow.in_flight == 0
    assert isinstance(heard[-1], events.RunFinished)
    assert heard[-1].run.status == "stopped"


async def test_a_mistake_in_a_worker_is_raised_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        await run(FAN_OUT, "Q", pool_of(always("x"), in_turn(ZeroDivisionError())))


@pytest.mark.parametrize(
    ("workflow", "message"),
    [
        (Workflow(()), "at least one step"),
        (Workflow((Step(7, "a"),)), "worker 7"),
        (Workflow((Step("w", "a"),)), "'w'"),
    ],
)
async def test_a_workflow_that_cannot_run_on_the_pool_is_refused_before_any_call(
    workflow: Workflow, message: str
) -> None:
    worker = always("x")

    with pytest.raises(UsageError, match=message):
        await run(workflow, "Q", pool_of(worker))

    assert not worker.calls


async def test_identical_copies_make_as_many_calls_with_seeds_of_their_own() -> None:
    worker = always("x")
    copies = Workflow((*(Step(0, "same") for _ in range(5)), Step(0, "pick", "all")))

    await run(copies, "Q", pool_of(worker), seed=7)
    first = [call.settings["seed"] for call in worker.calls]
    await run(copies, "Q", pool_of(worker), seed=7)

    assert len(set(first[:5])) == 5
    assert [call.settings["seed"] for call in worker.calls[6:]] == first


async def test_the_stream_tells_what_happens_and_ends_with_the_record() -> None:
    async def answer(call: Call) -> Reply:
        assert call.on_delta is not None
        call.on_delta("o")
        call.on_delta("k")
        return Reply("ok")

    heard = [event async for event in stream(WITH_DEAD, "Q", pool_of(Answering(answer)))]

    assert [type(event).__name__ for event in heard] == [
        "RunStarted",
        *(["StepStarted", "Delta", "Delta", "StepFinished"] * 2),
        "RunFinished",
    ]
    assert isinstance(heard[0], events.RunStarted)
    assert heard[0].pruned == (1,)
    assert isinstance(heard[-1], events.RunFinished)
    assert heard[-1].run.answer == "ok"


async def test_a_stream_of_a_run_that_fails_raises_after_its_last_event() -> None:
    heard: list[events.Event] = []
    events_of_run = stream(WITH_DEAD, "Q", pool_of(in_turn(WorkerFailure("broken", retryable=False))))

    async def listen() -> None:
        async for event in events_of_run:
            heard.append(event)  # noqa: PERF401  (a comprehension would be lost with the error)

    with pytest.raises(RunFailed):
        await listen()

    assert isinstance(heard[-1], events.RunFinished)
    assert heard[-1].run.status == "failed"


async def test_leaving_a_stream_cancels_its_run() -> None:
    slow = always("x", delay_s=60)
    events_of_run = stream(WITH_DEAD, "Q", pool_of(slow))

    async for event in events_of_run:
        if isinstance(event, events.StepStarted):
            break
    await asyncio.sleep(0)
    await events_of_run.aclose()

    assert slow.in_flight == 0
    assert len(asyncio.all_tasks()) == 1


def test_run_sync_gives_the_same_record_and_inside_an_event_loop_says_what_to_write_instead() -> None:
    async def inside() -> None:
        run_sync(WITH_DEAD, "Q", pool_of(always("x")))

    assert run_sync(WITH_DEAD, "Q", pool_of(always("x"))).answer == "x"
    with pytest.raises(UsageError, match=r"await wfdsl\.run"):
        asyncio.run(inside())


def test_the_clock_of_a_record_never_runs_backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    wall: list[Any] = [2_000_000_000.0, 5.0, 5.0, 5.0]
    monkeypatch.setattr("time.time", lambda: wall.pop(0) if len(wall) > 1 else wall[0])

    done = on_test_clock(run(WITH_DEAD, "Q", pool_of(always("x", delay_s=3))))

    assert done.seconds == pytest.approx(6.0)
    assert all((step.finished or 0) >= (step.started or 0) for step in done.steps)


async def _cancelled_inside(_: Call) -> Reply:
    gone = asyncio.get_running_loop().create_future()
    gone.cancel()
    await gone
    raise AssertionError("unreachable")


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_cancelled_await_inside_a_worker_fails_its_step(place: int) -> None:
    workers = [1 if step == place else 0 for step in range(3)]
    workflow = Workflow((Step(workers[0], "a"), Step(workers[1], "b"), Step(workers[2], "c", (0, 1))))

    with pytest.raises(RunFailed, match=rf"step {place} failed.*was cancelled, but not by the run") as caught:
        await run(workflow, "Q", pool_of(always("x"), Answering(_cancelled_inside)))

    assert caught.value.run.status == caught.value.run.steps[place].status == "failed"


async def test_a_step_that_others_cancel_never_gives_a_run_without_an_answer() -> None:
    async def cancel_own_task(_: Call) -> Reply:
        task: Any = asyncio.current_task()
        task.cancel()
        await asyncio.sleep(0)
        raise AssertionError("unreachable")

    workflow = Workflow((Step(0, "a"), Step(1, "b"), Step(0, "c", (0, 1))))

    with pytest.raises(RunFailed, match="no answer") as caught:
        await run(workflow, "Q", pool_of(always("x"), Answering(cancel_own_task)))

    assert caught.value.run.status == "failed"


@pytest.mark.parametrize("before", [0, 1])
async def test_a_run_that_failed_does_not_cancel_its_caller_be_that_cancelled_before_or_not(before: int) -> None:
    async def calling() -> Any:
        task: Any = asyncio.current_task()
        if before:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        assert task.cancelling() == before
        with pytest.raises(RunFailed, match="gone"):
            await run(FAN_OUT, "Q", pool_of(always("x"), in_turn(WorkerFailure("gone", retryable=False), delay_s=0.01)))
        return task.cancelling()

    assert await asyncio.create_task(calling()) <= before


class KeyMissing(Pool):
    """A pool whose worker 1 cannot be built."""

    def worker(self, index: int) -> Any:
        if index == 1:
            raise UsageError("worker w1 needs a key")
        return super().worker(index)


@pytest.mark.parametrize(
    ("first", "second"),
    [({}, 1), ({"fallback": "w1"}, 0), ({"provider": "conductor"}, 0)],
    ids=["a step's", "a fallback worker", "one that a Conductor may ask"],
)
async def test_a_worker_that_cannot_be_built_is_found_before_any_call(first: dict[str, Any], second: int) -> None:
    asked, plain = always("x"), {"name": "w0", "provider": "function"}
    entries = [WorkerEntry(**fields) for fields in ({**plain, **first}, {**plain, "name": "w1"})]
    workflow = Workflow((Step(0, "a"), Step(second, "b"), Step(0, "c", "all")))

    with pytest.raises(UsageError, match="worker w1 needs a key"):
        await run(workflow, "Q", KeyMissing(entries, workers={"w0": asked}))

    assert not asked.calls


SET_BY_WORKERS: ContextVar[str] = ContextVar("set_by_workers", default="nothing")


@pytest.mark.parametrize("what", ["a variable", "a cancel"])
async def test_what_a_worker_leaves_in_its_task_no_other_step_and_no_caller_finds(what: str, tmp_path: Path) -> None:
    async def leaves(call: Call) -> Reply:
        task: Any = asyncio.current_task()
        found = f"{SET_BY_WORKERS.get()}, {task.cancelling()} cancels"
        if what == "a variable":
            SET_BY_WORKERS.set(f"step {call.path[-1]}")
        else:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        return Reply(found)

    SET_BY_WORKERS.set("the caller's")
    worker = Answering(leaves)

    for journal in (None, tmp_path / "journal.db"):
        done = await run(FAN_OUT, "Q", pool_of(worker, worker), journal=journal)
        assert [step.response for step in done.steps] == ["the caller's, 0 cancels"] * 4
    assert SET_BY_WORKERS.get() == "the caller's"


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_listener_that_raises_is_logged_and_switched_off(
    streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[events.Event] = []

    def broken(event: events.Event) -> None:
        heard.append(event)
        if isinstance(event, events.StepStarted):
            raise BrokenPipeError("nobody reads this")

    pool = pool_of(always("x"), always("y"))
    if streamed:
        got = [event async for event in stream(FAN_OUT, "Q", pool, on_event=broken)]
        assert isinstance(got[-1], events.RunFinished)
        done = got[-1].run
    else:
        done = await run(FAN_OUT, "Q", pool, on_event=broken)

    assert done.answer == "y"
    assert [type(event) for event in heard] == [events.RunStarted, events.StepStarted]
    assert [record.message.partition(" raised ")[2] for record in caplog.records] == [
        "on StepStarted; it gets no further events, and the run continues"
    ]
    assert "nobody reads this" in caplog.text


async def test_a_finished_run_leaves_no_reference_cycles() -> None:
    pool = pool_of(always("x"), always("y"))
    await run(FAN_OUT, "Q", pool)
    gc.collect()

    found = []
    gc.disable()
    try:
        for _ in range(2):  # what earlier tests left may become garbage meanwhile, but only once
            for _ in range(20):
                await run(FAN_OUT, "Q", pool)
            found.append(gc.collect())
    finally:
        gc.enable()

    assert min(found) < 20 * 5  # fewer than one small cycle per step


def test_no_timer_is_left_behind() -> None:
    async def timers() -> list[asyncio.TimerHandle]:
        await run(FAN_OUT, "Q", pool_of(always(), always()), step_timeout_s=100)
        with pytest.raises(RunFailed, match="timed out"):
            await run(FAN_OUT, "Q", pool_of(always(delay_s=50), always()), step_timeout_s=10)
        scheduled: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        return [timer for timer in scheduled if not timer.cancelled()]

    assert on_test_clock(timers()) == []
