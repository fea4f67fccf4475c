"""Pictures of runs: every round and nested run in every format, copies on one card, failures with their reasons."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from wfdsl import Solution, to_mermaid, to_svg, to_terminal
from wfdsl.conductor.policy import ROOT, ROOT_WORKFLOW
from wfdsl.conductor.round_log import KEY, Completion, RoundLog
from wfdsl.interpreter.record import Run, StepRecord
from wfdsl.language.workflow import Step, Workflow
from wfdsl.render.model import draw
from wfdsl.render.pictures import to_html

FORMATS: dict[str, Any] = {
    "terminal": lambda value, **options: str(to_terminal(value, **options)),
    "svg": to_svg,
    "mermaid": to_mermaid,
    "html": to_html,
}
REASON = "the server at 10.0.0.1 sent HTTP 503: " + "overloaded, try again in a moment; " * 4 + "request 77"


def log(number: int, result: Any = "ran") -> dict[str, Any]:
    return RoundLog(number, result, (Completion(f"written {number}", "valid"),), {}, ()).to_dict()


def record(step: int, worker: int, name: str, **more: Any) -> StepRecord:
    return StepRecord(step, worker, name, **{"response": f"reply {name}", "status": "done", **more})


def run_of(workflow: Workflow, steps: list[StepRecord], logs: Any = (), *, names: tuple[str, ...] | None = None) -> Run:
    status: Any = "failed" if any(step.status == "failed" for step in steps) else "done"
    return Run("r1", workflow, "Why?", tuple(steps), status, 1.0, 2.0, names=names, settings={KEY: logs})


def two_rounds() -> Run:
    """A Conductor that wrote a workflow, revised it, and then kept the answer."""
    first = run_of(Workflow((Step(0, "Guess it."),)), [record(0, 0, "ann")], [log(0)])
    second = run_of(
        Workflow((Step(1, "Work it out."), Step(2, "Check it.", (0,)))),
        [record(0, 1, "bob"), record(1, 2, "cy")],
        [log(1), log(2, "kept")],
    )
    return run_of(ROOT_WORKFLOW, [record(0, ROOT, "boss", nested=(first, second))], names=("conductor",))


def with_node() -> Run:
    """A workflow with a Conductor node, whose workflow failed."""
    inner = run_of(Workflow((Step(2, "Look it up."),)), [record(0, 2, "cy", status="failed", error=REASON)])
    workflow = Workflow((Step(0, "Plan."), Step(1, "Solve the hard part.", (0,)), Step(0, "Answer.", (1,))))
    node = record(1, 1, "boss", status="failed", error="its round 0 failed", nested=(inner,))
    steps = [record(0, 0, "ann"), node, record(2, 0, "ann", status="waiting", response=None)]
    return run_of(workflow, steps, names=("plan", "hard", "answer"))


@pytest.mark.parametrize("chosen", FORMATS)
def test_the_rounds_of_a_conductor_are_drawn_in_order(chosen: str) -> None:
    run = two_rounds()
    picture = FORMATS[chosen](run).replace("#58;", ":")

    assert FORMATS[chosen](Solution(run)) == FORMATS[chosen](run)
    places = [picture.index(text) for text in ("round 0: done", "Guess it.", "round 1: done", "Check it.", "round 2: ")]
    assert places == sorted(places)
    assert "kept" in picture[places[-1] :]
    assert {"ann", "bob", "cy"} <= {name for name in ("ann", "bob", "cy") if name in picture}
    assert "Answer the question." not in picture, "the root's only box says nothing"


@pytest.mark.parametrize("chosen", FORMATS)
def test_a_run_inside_a_node_is_drawn_with_the_node_and_says_why_it_failed(chosen: str) -> None:
    picture = FORMATS[chosen](with_node())

    assert "Look it up." in picture
    assert "its round 0 failed" in picture
    assert "77" in picture.split("Look it up.")[-1], "the whole reason, to its last word"
    assert "hard, round 0" in picture


COPIES = Workflow((Step(0, "Plan."), *(Step(1, "Try it.", (0,)) for _ in range(12)), Step(2, "Choose.", "all")))
NAMES = ("plan", *(f"attempt[{number}]" for number in range(12)), "answer")


def failed_copies() -> Run:
    def attempt(step: int) -> StepRecord:
        failed = {"status": "failed", "error": REASON, "response": None} if step in (4, 9) else {}
        return record(step, 1, "bob", list_usd=0.01, **failed)

    steps = [record(0, 0, "ann"), *map(attempt, range(1, 13)), record(13, 2, "cy", status="waiting", response=None)]
    return run_of(COPIES, steps, names=NAMES)


@pytest.mark.parametrize("chosen", ["terminal", "svg", "mermaid"])
def test_copies_share_a_card_that_says_how_many(chosen: str) -> None:
    stacked = FORMATS[chosen](COPIES, names=NAMES)
    apart = FORMATS[chosen](COPIES, names=NAMES, opened={1})

    assert "× 12" in stacked
    assert "attempt[" not in stacked.replace("#91;", "[")
    assert apart.replace("#91;", "[").count("attempt[") >= 12
    assert "× 12" not in apart


def test_forty_copies_are_three_cards_and_two_lines() -> None:
    workflow = Workflow((Step(0, "Plan."), *(Step(1, "Try it.", (0,)) for _ in range(40)), Step(2, "Choose.", "all")))

    root = ET.fromstring(to_svg(workflow))

    classes = [found.attrib.get("class", "") for found in root.iter()]
    assert sum(name.startswith("step") for name in classes) == 3
    assert classes.count("line") == 3, "one of them from the question"


def test_steps_with_other_neighbours_are_no_copies() -> None:
    tries = tuple(Step(1, "Try it.") for _ in range(4))
    workflow = Workflow((*tries, Step(2, "Choose among some.", (0, 1)), Step(2, "Choose.", "all")))

    assert [card.count for card in draw(workflow).cards] == [1] * len(workflow)
    assert draw(Workflow((*tries, Step(2, "Choose.", "all")))).cards[0].steps == (0, 1, 2, 3)


def test_the_card_of_copies_sums_up_what_happened_and_names_the_ones_that_failed() -> None:
    text = " ".join(str(to_terminal(failed_copies())).split())

    assert "1-12 attempt × 12 bob ← 0" in text
    assert "10 done, 2 failed · $0.10" in text
    assert "attempt[3], attempt[8]: the server" in text.replace(" │", "")


def test_a_failed_step_stands_out_and_its_reason_is_wrapped() -> None:
    root = ET.fromstring(to_svg(with_node()))

    bad = [found for found in root.iter() if "bad" in found.attrib.get("class", "").split()]
    lines = [text.text or "" for card in bad for text in card.iter() if "reason" in text.attrib.get("class", "")]
    assert len(bad) == 2
    assert " ".join(lines) == f"its round 0 failed {REASON}"
