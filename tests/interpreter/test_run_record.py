"""The run record as JSON, and its page in the documentation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.interpreter.toy_workers import always, in_turn, pool_of

from wfdsl import RunFailed, Step, UsageError, Workflow
from wfdsl.interpreter.budget import BudgetUsage
from wfdsl.interpreter.record import LostCall, Run, StepRecord
from wfdsl.interpreter.running import run
from wfdsl.protocols import Message, Reply, Usage, WorkerFailure
from wfdsl.render.status import StepStatus

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "run-record.md"
BRANCHES = Workflow((Step(0, "a"), Step(1, "b"), Step(0, "dead"), Step(0, "c", (0, 1))))

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
COSTS = st.none() | st.floats(0, 1e6, allow_nan=False)
MESSAGES = st.builds(Message, role=st.sampled_from(["system", "user", "assistant"]), content=TEXTS)
COUNTS = st.integers(0, 10**9)
USAGES = st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS)
STEPS = st.builds(
    StepRecord,
    step=st.integers(0, 50),
    worker=st.integers(0, 50),
    worker_name=TEXTS,
    messages=st.lists(MESSAGES, max_size=2).map(tuple),
    response=st.none() | TEXTS,
    status=st.sampled_from(["waiting", "running", "done", "failed", "stopped", "pruned"]),
    finish=st.none() | st.sampled_from(["stop", "length", "refusal", "filtered", "empty"]),
    started=COSTS,
    finished=COSTS,
    retries=st.integers(0, 9),
    usage=USAGES,
    paid_usd=COSTS,
    list_usd=COSTS,
    replayed=st.booleans(),
    answered_by=st.none() | st.integers(0, 9),
    error=TEXTS,
)
ACCESS = st.just("all") | st.lists(st.integers(0, 9), max_size=3).map(tuple)
WORKFLOWS = st.lists(st.builds(Step, st.integers(0, 9), TEXTS, ACCESS, st.none() | st.integers(0, 3)), max_size=3)
RUNS = st.builds(
    Run,
    id=TEXTS,
    workflow=WORKFLOWS.map(lambda steps: Workflow(tuple(steps))),
    question=TEXTS | st.lists(MESSAGES, max_size=2).map(tuple),
    steps=st.lists(STEPS, max_size=3).map(tuple),
    status=st.sampled_from(["running", "done", "failed", "budget", "stopped"]),
    started=st.floats(0, 1e10),
    finished=COSTS,
    names=st.none() | st.lists(TEXTS, max_size=3).map(tuple),
    error=TEXTS,
    lost=st.lists(st.builds(LostCall, st.just((1, 0, 2)), TEXTS, st.floats(0, 1e10), COUNTS, st.floats(0, 9))).map(
        tuple
    ),
    charged=st.none() | st.builds(BudgetUsage, COUNTS, COUNTS, st.floats(0, 9)),
)


@settings(max_examples=40, deadline=None)
@given(RUNS, RUNS)
def test_reading_is_the_inverse_of_writing(done: Run, nested: Run) -> None:
    with_nested = replace(done, steps=(*done.steps, StepRecord(0, 0, nested=(nested,))))

    assert Run.from_json(with_nested.to_json()) == with_nested


@pytest.mark.parametrize(
    "text", ["what?", "[]", '{"format": "wfdsl-run", "version": 2}', '{"format": "wfdsl-run", "version": 1}']
)
def test_what_is_no_record_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Run.from_json(text)

    assert "\n" not in str(caught.value)


async def test_pictures_can_be_laid_over_with_what_happened() -> None:
    good = pool_of(
        always("x", list_usd=0.5), in_turn(Reply("", "empty"), Reply("y", "length")), entries=[{}, {"retries": 1}]
    )
    bad = pool_of(always("x"), in_turn(WorkerFailure("HTTP 404", retryable=False)))

    done = await run(BRANCHES, "Q", good)
    with pytest.raises(RunFailed) as caught:
        await run(BRANCHES, "Q", bad)

    states = [status.state for status in done.statuses()]
    assert states == ["done", "done", "pruned", "done"]
    assert done.statuses()[0].usd == 0.5
    assert done.statuses()[1].note == "1 failed attempt, reply ended by: length"
    assert done.statuses()[2] == StepStatus("pruned")
    failed = caught.value.run.statuses()
    assert (failed[1].state, failed[1].error) == ("failed", "HTTP 404")
    assert failed[3] == StepStatus("waiting")


async def test_the_page_tells_of_every_field() -> None:
    page = PAGE.read_text("utf-8")
    done: dict[str, Any] = (await run(BRANCHES, "Q", pool_of(always("x"), always("y")))).to_dict()

    named = {name for name in [*done, *done["steps"][0], *done["usage"]] if f"`{name}`" not in page}
    assert named == set()
    assert (done["format"], done["version"], set(done["versions"])) == ("wfdsl-run", 1, {"wfdsl", "python"})
