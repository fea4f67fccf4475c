"""Routers that learn: whom they ask, what learning costs and where it is counted, and that it happens once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.baseline import alone
from wfdsl.evaluation.baselines.fitting import FittedPolicy, TrainingSet, Validation
from wfdsl.evaluation.baselines.routers import BestWorker, Cascade, Counts, NearestNeighbours, fitting_k
from wfdsl.evaluation.baselines.teams import team
from wfdsl.evaluation.evaluate import evaluate
from wfdsl.evaluation.policy_names import policies_of, policy_of
from wfdsl.evaluation.trials import Evaluation, spent_on
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.record import BudgetExhausted
from wfdsl.protocols import Call, WorkerFailure
from wfdsl.tasks.task import save_tasks

from .toys import Asked, Staff, specialists, staff, tasks

KNOWS = {"ann": "red", "bob": "blue", "cy": "thing"}


def routed(method: Any, count: int = 12, **settings: Any) -> FittedPolicy:
    return FittedPolicy(method(**settings), Validation(tasks(count)))


async def asked_on(policy: FittedPolicy, workers: Staff, question: str) -> str:
    pool = workers.pool()
    await policy.fit(pool)
    workers.calls.clear()
    await policy.solve(question, pool)
    return workers.calls[0].worker


async def test_the_best_worker_router_asks_whoever_was_right_most_often() -> None:
    workers = staff(specialists(KNOWS))
    policy = FittedPolicy(BestWorker(), Validation(tasks(12, kinds=("red", "blue", "blue"))))

    assert await asked_on(policy, workers, "Any question") == "bob"


async def test_neighbours_decide_whom_the_knn_router_asks() -> None:
    workers = staff(specialists(KNOWS))
    policy = routed(NearestNeighbours, k=3)

    assert await asked_on(policy, workers, "Name the red thing 99.") == "ann"
    assert await asked_on(policy, workers, "Name the blue thing 99.") == "bob"


async def test_learning_happens_once_and_its_cost_is_told() -> None:
    workers = staff(specialists(KNOWS))
    pool = workers.pool()
    policy = routed(BestWorker, count=4)
    assert policy.fit_cost is None

    await asyncio.gather(*(policy.solve(f"Question {at}", pool) for at in range(5)))

    assert len(workers.calls) == 3 * 4 + 5
    assert policy.fit_cost is not None
    assert (policy.fit_cost.calls, policy.fit_cost.tokens) == (12, 180)
    assert policy.fit_calls(pool) == 12
    assert policy.fit_cost.usd == pytest.approx(180e-6)


async def test_policies_share_what_they_measure_on_the_same_tasks(tmp_path: Path) -> None:
    workers = staff(specialists(KNOWS))
    pool = workers.pool()
    save_tasks(tmp_path / "v.jsonl", tasks(4))
    names = ["best-worker-router", "knn-router", "smoothie-independent"]
    policies = policies_of([f"{name}:validation={tmp_path / 'v.jsonl'}" for name in names], pool)

    await asyncio.gather(*(policy.solve("What?", pool) for policy in policies.values()))

    assert len(workers.calls) == 3 * 4 + 3
    assert [policy.fit_cost.calls for policy in policies.values()] == [12, 12, 12]  # type: ignore[attr-defined]


async def test_what_the_journal_knows_is_not_asked_again(tmp_path: Path) -> None:
    workers = staff(specialists(KNOWS))

    with Journal(tmp_path / "journal") as journal:
        policies = [routed(BestWorker, count=3) for _ in range(2)]
        for policy in policies:
            await policy.fit(workers.pool(), journal=journal)

    assert len(workers.calls) == 9
    assert policies[0].fit_cost == policies[1].fit_cost


async def test_all_runs_of_a_task_have_the_same_seed_where_the_run_has_one() -> None:
    workers = staff(specialists(KNOWS))

    await routed(BestWorker, count=2).fit(workers.pool(), seed=5)
    seeds = [call.settings["seed"] for call in workers.calls]
    workers.calls.clear()
    await routed(BestWorker, count=2).fit(workers.pool(), seed=6)

    assert len(set(seeds)) == 2
    assert seeds == [call.settings["seed"] for call in workers.calls]


async def test_learning_counts_towards_the_budget() -> None:
    with pytest.raises(BudgetExhausted):
        await routed(BestWorker).solve("What?", staff().pool(), budget=Budget(calls=5))


async def test_what_fitting_has_spent_is_counted_when_an_evaluation_is_resumed(tmp_path: Path) -> None:
    what = Evaluation(policies={"r": routed(BestWorker, count=4)}, tasks=tasks(2), pool=staff().pool(), id="e")

    with Journal(tmp_path / "journal") as journal:
        await evaluate(what, journal=journal)

    assert spent_on("e", journal.path).calls == 3 * 4 + 2


async def test_a_worker_that_fails_on_a_task_is_not_judged_on_it() -> None:
    def answer(asked: Asked, call: Call) -> str:
        if asked.worker == "bob" and "red" in call.messages[0]["content"]:
            raise WorkerFailure("no", retryable=False)
        return specialists({"ann": "red", "bob": "blue"})(asked, call)

    workers = staff(answer)

    assert await asked_on(routed(BestWorker), workers, "Name the blue thing 99.") == "bob"


async def test_a_worker_that_is_silent_on_a_task_is_wrong_on_it() -> None:
    def answer(asked: Asked, call: Call) -> str:
        silent = asked.worker == "bob" and "red" in call.messages[0]["content"]
        return "" if silent else specialists({"ann": "red", "bob": "blue"})(asked, call)

    training_set = TrainingSet(Validation(tasks(4)), staff(answer).pool(), {})
    [results] = await training_set.results([alone(1)])

    assert [result.right for result in results] == [False, True, False, True]


async def test_the_cascade_chooses_a_team_and_seats_the_best_of_the_neighbourhood() -> None:
    def answer(asked: Asked, call: Call) -> str:
        red = "red" in call.messages[0]["content"]
        if red:
            return f"The answer is {'red' if asked.worker == 'bob' else 'unknown'}"
        right = asked.worker == "ann" and any("cy" in seen for seen in asked.seen)
        return f"The answer is {'blue' if right else asked.worker}"

    workers = staff(answer)
    pool = workers.pool()
    policy = routed(Cascade, count=12, k=6)
    await policy.fit(pool)
    router: Any = policy.routers[pool]

    assert router("Name the red thing 99.") == team("S", [1])
    assert router("Name the blue thing 99.") == team("PSR", [1, 0, 2])
    assert policy.fit_cost is not None
    assert (
        policy.fit_cost.calls == 12 * (3 + 32) == len(workers.calls) == policy.fit_calls(pool)
    )  # the best worker alone is a team too


@pytest.mark.parametrize(("price", "size"), [(0.01, 2), (1.0, 1)])
async def test_a_further_call_of_the_cascade_has_to_be_worth_its_price(price: float, size: int) -> None:
    workers = staff(lambda asked, call: f"The answer is {'red' if asked.seen else 'unknown'}")
    pool = workers.pool()
    policy = FittedPolicy(Cascade(k=6, call_price=price), Validation(tasks(12, kinds=("red",))))
    await policy.fit(pool)

    router: Any = policy.routers[pool]

    assert len(router("Name the red thing 99.")) == size


def test_a_task_is_no_neighbour_of_its_own_when_their_number_is_chosen() -> None:
    angles = np.arange(100) * 2 * np.pi / 100
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    turns = Counts([[at % 2 == 0 for at in range(100)], [at % 2 == 1 for at in range(100)]])

    assert fitting_k(turns, around) == 80  # the few next to a task would be wrong without it; many are a tie


def test_a_team_has_the_best_as_solvers_the_best_two_as_checkers_and_the_third_as_planner() -> None:
    chain, plan, group = team("SRv", [4, 5, 6]), team("PSV", [4, 5, 6]), team("SSSA", [4, 5])

    assert [(step.worker, step.access) for step in chain] == [(4, ()), (5, "all"), (4, (1,))]
    assert [(step.worker, step.access) for step in plan] == [(6, ()), (4, (0,)), (5, "all")]
    assert [(step.worker, step.access) for step in group] == [(4, ()), (5, ()), (4, ()), (5, "all")]


def test_a_router_says_what_it_is() -> None:
    policy = routed(NearestNeighbours, k=3)

    plain = policy.describe()

    assert plain == {
        "kind": "knn-router", "k": 3, "limit": 960, "seed": 0, "validation": policy.validation.key, "tasks": 12
    }  # fmt: skip
    assert policy != FittedPolicy(NearestNeighbours(k=4), policy.validation)


def test_a_pool_without_questions_of_its_own_needs_a_file() -> None:
    with pytest.raises(UsageError, match="write knn-router:validation=FILE"):
        policy_of("knn-router", staff().pool())
