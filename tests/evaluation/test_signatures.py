"""How Conductors fail: each of the four signatures in cases that have it, and in cases that do not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evaluation.toys import evaluation, pool_of, trials_of
from wfdsl.conductor.conductor import Conductor
from wfdsl.evaluation.signatures import Case, signatures_of
from wfdsl.language.workflow import Step, Workflow
from wfdsl.workers.scripted import ScriptedWorker


def cases(count: int, kind: str, worker: int, right: float, **more: Any) -> list[Case]:
    flow = Workflow((Step(worker, "Solve."),))
    given = {"kind": kind, "workflow": flow, "completions": 1, **more}
    return [Case(right=float(number < right * count), **given) for number in range(count)]


GOOD = [*cases(20, "math", 0, 0.9), *cases(20, "text", 1, 0.9)]


def test_a_conductor_that_does_well_has_no_warning() -> None:
    found = signatures_of(GOOD, names={0: "ann", 1: "bob"})

    assert found.warnings == {}
    assert (found.valid, found.mismatch, found.unchanged) == (1.0, 0.0, None)
    assert found.share == {"math": {"ann": 1.0}, "text": {"bob": 1.0}}
    assert found.entropy_bits == {"math": 0.0, "text": 0.0}


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


def test_a_fixed_workflow_has_numbers_and_no_warning() -> None:
    found = signatures_of(cases(40, "math", 0, 0.1, completions=0))

    assert (found.valid, found.warnings) == (None, {})


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
