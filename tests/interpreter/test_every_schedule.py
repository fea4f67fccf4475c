"""A step starts as soon as the steps that it sees have finished, whatever the others do."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.interpreter.toy_workers import Answering, on_test_clock, pool_of

from wfdsl import Step, Workflow
from wfdsl.interpreter.running import run
from wfdsl.protocols import Call, Reply

if TYPE_CHECKING:
    from wfdsl.interpreter.record import Run


@st.composite
def workflows(draw: st.DrawFn) -> Workflow:
    steps = []
    for index in range(draw(st.integers(1, 8))):
        seen = st.lists(st.integers(0, index - 1), unique=True).map(sorted).map(tuple) if index else st.just(())
        access: Any = draw(st.one_of(st.just("all"), seen))
        steps.append(Step(draw(st.integers(0, 2)), f"subtask {index}", access))
    return Workflow(tuple(steps))


def digest(worker: int, texts: list[str]) -> str:
    return hashlib.md5(repr((worker, texts)).encode(), usedforsecurity=False).hexdigest()[:12]


def run_with_delays(workflow: Workflow, delays: list[float], **options: Any) -> Run:
    def worker(index: int) -> Answering:
        async def answer(call: Call) -> Reply:
            await asyncio.sleep(delays[call.path[0]])
            return Reply(digest(index, [message["content"] for message in call.messages]))

        return Answering(answer)

    return on_test_clock(run(workflow, "Q?", pool_of(worker(0), worker(1), worker(2)), **options))


DELAYS = st.lists(st.sampled_from([0.0, 0.0, 0.25, 1.0, 1.0, 3.0, 7.5]), min_size=8, max_size=8)


@settings(max_examples=50, deadline=None)
@given(workflow=workflows(), delays=DELAYS)
def test_a_step_starts_at_the_moment_when_the_last_step_that_it_sees_finishes(
    workflow: Workflow, delays: list[float]
) -> None:
    done = run_with_delays(workflow, delays, run_dead_steps=True)

    for step in done.steps:
        seen = range(step.step) if workflow[step.step].access == "all" else workflow[step.step].access
        ready = max((done.steps[int(other)].finished or 0.0 for other in seen), default=done.started)
        assert step.started == ready
        assert step.finished is not None
        assert abs(step.finished - step.started - delays[step.step]) < 1e-6


def run_in_order(workflow: Workflow, question: str) -> list[str]:
    """The oracle: steps one after the other, written from the language's description, sharing nothing."""
    responses: list[str] = []
    for index, step in enumerate(workflow.steps):
        texts = []
        for earlier in range(index):
            if step.access == "all" or earlier in step.access:
                texts += [f"subtask {earlier}", responses[earlier]]
        texts.append(step.subtask)
        texts[0] = question + "\n\n" + texts[0]
        responses.append(digest(int(step.worker), texts))
    return responses


@settings(max_examples=80, deadline=None)
@given(workflow=workflows(), delays=DELAYS, concurrency=st.none() | st.integers(1, 3), dead=st.booleans())
def test_every_schedule_gives_the_responses_of_running_in_order_dead_steps_left_out_or_not(
    workflow: Workflow, delays: list[float], concurrency: int | None, dead: bool
) -> None:
    done = run_with_delays(workflow, delays, concurrency=concurrency, run_dead_steps=dead)

    expected = run_in_order(workflow, "Q?")
    assert done.answer == expected[-1]
    assert all(step.response in (None, expected[step.step]) for step in done.steps)
    assert all((step.status == "pruned") == (step.response is None) for step in done.steps)
    assert not dead or all(step.status == "done" for step in done.steps)
