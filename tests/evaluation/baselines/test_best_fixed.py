"""The search for the best workflow: what it finds, what it costs, and that its edits are valid workflows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.toys import trial
from wfdsl import CheckConfig, analyze, dumps
from wfdsl.evaluation.baselines.baseline import SUBTASKS, alone
from wfdsl.evaluation.baselines.best_fixed import BestFixed, BestFixedByKind, Search, edited
from wfdsl.evaluation.trials import Trial
from wfdsl.language.workflow import Step, Workflow
from wfdsl.protocols import Call
from wfdsl.tasks.task import Task

from .toys import Asked, staff, tasks

PLAN, CHECK = SUBTASKS["P"], SUBTASKS["V"]


async def test_the_search_finds_the_workers_the_roles_and_what_they_see() -> None:
    def answer(asked: Asked, call: Call) -> str:
        checks = asked.worker == "cy" and asked.subtask.endswith(CHECK)
        planned = asked.seen == ["a plan by bob"]
        plan = asked.worker == "bob" and asked.subtask.endswith(PLAN)
        question = call.messages[0]["content"]
        right = checks if "red" in question else planned
        return "a plan by bob" if plan else f"The answer is {question.split()[2] if right else 'unknown'}"

    workers = staff(answer)
    pool = workers.pool()
    policy = BestFixed(max_steps=3, search_calls=2500, tasks=tuple(tasks(6)))

    await policy.fit(pool)

    assert policy.routers[pool]("?") == Workflow((Step(1, PLAN), Step(2, CHECK, (0,))))
    assert policy.fit_cost is not None
    assert policy.fit_cost.calls == len(workers.calls) <= policy.fit_calls(pool)


async def test_each_kind_of_question_gets_its_own_workflow() -> None:
    def answer(asked: Asked, call: Call) -> str:
        red = "red" in call.messages[0]["content"]
        return f"The answer is {('red' if asked.worker == 'ann' else 'no') if red else ('blue' if asked.seen else '')}"

    known = [
        Task(id=task.id, question=task.question, gold=task.gold, kind="text", metadata={"domain": task.gold})
        for task in tasks(24)
    ]
    pool = staff(answer).pool()
    policy = BestFixedByKind(search_calls=2000, tasks=tuple(known))

    await policy.fit(pool)

    router: Any = policy.routers[pool]
    assert router("Name the red thing 99.") == alone(0)
    assert len(router("Name the blue thing 99.")) == 2


async def test_the_search_ends_with_its_calls_or_with_nothing_new_and_never_measures_twice() -> None:
    asked: list[tuple[Workflow, int]] = []

    async def results(workflows: Sequence[Workflow], chosen: Sequence[int]) -> list[list[Trial]]:
        asked.extend((workflow, at) for workflow in workflows for at in chosen)
        return [[trial(outcome="unjudged")] * len(chosen)]

    search = Search(results, range(100), (0, 1, 2), 5000, 4, random.Random(0))
    await search.run([alone(0)])

    assert len(asked) == len(set(asked))
    assert search.spent == sum(len(workflow) for workflow, _ in asked[100:])
    assert 5000 <= search.spent < 5000 + 24 * 4 * 100
    nothing_new = Search(results, range(2), (0,), 10**9, 1, random.Random(0))
    assert len(await nothing_new.run([alone(0)])) <= 4
    assert 0 < nothing_new.spent <= 2 * len(SUBTASKS)


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_edits_of_a_valid_workflow_are_valid(seed: int, edits: int) -> None:
    chance, workflow = random.Random(seed), alone(0)

    for _ in range(edits):
        workflow = edited(workflow, (0, 1, 2), chance)

    checked = analyze(dumps(workflow), CheckConfig(pool=3, max_steps=None))
    assert checked.workflow is not None, checked.diagnostics
