"""RouterDC: what it learns, whom it asks, what it costs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.embeddings import embed
from wfdsl.evaluation.baselines.fitted import FittedPolicy
from wfdsl.evaluation.baselines.trained_routers import RouterDC
from wfdsl.evaluation.baselines.validation import Validation

from .toys import specialists, staff, tasks

KNOWS = {"ann": "red", "bob": "blue", "cy": "thing"}


async def test_a_trained_router_asks_the_worker_that_knows_such_questions() -> None:
    workers = staff(specialists(KNOWS))
    pool = workers.pool()
    policy = FittedPolicy(RouterDC(), Validation(tasks(24)))

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
    alone, beside, other = (FittedPolicy(RouterDC(), Validation(tasks(size))) for size in (12, 12, 18))
    await alone.fit(pool)

    await asyncio.gather(other.fit(pool), beside.fit(pool))

    routers: list[Any] = [policy._routers[pool] for policy in (alone, beside)]
    asked = torch.from_numpy(embed(["Name the red thing 3."], "hashing")).float()
    assert torch.equal(*(router.score(asked) for router in routers))


async def test_without_torch_a_trained_router_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wfdsl.installation.find_spec", lambda name: None)

    with pytest.raises(UsageError, match="routerdc needs torch: pip install"):
        await FittedPolicy(RouterDC(), Validation(tasks(3))).fit(staff().pool())
