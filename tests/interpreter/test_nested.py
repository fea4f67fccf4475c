"""Conductor nodes: a step that runs a workflow, on the same pool, budget and journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.interpreter.toy_workers import FREE, Answering, always, cancelled, in_turn, on_test_clock

from wfdsl import BudgetExhausted, Pool, RunFailed, Step, UsageError, WorkerEntry, Workflow, WorkflowError
from wfdsl.interpreter.budget import Budget, BudgetUsage
from wfdsl.interpreter.record import Run
from wfdsl.interpreter.running import resume, run
from wfdsl.protocols import Call, Reply, Usage, WorkerFailure

if TYPE_CHECKING:
    from pathlib import Path

    from wfdsl.interpreter.conductor_node import ConductorCall
    from wfdsl.protocols import Worker

INNER = Workflow((Step(0, "inner plan"), Step(0, "inner answer", (0,))))
OUTER = Workflow((Step(0, "prepare"), Step(1, "delegate", (0,)), Step(0, "conclude", (1,))))


class ScriptedConductor:
    """Asks its model once, runs the workflow of its script, and answers with that run's answer."""

    def __init__(self, workflow: Workflow = INNER, model: Worker | None = None) -> None:
        self._workflow = workflow
        self._model = model or always("model_id = ...", usage=Usage(7, 3), paid_usd=0.25, list_usd=0.25)
        self.offered: list[tuple[int, ...]] = []

    async def __call__(self, call: Call) -> Reply:
        handle: ConductorCall = call.run
        self.offered.append(tuple(handle.pool.indices))
        await handle.ask(self._model, call.messages)
        run = await handle.run(self._workflow)
        assert run.answer is not None
        return Reply(run.answer)


def conducted(conductor: Worker, worker: Worker, retries: int = 0) -> Pool:
    """Worker 0 is a plain one, worker 1 a Conductor."""
    return Pool.from_workers(
        [
            (WorkerEntry(name="plain", provider="function", prices=FREE, retries=0, max_tokens=50), worker),
            (
                WorkerEntry(name="conductor", provider="conductor", prices=FREE, retries=retries, max_tokens=50),
                conductor,
            ),
        ]
    )


def echoing() -> Answering:
    async def answer(call: Call) -> Reply:
        return Reply(f"[{call.messages[-1]['content']}]", usage=Usage(10, 5), paid_usd=1.0, list_usd=2.0)

    return Answering(answer)


async def test_a_nested_run_gives_the_step_s_response_sees_its_messages_and_is_kept_and_counted() -> None:
    worker = echoing()

    done = await run(OUTER, "Q", conducted(ScriptedConductor(), worker))

    (nested,) = done.steps[1].nested
    first, second = (call for call in worker.calls if len(call.path) > 1)
    assert (done.steps[1].response, done.answer) == ("[inner answer]", "[conclude]")
    assert (first.path, second.path) == ((1, 0, 0), (1, 0, 1))
    assert first.messages == (
        {"role": "user", "content": "Q\n\nprepare"},
        {"role": "assistant", "content": "[Q\n\nprepare]"},
        {"role": "user", "content": "delegate\n\ninner plan"},
    )
    assert second.messages[:2] == first.messages[:2]
    assert [step.response for step in nested.steps] == ["[delegate\n\ninner plan]", "[inner answer]"]
    assert done.steps[1].usage == Usage(27, 13)
    assert (done.steps[1].paid_usd, done.steps[1].list_usd) == (2.25, 4.25)
    assert (done.paid_usd, done.list_usd) == (4.25, 8.25)
    assert Run.from_json(done.to_json()) == done


