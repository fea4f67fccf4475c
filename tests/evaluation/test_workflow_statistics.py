"""What workflows look like, and each of the four signatures of failure in cases that have it and that do not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.toys import evaluation, pool_of, trials_of
from wfdsl.conductor.conductor import Conductor
from wfdsl.evaluation.workflow_statistics import Case, entropy_bits, roles_of, signatures_of, statistics_of
from wfdsl.language.tree import Access
from wfdsl.language.workflow import Step, Workflow
from wfdsl.testing import workflows
from wfdsl.workers.scripted import ScriptedWorker


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


def test_workers_have_names_and_a_computed_step_has_a_shape_and_no_worker() -> None:
    found = statistics_of([flow((0, ()), (0, ()), (-2, "all"))])

    assert (found.steps, found.workers, found.topologies) == ({2: 1}, {"worker 0": 2}, {"best-of-n": 1})
    assert list(found.patterns) == ["worker 0, worker 0, computed(all)"]
    called = statistics_of([VOTED, SINGLE], names={0: "ann", 1: "bob", 2: "cy"})
    assert called.workers == {"ann": 2, "bob": 1, "cy": 1}
    assert called.worker_share() == {"ann": 0.5, "bob": 0.25, "cy": 0.25}


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


def cases(count: int, kind: str, worker: int, right: float, **more: Any) -> list[Case]:
    flow = Workflow((Step(worker, "Solve."),))
    given = {"kind": kind, "workflow": flow, "completions": 1, **more}
    return [Case(right=float(number < right * count), **given) for number in range(count)]


GOOD = [*cases(20, "math", 0, 0.9), *cases(20, "text", 1, 0.9)]


def test_a_conductor_that_does_well_and_a_fixed_workflow_have_no_warning() -> None:
    found = signatures_of(GOOD, names={0: "ann", 1: "bob"})

    assert found.warnings == {}
    assert (found.valid, found.mismatch, found.unchanged) == (1.0, 0.0, None)
    assert found.share == {"math": {"ann": 1.0}, "text": {"bob": 1.0}}
    assert found.entropy_bits == {"math": 0.0, "text": 0.0}
    fixed = signatures_of(cases(40, "math", 0, 0.1, completions=0))
    assert (fixed.valid, fixed.warnings) == (None, {})


@pytest.mark.parametrize(
    ("what", "found"),
    [
        ("form", [*GOOD, *[Case(kind="math", completions=1, invalid=1)] * 5]),
        ("mismatch", [*GOOD, *cases(30, "math", 1, 0.2)]),
        ("reliance", [*cases(20, "math", 0, 0.5), *cases(20, "text", 0, 0.5)]),
        ("loops", [*cases(20, "math", 0, 0.9, later=2, unchanged=2), *GOOD]),
    ],
)
def test_each_signature_is_warned_of(what: str, found: list[Case]) -> None:
    assert set(signatures_of(found).warnings) == {what}


def test_accuracy_is_lost_to_each_worker_that_is_not_the_kinds_best() -> None:
    found = signatures_of([*cases(10, "math", 0, 0.9), *cases(30, "math", 1, 0.2), *cases(2, "math", 2, 1.0)])

    assert found.lost == {"math": pytest.approx({"worker 0": 0.0, "worker 1": 30 / 42 * 0.7, "worker 2": 0.0})}
    assert found.mismatch == pytest.approx(0.5)


async def test_a_trial_says_what_was_invalid_and_which_rounds_changed_nothing() -> None:
    flow = 'model_id = [0]\nsubtasks = ["Solve."]\naccess_list = [[]]'
    keep = "model_id = []\nsubtasks = []\naccess_list = []"
    writers = {
        "loops": Conductor(ScriptedWorker([flow], repeat=True), max_rounds=2),
        "keeps": Conductor(ScriptedWorker(["nothing", flow, keep], repeat=True), max_rounds=2),
    }
    pool, _ = pool_of(["42"])

    found, _ = await trials_of(evaluation(pool, count=1, policies=writers))

    seen = {each.policy: (each.completions, each.invalid, each.kept, each.unchanged) for each in found}
    assert seen == {"loops": (3, 0, 0, 2), "keeps": (3, 1, 1, 0)}
