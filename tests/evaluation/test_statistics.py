"""Accuracies, their errors and bounds, and paired differences, against values worked out by hand."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.toys import trial
from wfdsl.evaluation.statistics import (
    Mean,
    accuracy_of,
    clustered_mean,
    difference_of,
    interval_of,
    mean_of,
    rank_correlation,
    sign_flip_test,
    wilson_error,
)


def test_with_one_repeat_the_error_is_that_of_a_share() -> None:
    trials = [trial(task=f"t{number}", outcome="right" if number < 6 else "wrong") for number in range(10)]

    found = accuracy_of(trials)

    assert found.value == pytest.approx(0.6)
    assert found.error == pytest.approx(math.sqrt(0.6 * 0.4 / 9))
    one = accuracy_of(trials[:1])
    assert (one.value, one.error) == (1.0, None)


def test_clusters_of_different_size_weigh_by_their_values() -> None:
    # mean 3/4; deviations by cluster: 3 * 1/4 and -3/4; squares 9/16 + 9/16 = 9/8; times 2/1, over 16: 9/64.
    found = clustered_mean([[1, 1, 1], [0]])

    assert found == pytest.approx((0.75, 3 / 8))


def test_what_is_not_judged_is_in_no_accuracy_but_in_the_bounds() -> None:
    outcomes = ["right", "right", "wrong", "unjudged", "failed"]

    found = accuracy_of([trial(task=f"t{number}", outcome=outcome) for number, outcome in enumerate(outcomes)])

    assert (found.right, found.wrong, found.unjudged, found.failed) == (2, 1, 1, 1)
    assert (found.unanswered, accuracy_of([trial(outcome="wrong", extracted="7")]).unanswered) == (1, 0)
    assert found.value == pytest.approx(2 / 3)
    assert (found.low, found.high) == pytest.approx((2 / 5, 4 / 5))
    assert found.tasks == 3


@settings(max_examples=40)
@given(st.lists(st.sampled_from(["right", "wrong", "unjudged", "failed"]), min_size=1, max_size=30))
def test_an_accuracy_lies_within_its_bounds(outcomes: list[str]) -> None:
    found = accuracy_of([trial(task=f"t{number}", outcome=outcome) for number, outcome in enumerate(outcomes)])

    assert found.value is None or found.low - 1e-12 <= found.value <= found.high + 1e-12


def test_the_average_over_benchmarks_weighs_them_equally() -> None:
    found = mean_of([Mean(0.5, 0.03), Mean(0.9, 0.04)])

    assert found == pytest.approx((0.7, 0.025))


def test_a_difference_is_taken_task_by_task() -> None:
    first = [trial("a", f"t{number}", "right" if number < 8 else "wrong") for number in range(10)]
    second = [trial("b", f"t{number}", "right" if number >= 5 else "wrong") for number in range(10)]

    found = difference_of(first, second)

    assert found is not None
    assert (found.tasks, found.better, found.worse) == (10, 5, 2)
    assert (found.first, found.second, found.value) == pytest.approx((0.8, 0.5, 0.3))
    # Bonett and Price: (5 + 1) / 12 and (2 + 1) / 12 of tasks that differ
    half = 1.96 * math.sqrt((0.5 + 0.25 - 0.25**2) / 12)
    assert (found.low, found.high) == pytest.approx((0.25 - half, 0.25 + half), abs=1e-3)
    assert found.p_value == pytest.approx(2 * (1 + 7 + 21) / 128)


def test_only_common_judged_tasks_count_and_content_says_which_are_common() -> None:
    first = [trial("a", "x", task_hash="1"), trial("a", "y", task_hash="2"), trial("a", "z", "failed", task_hash="3")]
    second = [trial("b", "other name", "wrong", task_hash="1"), trial("b", "z", task_hash="3")]

    found = difference_of(first, second)

    assert found is not None
    assert (found.tasks, found.all_tasks, found.value) == (1, 3, 1.0)
    assert difference_of(first[:1], second[1:]) is None


def test_the_interval_of_a_difference_covers_95_percent_near_the_edge() -> None:
    covered, chance = 0, random.Random(7)
    for _ in range(400):
        first, second = (
            [trial(name, f"t{number}", "right" if chance.random() < 0.95 else "wrong") for number in range(30)]
            for name in "ab"
        )
        found = difference_of(first, second)
        assert found is not None
        assert -1 <= found.low < found.high <= 1
        covered += found.low <= 0 <= found.high

    assert covered >= 380


@pytest.mark.parametrize(("better", "worse", "expected"), [(0, 0, 1.0), (1, 0, 1.0), (0, 5, 0.0625), (10, 10, 1.0)])
def test_with_one_repeat_the_test_is_the_exact_sign_test(better: int, worse: int, expected: float) -> None:
    assert sign_flip_test([1.0] * better + [-1.0] * worse + [0.0] * 3) == pytest.approx(expected)


def test_the_p_value_weighs_differences_as_the_interval_does() -> None:
    # ten tasks a little better and two much worse: the mean is 0, although more tasks are better
    assert sign_flip_test([0.2] * 10 + [-1.0] * 2) == 1.0
    # 1/3 and 2/3, of eight sums two are as far from 0 as 4/3
    assert sign_flip_test([1 / 3, 1 / 3, 2 / 3]) == pytest.approx(2 / 8)


@pytest.mark.parametrize(("outcome", "value"), [("wrong", 0.0), ("right", 1.0)])
def test_an_accuracy_on_which_all_tasks_agree_is_not_certain(outcome: str, value: float) -> None:
    found = accuracy_of([trial(task=f"t{number}", outcome=outcome) for number in range(50)])

    assert (found.value, found.error) == pytest.approx((value, 1 / 51))
    assert wilson_error(0.5, 4) == pytest.approx(math.sqrt(0.25 / 4 + 1 / 64) / 1.25)


def test_tasks_with_the_same_question_are_one_cluster() -> None:
    trials = [
        trial(task=f"t{number}", task_hash=str(number // 5), outcome="right" if number < 30 else "wrong")
        for number in range(50)
    ]

    found = accuracy_of(trials)

    assert found.tasks == 10
    assert found.error == pytest.approx(math.sqrt(0.6 * 0.4 / 9))


def test_an_interval_is_wider_where_less_is_known() -> None:
    same, few, many = interval_of([0.0] * 30), interval_of([1.0, 0.0, 0.0] * 2), interval_of([1.0, 0.0, 0.0] * 200)

    assert (same.low, same.high) == pytest.approx((-0.0866, 0.0866), abs=1e-4)  # 1.96 * sqrt(2) / 32
    assert few.low < many.low < many.value == few.value < many.high < few.high


def test_rank_correlation_by_hand() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1.0)
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1.0)
    # ranks 1.5, 1.5, 3, 4 and 1, 2, 3.5, 3.5: covariance 4.25, sizes sqrt(4.5) each
    assert rank_correlation([1, 1, 2, 3], [1, 2, 3, 3]) == pytest.approx(4.0 / 4.5)
    assert rank_correlation([1, 1, 1], [1, 2, 3]) is None
