"""Fitted routers: which workers they ask, what fitting costs and where it is counted, and that it happens once."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.baseline import alone
from wfdsl.evaluation.baselines.fitting import Fitted, TrainingSet, embed
from wfdsl.evaluation.baselines.routers import (
    Cascade,
    NearestNeighbours,
    RouterDC,
    SmoothieDependent,
    SmoothieIndependent,
    scatter,
    team,
)
from wfdsl.evaluation.evaluate import evaluate
from wfdsl.evaluation.policy_names import policies_of
from wfdsl.evaluation.trials import Evaluation, spent_on
from wfdsl.interpreter.budget import Budget
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.record import BudgetExhausted
from wfdsl.protocols import Call, WorkerFailure
from wfdsl.tasks.task import save_tasks

from .toys import Asked, Staff, specialists, staff, tasks

KNOWS = {"ann": "red", "bob": "blue", "cy": "thing"}


def routed(method: type[Fitted], count: int = 12, **settings: Any) -> Fitted:
    return method(tasks=tuple(tasks(count)), **settings)


async def asked_on(policy: Fitted, workers: Staff, question: str) -> list[str]:
    pool = workers.pool()
    await policy.fit(pool)
    workers.calls.clear()
    await policy.solve(question, pool)
    return workers.who


async def test_neighbours_decide_whom_the_knn_router_asks() -> None:
    workers = staff(specialists(KNOWS))
    policy = routed(NearestNeighbours, k=3)

    assert await asked_on(policy, workers, "Name the red thing 99.") == ["ann"]
    assert await asked_on(policy, workers, "Name the blue thing 99.") == ["bob"]


async def test_fitting_counts_towards_the_budget_and_happens_once_even_if_it_was_cut_off() -> None:
    workers = staff(specialists(KNOWS))
    pool = workers.pool()
    policy = routed(NearestNeighbours, count=4)
    with pytest.raises(BudgetExhausted):
        await policy.solve("What?", pool, budget=Budget(calls=5))
    assert (policy.fit_cost, len(workers.calls)) == (None, 5)

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
    names = ["knn-router", "smoothie-independent", "smoothie-dependent"]
    policies = policies_of([f"{name}:validation={tmp_path / 'v.jsonl'}" for name in names], pool)

    await asyncio.gather(*(policy.solve("What?", pool) for policy in policies.values()))

    assert len(workers.calls) == 3 * 4 + 1 + 1 + 3
    assert [policy.fit_cost.calls for policy in policies.values()] == [12, 12, 12]  # type: ignore[attr-defined]


async def test_all_runs_of_a_task_have_the_same_seed_where_the_run_has_one() -> None:
    workers = staff(specialists(KNOWS))

    await routed(NearestNeighbours, count=2).fit(workers.pool(), seed=5)
    seeds = [call.settings["seed"] for call in workers.calls]
    workers.calls.clear()
    await routed(NearestNeighbours, count=2).fit(workers.pool(), seed=6)

    assert len(set(seeds)) == 2
    assert seeds == [call.settings["seed"] for call in workers.calls]


async def test_the_journal_knows_what_fitting_has_spent_and_asked(tmp_path: Path) -> None:
    workers = staff(specialists(KNOWS))
    policies = {name: routed(NearestNeighbours, count=4) for name in "rs"}

    with Journal(tmp_path / "journal") as journal:
        for name, policy in policies.items():
            what = Evaluation(policies={name: policy}, tasks=tasks(2), pool=workers.pool(), id="e")
            await evaluate(what, journal=journal)

    assert len(workers.calls) == spent_on("e", journal.path).calls == 3 * 4 + 2 * 2
    assert policies["r"].fit_cost == policies["s"].fit_cost


async def test_a_worker_that_fails_on_a_task_is_not_judged_on_it() -> None:
    def answer(asked: Asked, call: Call) -> str:
        if asked.worker == "bob" and "red" in call.messages[0]["content"]:
            raise WorkerFailure("no", retryable=False)
        return specialists({"ann": "red", "bob": "blue"})(asked, call)

    workers = staff(answer)

    assert await asked_on(routed(NearestNeighbours, k=12), workers, "Name the blue thing 99.") == ["bob"]


async def test_a_worker_that_is_silent_on_a_task_is_wrong_on_it() -> None:
    def answer(asked: Asked, call: Call) -> str:
        silent = asked.worker == "bob" and "red" in call.messages[0]["content"]
        return "" if silent else specialists({"ann": "red", "bob": "blue"})(asked, call)

    training_set = TrainingSet(routed(NearestNeighbours, count=4), staff(answer).pool(), {})
    [results] = await training_set.results([alone(1)])

    assert [result.right for result in results] == [False, True, False, True]


async def test_the_cascade_chooses_a_team_and_seats_the_best_of_the_neighbourhood() -> None:
    def answer(asked: Asked, call: Call) -> str:
        if "red" in call.messages[0]["content"]:
            return f"The answer is {'red' if asked.worker == 'bob' else 'unknown'}"
        right = asked.worker == "ann" and any("cy" in seen for seen in asked.seen)  # cy has planned
        return f"The answer is {'blue' if right else asked.worker}"

    workers = staff(answer)
    pool = workers.pool()
    policy = routed(Cascade, count=12, k=6)
    await policy.fit(pool)
    router: Any = policy.routers[pool]

    assert router("Name the red thing 99.") == team("S", [1])
    assert router("Name the blue thing 99.") == team("PSV", [0, 1, 2])
    assert policy.fit_cost is not None
    # the best worker alone is a team too
    assert policy.fit_cost.calls == 12 * (3 + 5) == len(workers.calls) == policy.fit_calls(pool)


@pytest.mark.parametrize(("price", "size"), [(0.01, 2), (1.0, 1)])
async def test_a_further_call_of_the_cascade_has_to_be_worth_its_price(price: float, size: int) -> None:
    workers = staff(lambda asked, call: f"The answer is {'red' if asked.seen else 'unknown'}")
    pool = workers.pool()
    policy = Cascade(k=6, call_price=price, tasks=tuple(tasks(12, kinds=("red",))))
    await policy.fit(pool)

    router: Any = policy.routers[pool]

    assert len(router("Name the red thing 99.")) == size


async def test_a_trained_router_asks_the_worker_that_knows_such_questions_whatever_else_is_trained() -> None:
    pytest.importorskip("torch")
    workers = staff(specialists(KNOWS))
    pool = workers.pool()
    policy, again, other = (routed(RouterDC, size) for size in (24, 24, 18))

    await policy.fit(pool)
    await asyncio.gather(other.fit(pool), again.fit(pool))

    router = policy.routers[pool]
    assert [router(f"Name the {kind} thing 99.") for kind in ("red", "blue")] == [alone(0), alone(1)]
    assert policy.fit_cost is not None
    assert policy.fit_cost.calls == 3 * 24 == policy.fit_calls(pool)
    asked = [f"Name the {word} thing {at}." for word in ("red", "blue", "green") for at in range(20)]
    assert [router(each) for each in asked] == [again.routers[pool](each) for each in asked]


async def test_without_torch_a_trained_router_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wfdsl.installation.find_spec", lambda name: None)

    with pytest.raises(UsageError, match="pip install"):
        await routed(RouterDC).fit(staff().pool())


def test_texts_that_are_alike_are_near_and_have_the_same_vector_of_length_one_in_every_process() -> None:
    texts = ["How much is 3 + 4?", "How much is 5 + 6?", "Which element is written Co?", "Which element is written Fe?"]
    places = embed([*texts, ""])

    assert [(places @ place).argsort()[-2] for place in places[:4]] == [1, 0, 3, 2]
    assert np.linalg.norm(places, axis=1) == pytest.approx([1, 1, 1, 1, 0])
    signs = np.sign(embed(["a b c"])[0]).astype("int8").tobytes()
    assert hashlib.sha256(signs).hexdigest()[:16] == "ec504e2365a02e17"


def test_a_router_says_what_it_is() -> None:
    policy = routed(NearestNeighbours, k=3)

    assert policy.describe() == {
        "kind": "knn-router", "k": 3, "limit": 960, "seed": 0, "validation": policy.key, "tasks": 12
    }  # fmt: skip
    assert policy != routed(NearestNeighbours, k=4)


def two_agree(asked: Asked, call: Call) -> str:
    """On red things `bob` and `cy` agree, on others `ann` and `bob` do; `bob` is a little off."""
    pair = ("bob", "cy") if "red" in call.messages[0]["content"] else ("ann", "bob")
    if asked.worker in pair:
        return "It is a large house on the hill" + (" maybe" if asked.worker == "bob" else "")
    return "Nobody can tell anything"


def test_three_distances_give_each_worker_its_own() -> None:
    distances = np.array([[0.0, 3.0, 5.0], [3.0, 0.0, 6.0], [5.0, 6.0, 0.0]])

    assert scatter(distances) == [1.0, 2.0, 4.0]


def test_independent_noise_is_told_apart_by_its_size() -> None:
    noise = np.random.default_rng(5)
    sizes = [0.5, 0.1, 1.0, 0.3]
    points = np.stack([size * noise.standard_normal((400, 30)) for size in sizes])
    distances = ((points[:, None] - points) ** 2).sum(-1).mean(-1)

    assert scatter(distances) == pytest.approx([30 * size**2 for size in sizes], abs=0.5)


async def test_the_independent_form_asks_one_worker_and_needs_no_gold_answers() -> None:
    policy = routed(SmoothieIndependent, count=4)

    assert await asked_on(policy, staff(two_agree), "Any question") == ["bob"]


async def test_the_dependent_form_asks_all_and_gives_the_reply_of_the_nearest_to_the_others() -> None:
    workers = staff(two_agree)
    pool = workers.pool()
    policy = routed(SmoothieDependent, count=4, k=1)
    await policy.fit(pool)
    workers.calls.clear()

    red = await policy.solve("Name the red thing 7.", pool)

    assert workers.who == ["ann", "bob", "cy"]
    assert red.answer is not None
    assert red.answer.startswith("It is a large house")
    assert red.usage.total_tokens == 45


async def test_equal_replies_are_a_tie_for_the_first_worker() -> None:
    pool = staff(lambda asked, call: "The same").pool()

    solution = await routed(SmoothieDependent, count=4).solve("What?", pool)

    assert [step.worker for step in solution.run.steps] == [0, 1, 2, -2]
    assert solution.answer == "The same"


async def test_two_workers_are_too_few() -> None:
    with pytest.raises(UsageError, match="three workers or more"):
        await routed(SmoothieIndependent, count=4).solve("What?", staff().pool(names=("ann", "bob")))