async def test_below_the_cap_a_nested_workflow_may_nest_again() -> None:
    twice = ScriptedConductor(Workflow((Step(1, "deeper"),)))

    class Alternating(ScriptedConductor):
        async def __call__(self, call: Call) -> Reply:
            self._workflow = Workflow((Step(1, "deeper"),)) if len(call.path) == 1 else INNER
            return await super().__call__(call)

    alternating = Alternating()
    done = await run(OUTER, "Q", conducted(alternating, echoing()), max_depth=2)
    with pytest.raises(RunFailed) as refused:
        await run(OUTER, "Q", conducted(twice, echoing()), max_depth=2)

    assert alternating.offered == [(0, 1), (0,)]
    assert done.steps[1].nested[0].steps[0].nested[0].answer == "[inner answer]"
    assert [step.status for step in refused.value.run.steps][:2] == ["done", "failed"]


@pytest.mark.parametrize("error", [UsageError("no key"), WorkflowError([])])
async def test_our_own_errors_inside_a_conductor_node_end_its_step(error: Exception) -> None:
    class Refusing(ScriptedConductor):
        async def __call__(self, call: Call) -> Reply:
            raise error

    with pytest.raises(RunFailed) as failed:
        await run(OUTER, "Q", conducted(Refusing(), echoing()))

    assert [step.status for step in failed.value.run.steps][:2] == ["done", "failed"]


async def test_a_conductor_is_refused_where_the_depth_is_used_up() -> None:
    worker = echoing()

    with pytest.raises(UsageError, match=r"step 1 asks a Conductor, .*max_depth"):
        await run(OUTER, "Q", conducted(ScriptedConductor(), worker), max_depth=0)

    assert not worker.calls


async def test_the_budget_covers_the_whole_tree_of_runs() -> None:
    worker = echoing()
    pool = conducted(ScriptedConductor(), worker)

    done = await run(OUTER, "Q", pool, budget=Budget(calls=5))
    with pytest.raises(BudgetExhausted) as caught:
        await run(OUTER, "Q", pool, budget=Budget(calls=3))

    assert done.charged is not None
    assert done.charged.calls == 5
    assert str(caught.value).startswith("step 1, worker 1 (conductor): step 1/0/1 was not finished, worker 0 (plain)")
    assert [step.status for step in caught.value.run.steps] == ["done", "failed", "waiting"]
    assert [step.status for step in caught.value.run.steps[1].nested[0].steps] == ["done", "failed"]
    assert caught.value.run.steps[1].usage == Usage(17, 8)


async def test_a_resumed_run_replays_the_conductor_and_its_nested_steps(tmp_path: Path) -> None:
    model = always("model_id = ...")
    worker = in_turn(Reply("a"), Reply("b"), WorkerFailure("down", retryable=False), Reply("c"), Reply("d"))
    pool = conducted(ScriptedConductor(model=model), worker)
    with pytest.raises(RunFailed) as caught:
        await run(OUTER, "Q", pool, journal=tmp_path / "j.db")

    done = await resume(caught.value.run.id, pool, journal=tmp_path / "j.db")

    assert done.answer == "d"
    assert len(model.calls) == 1
    assert len(worker.calls) == 5
    assert done.charged is not None
    assert done.charged.calls == BudgetUsage(6).calls


def test_a_cancelled_run_cancels_its_nested_runs() -> None:
    worker = always("x", delay_s=60)

    solving = run(Workflow((Step(1, "go"),)), "Q", conducted(ScriptedConductor(), worker))

    assert on_test_clock(cancelled(solving)) == 1
    assert worker.in_flight == 0


def test_one_call_at_a_time_is_enough_for_nested_runs() -> None:
    worker = always("x", delay_s=1)

    done = on_test_clock(run(OUTER, "Q", conducted(ScriptedConductor(), worker), concurrency=1))

    assert done.status == "done"
    assert worker.most_in_flight == 1


async def test_a_node_may_be_given_less_depth_than_the_run() -> None:
    conductor = ScriptedConductor()
    shallow = Workflow((Step(1, "delegate", (), 1),))

    await run(shallow, "Q", conducted(conductor, echoing()), max_depth=3)

    assert conductor.offered == [(0,)]
