"""Trained routers, TRINITY's coordinator and the tree search: what they learn, whom they ask, what it costs."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.coordinator import Coordinator
from wfdsl.evaluation.baselines.embeddings import embed
from wfdsl.evaluation.baselines.fitted import FittedPolicy
from wfdsl.evaluation.baselines.teams import SUBTASKS
from wfdsl.evaluation.baselines.trained_routers import RouterDC, SoftTargets
from wfdsl.evaluation.baselines.tree_search import Node, TreeSearch, chosen, scores_of
from wfdsl.evaluation.baselines.validation import Validation
from wfdsl.protocols import Call

from .toys import Asked, specialists, staff, tasks

KNOWS = {"ann": "red", "bob": "blue", "cy": "thing"}


@pytest.mark.parametrize("method", [SoftTargets(), RouterDC()])
async def test_a_trained_router_asks_the_worker_that_knows_such_questions(method: Any) -> None:
    workers = staff(specialists(KNOWS))
    pool = workers.pool()
    policy = FittedPolicy(method, Validation(tasks(24)))

    cost = await policy.fit(pool)

    router: Any = policy._routers[pool]
    assert [router.workflow_for(f"Name the {kind} thing 99.")[0].worker for kind in ("red", "blue")] == [0, 1]
    assert cost.calls == 3 * 24 == policy.fit_calls(pool)


async def test_training_twice_gives_the_same_router() -> None:
    pool = staff(specialists(KNOWS)).pool()
    asked = [f"Name the {word} thing {at}." for word in ("red", "blue", "green") for at in range(5)]
    found = []
    for _ in range(2):
        policy = FittedPolicy(RouterDC(), Validation(tasks(12)))
        await policy.fit(pool)
        router: Any = policy._routers[pool]
        found.append([router.workflow_for(question)[0].worker for question in asked])

    assert found[0] == found[1]


async def test_a_router_that_is_trained_beside_others_is_the_same() -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    pool = staff(specialists(KNOWS)).pool()
    alone, beside, other = (
        FittedPolicy(method, Validation(tasks(12))) for method in (RouterDC(), RouterDC(), SoftTargets())
    )
    await alone.fit(pool)

    await asyncio.gather(other.fit(pool), beside.fit(pool))

    routers: list[Any] = [policy._routers[pool] for policy in (alone, beside)]
    asked = torch.from_numpy(embed(["Name the red thing 3."], "hashing")).float()
    assert torch.equal(*(router.score(asked) for router in routers))


async def test_without_torch_a_trained_router_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wfdsl.installation.find_spec", lambda name: None)

    with pytest.raises(UsageError, match="soft-target-router needs torch: pip install"):
        await FittedPolicy(SoftTargets(), Validation(tasks(3))).fit(staff().pool())


async def test_without_its_package_the_coordinator_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wfdsl.installation.find_spec", lambda name: None)

    with pytest.raises(UsageError, match="trinity needs cmaes: pip install"):
        await FittedPolicy(Coordinator(), Validation(tasks(3))).fit(staff().pool())


async def test_the_coordinator_evolves_workers_and_roles_by_the_question() -> None:
    def answer(asked: Asked, call: Call) -> str:
        red = "red" in call.messages[0]["content"]
        right = asked.worker == ("ann" if red else "bob") and asked.subtask.endswith(SUBTASKS["V"])
        return f"The answer is {('red' if red else 'blue') if right else 'unknown'}"

    workers = staff(answer)
    pool = workers.pool()
    policy = FittedPolicy(Coordinator(turns=2, search_calls=4000, call_price=0.01), Validation(tasks(8)))

    cost = await policy.fit(pool)

    router: Any = policy._routers[pool]
    last = [router.workflow_for(f"Name the {kind} thing 99.")[-1] for kind in ("red", "blue")]
    assert [(step.worker, step.subtask) for step in last] == [(0, SUBTASKS["V"]), (1, SUBTASKS["V"])]
    assert cost.calls <= policy.fit_calls(pool)


async def test_the_tree_asks_as_often_as_told_and_gives_what_most_agree_on() -> None:
    answers = iter(["7", "8", "7", "9", "7"])
    workers = staff(lambda asked, call: f"The answer is {next(answers, '1')}")
    pool = workers.pool()
    policy = FittedPolicy(TreeSearch(n=5), Validation(tasks(1)))
    await policy.fit(pool)
    workers.calls.clear()
    answers = iter(["7", "8", "7", "9", "7"])

    solution = await policy.solve("How much is 3 + 4?", pool, seed=1)

    assert solution.answer == "The answer is 7"
    assert len(workers.calls) == len(solution.rounds) == 5
    assert solution.usage.input_tokens == 50
    deeper = [call for call in workers.calls if call.subtask.endswith(SUBTASKS["R"])]
    assert all(len(call.seen) == 1 for call in deeper)


async def test_the_same_seed_grows_the_same_tree() -> None:
    workers = staff()
    pool = workers.pool()
    policy = FittedPolicy(TreeSearch(n=6), Validation(tasks(1)))

    found = [[run.workflow for run in (await policy.solve("What?", pool, seed=seed)).rounds] for seed in (1, 1, 2)]

    assert found[0] == found[1] != found[2]


def test_the_tree_asks_the_better_worker_and_deepens_the_better_branch() -> None:
    nodes = [Node(0, "a", None), Node(1, "b", None)]
    asked = [chosen(nodes, [1.0, 0.0], {0: 0.9, 1: 0.1}, random.Random(at)) for at in range(300)]

    assert sum(worker == 0 for worker, _ in asked) > 200
    assert sum(parent == 0 for _, parent in asked) > 3 * sum(parent == 1 for _, parent in asked)
    assert sum(parent is None for _, parent in asked) > 30


def test_a_score_is_the_share_of_others_that_agree() -> None:
    assert scores_of([[0, 2, 3], [1]], 5) == [0.5, 0.0, 0.5, 0.5, 0.0]
    assert scores_of([[0]], 1) == [0.5]
    assert scores_of([], 0) == []
