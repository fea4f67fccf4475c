"""Baselines of one call, and draws: longer replies, random workers, random workflows."""

from __future__ import annotations

import random

import pytest

from wfdsl.evaluation.baselines.baseline import SOLVE
from wfdsl.evaluation.baselines.single_calls import LongContext, RandomRouter, random_workflow
from wfdsl.evaluation.baselines.teams import SUBTASKS
from wfdsl.graph import graph_of
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.record import BudgetExhausted

from .toys import staff


async def test_long_context_asks_once_for_a_reply_five_times_as_long_and_leaves_the_pool_as_it_is() -> None:
    team = staff()
    pool = team.pool()

    solution = await LongContext(worker=1).solve("What?", pool, seed=3)

    assert [(call.worker, call.settings["max_tokens"]) for call in team.calls] == [("bob", 500)]
    assert team.calls[0].settings.keys() == {"max_tokens", "seed"}
    assert solution.answer == "The answer is bob0"
    assert pool.entry(1).max_tokens == 100


async def test_a_budget_reserves_the_longer_reply() -> None:
    with pytest.raises(BudgetExhausted):
        await LongContext(factor=5).solve("What?", staff().pool(), budget=Budget(tokens=400))


async def test_the_random_router_draws_by_seed_question_and_run() -> None:
    async def drawn(seed: int, run_seed: int) -> list[str]:
        team = staff()
        pool = team.pool()
        for question in "abcdefgh":
            await RandomRouter(seed).solve(question, pool, seed=run_seed)
        return [call.worker for call in team.calls]

    first = await drawn(0, 0)

    assert set(first) == {"ann", "bob", "cy"}
    assert first == await drawn(0, 0)
    assert first != await drawn(1, 0)
    assert first != await drawn(0, 1)


def test_random_workflows_plan_first_attempt_next_and_look_last() -> None:
    chance = random.Random(1)
    workflows = [random_workflow(chance, (3, 5)) for _ in range(300)]
    kinds = {SUBTASKS["P"]: "P", SOLVE: "S"}

    for workflow in workflows:
        letters = "".join(kinds.get(step.subtask, "L") for step in workflow)
        assert letters == "".join(sorted(letters, key="PSL".index))
        assert "S" in letters
        assert {step.worker for step in workflow} <= {3, 5}
        assert len(workflow) - 1 in graph_of(workflow).live
    assert {len(workflow) for workflow in workflows} == {1, 2, 3, 4, 5}
