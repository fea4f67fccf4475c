"""Accuracy at equal cost against values by hand, and what a choice would give in worlds whose best one is known."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.toys import trial
from wfdsl.errors import UsageError
from wfdsl.evaluation.equal_cost import EVERYONE, Room, Standing, equal_cost_table, room_among, room_table, standings_in
from wfdsl.evaluation.manifest import FitCost
from wfdsl.evaluation.report import Report
from wfdsl.evaluation.statistics import TWO_SIDED, interval_of
from wfdsl.evaluation.trials import Trial


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
    equal = standings({"b": 2.0, "a": 1.0, "c": 3.0, "mine": 4.0}, {"b": 5, "a": 5, "c": 5, "mine": 8})
    assert str(equal["mine"].rival) == "a"  # of equally good ones the cheapest


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


def test_what_cannot_be_compared_is_refused() -> None:
    apart = trial("a", "t1"), trial("b", "t2")
    report = Report(Path(), {"policies": {"a": 0, "b": 0}}, apart, {})

    with pytest.raises(UsageError, match=r"no evaluation has the policy 'worker:\*'; they have moa, debate"):
        standings({"moa": 1.0, "debate": 2.0}, {"moa": 1, "debate": 1}, among=("moa", "worker:*"))
    with pytest.raises(UsageError):
        standings_in([report])
    with pytest.raises(UsageError):
        room_among(apart, ["a", "b"])
    with pytest.raises(UsageError):
        room_among(drawn(SPECIALISTS, 0, 4), ["all"])


def test_the_table_has_intervals_and_what_was_learned_from() -> None:
    found = standings({"a": 1.0, "b": 2.0}, {"a": 5, "b": 8}, learned={"b": FitCost(1200, 9, 34.5)})

    head, rows = equal_cost_table(list(found.values()))

    assert head[:3] == ["policy", "accuracy", "calls"]
    assert rows[0] == ["a", "50.0 ± 32.7", "1.00", "$1.00", "-", "-", "yes", "-", "-"]
    assert rows[1][4:] == ["1,200 calls", "$34.50", "yes", "+30.0 (-8.7 to +58.7)", "a"]


@settings(max_examples=40)
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


SPECIALISTS = {"all": (0.5, 0.5), "left": (0.8, 0.2), "right": (0.2, 0.8)}
EQUALS = {"one": (0.6, 0.6), "two": (0.6, 0.6), "three": (0.6, 0.6)}


def drawn(chances: dict[str, tuple[float, float]], seed: int, tasks: int) -> list[Trial]:
    """Results of policies on tasks of two domains, twice each, by the chance that each is right in each."""
    chance = random.Random(seed)
    return [
        trial(
            policy,
            f"t{task}",
            "right" if chance.random() < shares[task % 2] else "wrong",
            repeat=repeat,
            domain=("left", "right")[task % 2],
        )
        for task in range(tasks)
        for repeat in range(2)
        for policy, shares in chances.items()
    ]


def room_of(chances: dict[str, tuple[float, float]], seed: int, tasks: int) -> Room:
    return room_among(drawn(chances, seed, tasks), list(chances))


def test_the_interval_holds_what_the_best_choice_reaches() -> None:
    found = [room_of(SPECIALISTS, seed, 200) for seed in range(20)]

    accuracies = [each.choice.accuracy for each in found]
    assert sum(abs(value - 0.8) <= TWO_SIDED * (error or 0.0) for value, error in accuracies) >= 18
    assert {each.verdict for each in found} == {"room"}
    assert (found[0].tasks, found[0].choice.calls) == (200, 1.0)
    head, [row] = room_table({"the workers": found[0]})
    assert (row[0], dict(zip(head, row, strict=True))["room"]) == ("the workers", "yes")


@pytest.mark.parametrize(("tasks", "verdict"), [(3000, "no room"), (20, "not known")])
def test_equal_policies_leave_no_room_and_few_tasks_leave_it_open(tasks: int, verdict: str) -> None:
    assert room_of(EQUALS, 0, tasks).verdict == verdict


def test_repeats_tell_questions_apart_where_domains_do_not() -> None:
    chance = random.Random(1)
    sides = [chance.random() < 0.5 for _ in range(200)]
    trials = [
        trial(policy, f"t{task}", "right" if (policy == "left") == side else "wrong", repeat=repeat)
        for task, side in enumerate(sides)
        for repeat in range(2)
        for policy in ("left", "right")
    ]

    assert room_among(trials, ["left", "right"]).choice.accuracy.value > 0.9


def test_a_choice_that_costs_less_than_every_policy_has_the_cheapest_as_its_rival() -> None:
    trials = [
        trial(
            policy,
            f"t{task}",
            "right" if at == task % 2 else "wrong",
            list_usd=1 + 8 * (at != task % 2),
            domain=str(task % 2),
        )
        for task in range(40)
        for at, policy in enumerate("ab")
    ]

    rival = room_among(trials, ["a", "b"]).choice.rival

    assert rival is not None
    assert rival.difference.value == 0.5
