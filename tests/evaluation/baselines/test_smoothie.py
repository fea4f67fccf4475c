"""Smoothie: quality from how replies scatter, on numbers that can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wfdsl.errors import UsageError
from wfdsl.evaluation.baselines.fitting import Fitted
from wfdsl.evaluation.baselines.routers import SmoothieDependent, SmoothieIndependent, scatter
from wfdsl.protocols import Call

from .toys import Asked, staff, tasks


def learned(method: Fitted, count: int = 4) -> Fitted:
    return replace(method, tasks=tuple(tasks(count)))


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
    workers = staff(two_agree)
    pool = workers.pool()
    policy = learned(SmoothieIndependent())
    await policy.fit(pool)
    workers.calls.clear()

    await policy.solve("Any question", pool)

    assert workers.who == ["bob"]


async def test_the_dependent_form_asks_all_and_gives_the_reply_of_the_nearest_to_the_others() -> None:
    workers = staff(two_agree)
    pool = workers.pool()
    policy = learned(SmoothieDependent(k=1))
    await policy.fit(pool)
    workers.calls.clear()

    red = await policy.solve("Name the red thing 7.", pool)

    assert workers.who == ["ann", "bob", "cy"]
    assert red.answer is not None
    assert red.answer.startswith("It is a large house")
    assert red.usage.total_tokens == 45


async def test_equal_replies_are_a_tie_for_the_first_worker() -> None:
    pool = staff(lambda asked, call: "The same").pool()

    solution = await learned(SmoothieDependent()).solve("What?", pool)

    assert [step.worker for step in solution.run.steps] == [0, 1, 2, -2]
    assert solution.answer == "The same"


async def test_two_workers_are_too_few() -> None:
    with pytest.raises(UsageError, match="three workers or more"):
        await learned(SmoothieIndependent()).solve("What?", staff().pool(names=("ann", "bob")))
