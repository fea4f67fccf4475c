"""WorkflowStatistics: counts over live steps, roles by both rules, patterns and diversity."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wfdsl.evaluation.workflow_statistics import entropy_bits, roles_of, statistics_of
from wfdsl.language.tree import Access
from wfdsl.language.workflow import Step, Workflow
from wfdsl.testing import workflows


def flow(*steps: tuple[int, Access]) -> Workflow:
    return Workflow(tuple(Step(worker, "Solve it.", access) for worker, access in steps))


SINGLE = flow((0, ()))
CHECKED = flow((0, ()), (1, (0,)))
REFLECTED = flow((0, ()), (0, (0,)))
VOTED = flow((0, ()), (1, ()), (2, "all"))
PLANNED = flow((0, ()), (1, (0,)), (2, (0,)), (0, "all"))
DEAD = flow((2, ()), (0, ()), (1, (1,)))


def test_only_live_steps_count() -> None:
    found = statistics_of([DEAD])

    assert found.steps == {2: 1}
    assert found.workers == {"worker 0": 1, "worker 1": 1}
    assert found.topologies == {"chain": 1}
    assert found.patterns == {"worker 0, worker 1(all)": 1}


def test_a_computed_step_is_in_the_shape_but_nobody_is_asked() -> None:
    found = statistics_of([flow((0, ()), (0, ()), (-2, "all"))])

    assert (found.steps, found.workers, found.topologies) == ({2: 1}, {"worker 0": 2}, {"best-of-n": 1})
    assert list(found.patterns) == ["worker 0, worker 0, computed(all)"]


def test_workers_are_called_by_their_names() -> None:
    found = statistics_of([VOTED, SINGLE], names={0: "ann", 1: "bob", 2: "cy"})

    assert found.workers == {"ann": 2, "bob": 1, "cy": 1}
    assert found.worker_share() == {"ann": 0.5, "bob": 0.25, "cy": 0.25}


@pytest.mark.parametrize(
    ("workflow", "expected"),
    [
        (SINGLE, {}),
        (CHECKED, {1: "verifier"}),
        (REFLECTED, {1: "refiner"}),
        (VOTED, {2: "aggregator"}),
        (PLANNED, {0: "planner", 3: "aggregator"}),
        (DEAD, {2: "verifier"}),
        (
            flow((0, ()), (1, ()), (0, "all"), (1, (0, 1)), (2, "all")),
            {2: "aggregator", 3: "aggregator", 4: "aggregator"},
        ),
    ],
)
def test_roles_by_structure_follow_the_published_rules(workflow: Workflow, expected: dict[int, str]) -> None:
    assert roles_of(workflow) == expected


def test_patterns_come_by_frequency_and_then_by_first_appearance() -> None:
    found = statistics_of([SINGLE, CHECKED, REFLECTED, CHECKED, flow((1, ()))])

    assert list(found.patterns.items()) == [
        ("worker 0, worker 1(all)", 2),
        ("worker 0", 1),
        ("worker 0, worker 0(all)", 1),
        ("worker 1", 1),
    ]


def test_diversity_is_the_entropy_in_bits() -> None:
    assert statistics_of([SINGLE] * 4).pattern_bits == 0.0
    assert statistics_of([SINGLE, CHECKED, VOTED, PLANNED]).pattern_bits == pytest.approx(2.0)
    assert entropy_bits({"a": 1, "b": 3}) == pytest.approx(0.8112781)


@settings(max_examples=25)
@given(st.lists(workflows(), max_size=4))
def test_counts_add_up(drawn: list[Any]) -> None:
    found = statistics_of(drawn)

    assert sum(found.steps.values()) == sum(found.topologies.values()) == found.workflows == len(drawn)
    assert sum(found.workers.values()) == pytest.approx(found.mean_steps * len(drawn))
    assert found.distinct <= len(drawn)
    assert found.pattern_bits >= 0
