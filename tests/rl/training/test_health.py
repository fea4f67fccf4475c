"""What a training warns of: a problem is seen where it is, and not where it is not; once, and after it has lasted."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from wfdsl.interpreter.record import Run, StepRecord
from wfdsl.language.workflow import Step, Workflow
from wfdsl.tasks.task import Task
from wfdsl_rl.scoring import Rollout, Sample, Scored
from wfdsl_rl.training.samples import HealthChecks, case_of, figures_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wfdsl_rl.scoring import Outcome

QUESTION = "A train leaves Bern at nine and takes two hours. When does it come to Zurich?"


def sample(
    number: int,
    *,
    outcome: Outcome = "right",
    problem: str = "",
    subtask: str = "Solve it.",
    answer: str = "At eleven.",
    worker: int | None = None,
    row: int | None = None,
    step: int = 3,
) -> Sample:
    asked = number % 3 if worker is None else worker
    workflow = Workflow(tuple(Step(asked, subtask, ()) for _ in range(1 + number % 4)))
    run = Run("r", workflow, QUESTION, (StepRecord(0, 0, response=answer),), "done", 0.0, 1.0)
    ran: dict[str, Any] = {} if outcome in ("invalid", "failed") else {"workflow": workflow, "run": run}
    judged = Scored(outcome, **ran, problems=(problem,) if problem else (), score=float(number % 2))
    group = number // 4 if row is None else row
    kind = ("math", "text")[group % 2]
    about = {"split": "train", "row": group, "task": f"t{group}", "kind": kind, "previous": None}
    rollout = Rollout(completion="text", task=Task(id="t", question=QUESTION, gold="11"), sample_id="s")
    return Sample(step, about, rollout, judged)


def batch(change: Callable[[int], Any] = lambda number: {}, **same: Any) -> list[Sample]:
    return [sample(number, **same, **change(number)) for number in range(40)]


def first(count: int, **change: Any) -> Callable[[int], Any]:
    """A change of the first completions of a batch."""
    return lambda number: change if number < count else {}


def figures(samples: list[Sample]) -> dict[str, float]:
    return figures_of(samples, [case_of(each.to_dict()) for each in samples])


def told(batches: Iterable[list[Sample]]) -> list[str]:
    """What is said of a training of these batches."""
    said: list[str] = []
    checks = HealthChecks(said.append)
    for each in batches:
        checks(each)
    return said


@pytest.mark.parametrize(("iterations", "count"), [(4, 0), (5, 1), (25, 1)])
def test_a_failure_is_told_once_and_only_of_five_iterations(iterations: int, count: int) -> None:
    bad = batch(lambda number: {"outcome": "invalid" if number % 4 else "right"})

    assert len(told([bad] * iterations)) == count
    assert told([batch()] * iterations) == []


def test_a_reason_for_missing_scores_is_told_once() -> None:
    said = told(batch(first(1, outcome="failed", problem=reason)) for reason in ("down", "down", "slow"))

    assert ["down" in line for line in said] == [True, False]


def recorded(name: str) -> list[list[Sample]]:
    """The choices of a training on the gym by iteration, a fourth of them."""
    lines = (Path(__file__).parent / "recorded" / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [
        [
            sample(0, worker=int(worker), row=kind, step=step)
            for kind, own in enumerate(json.loads(line)["choices"].values())
            for worker, count in own.items()
            for _ in range(count // 4)
        ]
        for step, line in enumerate(lines)
    ]


@pytest.mark.parametrize("name", ["collapse-34-iterations", "collapse-30-iterations"])
def test_a_collapse_that_has_happened_is_told_within_ten_iterations(name: str) -> None:
    """Trainings in which one worker got nearly all calls of every kind: at a high learning rate, without a KL term."""
    iterations = recorded(name)
    asked = [[each.scored.workflow for each in own] for own in iterations]
    calls = [Counter(step.worker for each in own if each for step in each.steps) for own in asked]
    begun = next(at for at, each in enumerate(calls) if max(each.values()) >= 0.9 * each.total())

    assert told(iterations[:begun]) == []
    assert len(told(iterations[: begun + 10])) == 1


def test_a_training_that_did_not_collapse_is_not_warned_of() -> None:
    assert told(recorded("no-collapse")) == []


def test_a_worker_that_does_not_fit_is_told_of_once_it_has_lasted() -> None:
    said = told(batch(lambda n: {"outcome": "wrong"} if n % 16 else {"worker": 3}, step=at) for at in range(25))

    assert sum("worker 3" in line for line in said) == 1


def test_figures_of_an_iteration_are_by_kind_of_question() -> None:
    assert figures(batch(lambda number: {"worker": number // 4 % 2 * 2})) == {
        "constant_groups": 0.0,
        "choice_entropy": 1.0,
        "worker_mismatch": 0.0,
        "reward/math": 0.5,
        "reward/text": 0.5,
        "choice_entropy/math": 0.0,
        "choice_entropy/text": 0.0,
        "share/math/0": 1.0,
        "share/text/2": 1.0,
    }
