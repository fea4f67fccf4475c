"""RouterDC: what it learns, whom it asks, what it costs."""

from __future__ import annotations

import asyncio

import pytest

from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.baseline import alone
from wfdsl.evaluation.baselines.fitting import FittedPolicy, Validation
from wfdsl.evaluation.baselines.trained_routers import RouterDC

from .toys import specialists, staff, tasks

KNOWS = {"ann": "red", "bob": "blue", "cy": "thing"}


async def test_a_trained_router_asks_the_worker_that_knows_such_questions_whatever_else_is_trained() -> None:
    workers = staff(specialists(KNOWS))
    pool = workers.pool()
    policy, again, other = (FittedPolicy(RouterDC(), Validation(tasks(size))) for size in (24, 24, 18))

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
        await FittedPolicy(RouterDC(), Validation(tasks(3))).fit(staff().pool())
