"""Tasks of the gym: balanced, stable, and known to the workers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from wfdsl.errors import UsageError
from wfdsl_rl.gym import make
from wfdsl_rl.gym.world.families import recognise
from wfdsl_rl.gym.world.presets import EASE


def test_kinds_and_families_come_in_equal_parts() -> None:
    tasks = make("gym/paper7", 480, 1)

    kinds = Counter(task.kind for task in tasks)
    families = Counter(task.metadata["family"] for task in tasks)

    assert set(kinds.values()) == {120}
    assert set(families) == {name for names in EASE.values() for name in names}
    assert set(families.values()) == {30, 40}


def test_ids_are_unique_and_fewer_tasks_are_the_first_ones() -> None:
    many, few = make("gym/paper7", 60, 3), make("gym/paper7", 20, 3)

    assert len({task.id for task in many}) == 60
    assert many[:20] == few


def test_questions_differ_and_are_recognised_with_their_gold_answer() -> None:
    tasks = make("gym/paper7", 200, 5, split="train")

    assert len({task.question for task in tasks}) == 200
    for task in tasks:
        item = recognise(task.question)
        assert item is not None
        assert item.gold == task.gold


def test_splits_share_no_wording() -> None:
    train = {task.metadata["template"] for task in make("gym/paper7", 300, 1, split="train")}
    test = {task.metadata["template"] for task in make("gym/paper7", 300, 1, split="test")}

    assert not train & test


def test_presets_are_asked_the_same_questions() -> None:
    left, right = make("gym/paper7", 12, 1), make("gym/open4", 12, 1)

    assert [task.question for task in left] == [task.question for task in right]
    assert right[0].source == "gym/open4"


def test_a_family_that_has_run_dry_repeats_itself_instead_of_searching_for_ever() -> None:
    tasks = make("gym/paper7", 2000, 1, kinds=["math"])

    assert len({task.id for task in tasks}) == 2000


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"preset": "gym/none"}, "it has gym/paper7"),
        ({"n": -1}, "cannot make -1"),
        ({"kinds": ["custom"]}, "kinds are math"),
        ({"kinds": []}, "no kinds"),
        ({"split": "dev"}, "'dev'"),
    ],
)
def test_what_cannot_be_made_is_said_with_what_can(arguments: dict[str, Any], part: str) -> None:
    with pytest.raises(UsageError, match=part):
        make(**{"preset": "gym/paper7", "n": 4, "seed": 0, **arguments})


def test_series_of_axes_share_almost_no_question() -> None:
    series = [{task.question for task in make("gym/axes", 1800, seed)} for seed in (1, 2)]
    trained = {task.question for task in make("gym/axes", 1800, 1, split="train")}

    assert [len(one) for one in series] == [1800, 1800]  # within a series none is repeated
    assert len(series[0] & series[1]) <= 0.002 * 1800
    assert not trained & (series[0] | series[1])
