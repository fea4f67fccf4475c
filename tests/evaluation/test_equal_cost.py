"""Accuracy at equal cost: rivals and mixtures, the frontier, intervals, and the table, against values by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.toys import trial
from wfdsl.errors import UsageError
from wfdsl.evaluation.equal_cost import EVERYONE, Standing, equal_cost_table, standings_in
from wfdsl.evaluation.fit_costs import FitCost
from wfdsl.evaluation.report import Report
from wfdsl.evaluation.statistics import interval_of, rank_correlation


def standings(costs: dict[str, float], right: dict[str, int], tasks: int = 10, **more: Any) -> dict[str, Standing]:
    """Policies that are right on the first tasks, as many as `right` says."""
    trials = [
        trial(policy, f"t{at}", "right" if at < right[policy] else "wrong", list_usd=costs[policy])
        for policy in costs
        for at in range(tasks)
    ]
    report = Report(Path(), {"policies": dict.fromkeys(costs)}, tuple(trials), more.get("learned", {}))
    return {each.policy: each for each in standings_in([report], among=more.get("among", EVERYONE))}


def test_the_rival_is_the_best_that_costs_no_more() -> None:
    found = standings(
        {"cheap": 1.0, "good": 2.0, "mine": 2.0, "dear": 9.0}, {"cheap": 5, "good": 6, "mine": 8, "dear": 8}
    )

    rival = found["mine"].rival
    assert rival is not None
    assert str(rival) == "good"
    assert rival.difference.value == pytest.approx(0.2)


def test_a_mixture_of_a_cheaper_and_a_dearer_policy_is_a_rival() -> None:
    found = standings({"cheap": 1.0, "mine": 3.0, "dear": 5.0}, {"cheap": 4, "mine": 5, "dear": 9})

    rival = found["mine"].rival
    assert rival is not None
    assert str(rival) == "50% cheap, 50% dear"
    # mine - (cheap + dear) / 2 is 0 on the first 4 tasks, 1/2 on the fifth, -1/2 on four, and 0 on the last
    values = [0.0] * 4 + [0.5] + [-0.5] * 4 + [0.0]
    assert rival.difference == pytest.approx(interval_of(values))
    assert rival.difference.value == pytest.approx(-0.15)


def test_the_cheapest_has_no_rival_and_the_order_is_that_of_costs() -> None:
    found = standings({"b": 2.0, "a": 1.0}, {"b": 5, "a": 5})

    assert list(found) == ["a", "b"]
    assert found["a"].rival is None
    assert [each.efficient for each in found.values()] == [True, False]


def test_rivals_are_those_that_are_named_mixtures_included() -> None:
    costs = {"worker:a": 1.0, "worker:b": 5.0, "moa": 2.0, "mine": 3.0, "mine@low": 2.5}
    right = {"worker:a": 4, "worker:b": 9, "moa": 9, "mine": 8, "mine@low": 8}

    found = standings(costs, right, among=("worker:*",))
    two = standings(costs, right, among=("worker:a", "mo?"))

    assert [str(each.rival) for each in found.values()] == [
        "None",  # worker:a
        "75% worker:a, 25% worker:b",
        "62% worker:a, 38% worker:b",
        "50% worker:a, 50% worker:b",
        "worker:a",
    ]
    assert [str(two[name].rival) for name in ("mine", "moa")] == ["moa", "worker:a"]
    assert {name: each.efficient for name, each in found.items()} == {
        name: each.efficient for name, each in standings(costs, right).items()
    }


def test_a_pattern_without_a_policy_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no evaluation has the policy 'worker:\*'; they have moa, debate"):
        standings({"moa": 1.0, "debate": 2.0}, {"moa": 1, "debate": 1}, among=("moa", "worker:*"))


def test_policies_that_share_no_judged_task_cannot_be_compared() -> None:
    report = Report(Path(), {"policies": {"a": 0, "b": 0}}, (trial("a", "t1"), trial("b", "t2")), {})

    with pytest.raises(UsageError):
        standings_in([report])


def test_the_table_has_intervals_and_what_was_learned_from() -> None:
    found = standings({"a": 1.0, "b": 2.0}, {"a": 5, "b": 8}, learned={"b": FitCost(1200, 9, 34.5)})

    head, rows = equal_cost_table(list(found.values()))

    assert head[:3] == ["policy", "accuracy", "calls"]
    assert rows[0] == ["a", "50.0 ± 32.7", "1.00", "$1.00", "-", "-", "yes", "-", "-"]
    assert rows[1][4:] == ["1,200 calls", "$34.50", "yes", "+30.0 (-8.7 to +58.7)", "a"]


@given(st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(1, 5), st.integers(0, 8)), min_size=2))
def test_no_policy_on_the_frontier_is_beaten(given_: dict[str, tuple[int, int]]) -> None:
    costs = {name: float(cost) for name, (cost, _) in given_.items()}
    found = standings(costs, {name: right for name, (_, right) in given_.items()}, tasks=8)

    for each in found.values():
        better = [
            other
            for other in found.values()
            if (other.cost <= each.cost and other.accuracy.value > each.accuracy.value)
            or (other.cost < each.cost and other.accuracy.value == each.accuracy.value)
        ]
        assert each.efficient == (not better)


def test_rank_correlation_by_hand() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1.0)
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1.0)
    # ranks 1.5, 1.5, 3, 4 and 1, 2, 3.5, 3.5: covariance 4.25, sizes sqrt(4.5) each
    assert rank_correlation([1, 1, 2, 3], [1, 2, 3, 3]) == pytest.approx(4.0 / 4.5)
    assert rank_correlation([1, 1, 1], [1, 2, 3]) is None


def test_an_interval_is_wider_where_less_is_known() -> None:
    same, few, many = interval_of([0.0] * 30), interval_of([1.0, 0.0, 0.0] * 2), interval_of([1.0, 0.0, 0.0] * 200)

    assert (same.low, same.high) == pytest.approx((-0.0866, 0.0866), abs=1e-4)  # 1.96 * sqrt(2) / 32
    assert few.low < many.low < many.value == few.value < many.high < few.high
