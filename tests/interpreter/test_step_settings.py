"""A step's own temperature and token limit: what its call is given, what a budget reserves, what a journal keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interpreter.toy_workers import always, pool_of

from wfdsl import Step, Workflow
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.record import Run
from wfdsl.interpreter.running import run
from wfdsl.interpreter.worker_profile import estimate

OWN = Workflow((Step(0, "a", temperature=0.5, max_tokens=7), Step(0, "b", (0,))))
LIMITED = {"max_tokens": 100, "prices": {"input": 0, "output": 1e6}}


async def test_a_call_is_given_the_settings_of_its_step_and_other_calls_are_not() -> None:
    worker = always("x")

    done = await run(OWN, "Q", pool_of(worker), seed=3)

    first, second = worker.calls
    assert {**first.settings, "seed": 0} == {"seed": 0, "temperature": 0.5, "max_tokens": 7}
    assert set(second.settings) == {"seed"}
    assert Run.from_json(done.to_json()).workflow == OWN


async def test_an_estimate_and_a_budget_count_with_the_step_s_token_limit() -> None:
    pool = pool_of(always("x"), entries=[LIMITED])

    done = await run(Workflow((OWN[0],)), "Q", pool, budget=Budget(usd=7.5))

    assert [step.output_tokens for step in estimate(OWN, "Q", pool).steps] == [7, 100]
    assert done.status == "done"


@pytest.mark.parametrize("other", [Step(0, "a", temperature=0.6), Step(0, "a", max_tokens=9), Step(0, "a")])
async def test_a_call_with_other_settings_is_another_call_to_the_journal(tmp_path: Path, other: Step) -> None:
    worker = always("x")
    with Journal(tmp_path / "j.sqlite") as journal:
        for step in (Step(0, "a", temperature=0.5), Step(0, "a", temperature=0.5), other):
            await run(Workflow((step,)), "Q", pool_of(worker), journal=journal, sample_id="same")

    assert len(worker.calls) == 2
