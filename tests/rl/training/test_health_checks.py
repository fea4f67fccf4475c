"""When a training warns: once, after a sign has lasted, and with the reason why outcomes are missing."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers", reason="needs transformers, in the extra rl")

from wfdsl.language.workflow import Step, Workflow
from wfdsl_rl.scoring import Scored
from wfdsl_rl.training.health import HealthChecks
from wfdsl_rl.training.samples import Sample


def batch(valid: int, *, split: str = "train", problem: str = "") -> list[Sample]:
    """Twenty completions, so many of them valid; the last has no outcome if there is a problem."""
    judged = [
        Scored("right", Workflow((Step(number % 3, f"Do {number}.", ()),))) if number < valid else Scored("invalid")
        for number in range(20)
    ]
    if problem:
        judged[-1] = Scored("failed", problems=(problem,))
    return [Sample(4, {"split": split, "row": number}, 0, "text", each, 1.0) for number, each in enumerate(judged)]


def test_a_sign_is_told_once_and_only_after_it_has_lasted() -> None:
    said: list[str] = []
    warnings = HealthChecks(said.append)

    for _ in range(9):
        warnings.on_samples(batch(5))
    before = list(said)
    for _ in range(9):
        warnings.on_samples(batch(5))

    assert before == []
    assert len(said) == 1
    assert said[0].startswith("warning: for 10 iterations: fewer than half of the completions are valid")


def test_a_sign_that_goes_away_is_forgotten() -> None:
    said: list[str] = []
    warnings = HealthChecks(said.append)

    for _ in range(3):
        for valid in (*[5] * 9, 20):
            warnings.on_samples(batch(valid))

    assert said == []


def test_valid_completions_that_become_fewer_are_told() -> None:
    said: list[str] = []
    warnings = HealthChecks(said.append)

    for valid in (*[19] * 10, *[14] * 10):
        warnings.on_samples(batch(valid))

    assert len(said) == 1
    assert "has fallen by more than a tenth" in said[0]


def test_numbers_that_were_logged_are_looked_at_with_the_next_batch() -> None:
    said: list[str] = []
    warnings = HealthChecks(said.append)

    for _ in range(10):
        warnings.on_metrics({"reward": 0.5, "entropy": 0.001})
        warnings.on_metrics({"eval_reward": 0.5})
        warnings.on_samples(batch(20))

    assert len(said) == 1
    assert "entropy is nearly 0" in said[0]


def test_an_evaluation_is_not_watched_but_for_its_missing_outcomes() -> None:
    said: list[str] = []
    warnings = HealthChecks(said.append)

    for _ in range(10):
        warnings.on_samples(batch(2, split="eval", problem="the line is dead"))

    assert said == ["warning: step 4: 1 of 20 completions have no score and are left out, such as: the line is dead"]


def test_no_more_than_five_reasons_are_told() -> None:
    said: list[str] = []
    warnings = HealthChecks(said.append)

    for number in range(8):
        warnings.on_samples(batch(20, problem=f"reason {number}"))

    assert [line.rpartition(" ")[2] for line in said] == ["0", "1", "2", "3", "4"]
