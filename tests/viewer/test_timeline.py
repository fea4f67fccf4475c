"""Bars over time: waits and failed calls in their own colour, long gaps squeezed, completions before their steps."""

from __future__ import annotations

import pytest

import wfdsl
from wfdsl.interpreter.journal import Attempt
from wfdsl.interpreter.record import Run, StepRecord
from wfdsl.protocols import RunStatus
from wfdsl.viewer.timeline import timeline_of

WORKFLOW = wfdsl.Workflow.from_lists([0, 0], ["a", "b"], [[], [0]])


def run_of(*steps: StepRecord, status: RunStatus = "done", finished: float | None = None) -> Run:
    return Run("r", WORKFLOW, "q", steps, status, 0.0, finished)


def step(index: int, start: float | None, end: float | None, **more: object) -> StepRecord:
    return StepRecord(index, 0, "w", status="done", started=start, finished=end, **more)  # type: ignore[arg-type]


def attempt(index: int, status: str, start: float, end: float | None) -> Attempt:
    return Attempt((index,), "w", status, start, end, "")


def test_waits_and_failed_calls_are_parts_of_a_bar() -> None:
    run = run_of(step(0, 0.0, 10.0), step(1, 10.0, 20.0), finished=20.0)
    calls = [attempt(0, "failed", 2.0, 4.0), attempt(0, "finished", 5.0, 10.0), attempt(1, "finished", 10.0, 20.0)]

    _, first, second = timeline_of(run, calls, 5.0).rows

    assert [(part.kind, part.x, part.width) for part in first.parts] == [
        ("wait", 0.0, 10.0),
        ("retry", 10.0, 10.0),
        ("wait", 20.0, 5.0),
        ("work", 25.0, 25.0),
    ]
    assert [(part.kind, part.x, part.width) for part in second.parts] == [("work", 50.0, 50.0)]
    assert first.words == "waited 2.0 s, failed after 2.0 s, waited 1.0 s, worked 5.0 s"


def test_a_long_time_without_any_event_is_not_drawn_to_scale() -> None:
    run = run_of(step(0, 0.0, 10.0), step(1, 86_400.0, 86_410.0), finished=86_410.0)
    calls = [attempt(0, "finished", 0.0, 10.0), attempt(1, "finished", 86_400.0, 86_410.0)]

    timeline = timeline_of(run, calls, 0.0)

    assert [gap.text for gap in timeline.gaps] == ["1439 min 50 s"]
    assert [part.width for row in timeline.rows[1:] for part in row.parts] == pytest.approx([48.5, 48.5])
    assert timeline.gaps[0].x == pytest.approx(48.5)


def test_a_call_in_flight_runs_until_now_and_one_whose_result_is_lost_is_marked() -> None:
    run = run_of(step(0, 0.0, None), step(1, None, None), status="running")
    lost, flying = attempt(0, "lost", 0.0, 5.0), attempt(0, "started", 5.0, None)

    (_, first, _) = timeline_of(run, [lost, flying], 10.0).rows

    assert [part.kind for part in first.parts] == ["lost", "running"]
    assert first.parts[1].width == pytest.approx(50.0)
    assert first.words == "result not known after 5.0 s, running for 5.0 s"


@pytest.mark.parametrize(
    ("second", "calls", "kinds", "words"),
    [
        (step(1, 0.0, 5.0), [attempt(1, "finished", 0.0, 5.0)], ["lost", "work"], "result not known after 5.0 s"),
        (step(1, None, None), [], ["lost"], "result not known"),
    ],
)
def test_a_call_in_flight_when_its_process_died_is_lost_and_ends_with_the_run(
    second: StepRecord, calls: list[Attempt], kinds: list[str], words: str
) -> None:
    run = run_of(step(0, 0.0, None), second, status="stopped")

    _, *rows = timeline_of(run, [attempt(0, "started", 0.0, None), *calls], 86_400.0).rows

    assert [part.kind for row in rows for part in row.parts] == kinds
    assert rows[0].words == words


def test_the_time_is_that_of_the_run_and_what_lies_between_calls_is_part_of_it() -> None:
    run = run_of(step(0, 10.0, 20.0), step(1, 25.0, 40.0), finished=50.0)
    calls = [attempt(0, "finished", 10.0, 20.0), attempt(1, "finished", 25.0, 40.0)]

    timeline = timeline_of(run, calls, 50.0)

    assert (timeline.seconds, timeline.between) == (run.seconds, 25.0)
    assert next((part.kind, part.x) for part in timeline.rows[0].parts) == ("between", 0.0)
