"""Signs that a training goes wrong: each is seen where it is, and not where it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl.interpreter.record import Run, StepRecord
from wfdsl.language.workflow import Step, Workflow
from wfdsl_rl.scoring import Scored
from wfdsl_rl.training.health import warnings_for
from wfdsl_rl.training.samples import Sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from wfdsl_rl.scoring import Outcome

QUESTION = "A train leaves Bern at nine and takes two hours. When does it come to Zurich?"


def sample(
    number: int, *, outcome: Outcome = "right", subtask: str = "Solve it.", answer: str = "At eleven."
) -> Sample:
    workflow = Workflow(tuple(Step(number % 3, subtask, ()) for _ in range(1 + number % 4)))
    run = Run("r", workflow, QUESTION, (StepRecord(0, 0, response=answer),), "done", 0.0, 1.0)
    judged = Scored(outcome) if outcome == "invalid" else Scored(outcome, workflow, run)
    return Sample(3, {"split": "train", "row": number}, 0, "text", judged, 1.0)


def batch(change: Callable[[int], Any] = lambda number: {}) -> list[Sample]:
    return [sample(number, **change(number)) for number in range(40)]


def test_a_training_that_goes_well_shows_no_sign() -> None:
    entry = {"frac_reward_zero_std": 0.5, "entropy": 0.4, "reward": 0.7}

    assert warnings_for(entry, batch(), best_valid=1.0) == []


def test_numbers_that_were_not_measured_are_no_sign() -> None:
    assert warnings_for({"frac_reward_zero_std": None, "entropy": None}, batch()) == []


@pytest.mark.parametrize(
    ("entry", "sign"),
    [({"frac_reward_zero_std": 0.9}, "most groups have equal rewards"), ({"entropy": 0.001}, "entropy is nearly 0")],
)
def test_numbers_show_that_nothing_is_learned(entry: dict[str, float], sign: str) -> None:
    (found,) = warnings_for(entry, batch())

    assert sign in found


@pytest.mark.parametrize(
    ("change", "sign"),
    [
        (
            lambda number: {"outcome": "invalid" if number % 4 else "right"},
            "fewer than half of the completions are valid",
        ),
        (lambda number: {"outcome": "invalid" if number % 4 == 0 else "right"}, "has fallen by more than a tenth"),
        (
            lambda number: {"outcome": "failed" if number % 3 == 0 else "right"},
            "more than a quarter of the completions",
        ),
        (lambda number: {"subtask": " " if number % 3 == 0 else "Solve it."}, "subtasks are empty"),
        (lambda number: {"answer": "leaves  Bern at\nnine"}, "answers are copied from the question"),
    ],
)
def test_what_completions_look_like_shows_what_goes_wrong(change: Callable[[int], Any], sign: str) -> None:
    (found,) = warnings_for({}, batch(change), best_valid=0.95)

    assert sign in found


def test_a_share_of_valid_completions_that_was_never_higher_has_not_fallen() -> None:
    assert (
        warnings_for({}, batch(lambda number: {"outcome": "invalid" if number % 4 == 0 else "right"}), best_valid=0.8)
        == []
    )


def test_one_constant_workflow_is_seen_but_a_few_different_ones_are_not() -> None:
    same = [replace(each, scored=sample(0).scored) for each in batch()]

    (found,) = warnings_for({}, same)

    assert "the same workflow" in found
    assert warnings_for({}, [*same[:36], *batch()[1:5]]) == []


def test_a_short_answer_may_stand_in_its_question() -> None:
    assert warnings_for({}, batch(lambda number: {"answer": "nine"})) == []
