"""What notebooks and the Python prompt show of values: pictures with their names, pages, tables, short lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.render.test_pictures_of_runs import two_rounds

import wfdsl
from wfdsl import Pool, Solution
from wfdsl.api import analyze_path

RELAY = 'wfdsl 1\ntitle "Relay"\nstep plan by 0: "Plan it."\nstep answer by 1 sees plan: "Do it."\n'


async def ann(messages: list[dict[str, Any]]) -> str:
    return "<b>42</b>"


@pytest.fixture
def relay(tmp_path: Path) -> Path:
    path = tmp_path / "relay.wf"
    path.write_text(RELAY)
    return path


def test_a_notebook_draws_a_workflow_without_an_import_of_pictures() -> None:
    code = (
        "from wfdsl.language.workflow import Step, Workflow; import sys\n"
        "workflow = Workflow((Step(0, 'Say it.'),))\n"
        "assert 'wfdsl.render.svg' not in sys.modules\n"
        "assert 'Say it.' in workflow._repr_svg_()"
    )

    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


def test_a_checked_text_is_drawn_with_title_and_names(relay: Path) -> None:
    picture = analyze_path(relay)._repr_svg_()

    assert picture is not None
    assert all(f">{text}</text>" in picture for text in ("Relay", "plan", "answer"))
    assert wfdsl.analyze("nothing")._repr_svg_() is None


def test_a_loaded_workflow_keeps_title_names_and_workers_for_its_picture(relay: Path) -> None:
    pool = Pool.from_functions([ann, ann], names=["ada", "bob"])
    workflow = wfdsl.load(relay, pool=pool)

    pictures = [workflow._repr_svg_() or "", wfdsl.to_svg(workflow), wfdsl.to_html(workflow)]

    for picture in pictures:
        assert all(f">{text}</text>" in picture for text in ("Relay", "plan", "answer", "ada", "bob"))
    assert "Relay\n" in str(wfdsl.to_terminal(workflow))
    assert workflow == wfdsl.Workflow.from_lists([0, 1], ["Plan it.", "Do it."], [[], [0]])
    assert hash(workflow) == hash(wfdsl.Workflow(workflow.steps))
    run = wfdsl.run_sync(workflow, "Why?", pool)
    assert run.names == ("plan", "answer")
    assert ">plan</text>" in wfdsl.to_svg(run)


def test_a_run_and_a_solution_show_picture_answer_and_steps() -> None:
    run = two_rounds()

    shown = run._repr_html_()

    assert shown is not None
    assert shown == Solution(run)._repr_html_()
    assert "<svg" in shown
    assert "<script" not in shown
    assert "reply boss" in shown
    assert "reply cy" in shown
    assert "id=" not in shown, "ids of two outputs would clash"


def test_values_are_one_short_line_at_the_prompt(relay: Path) -> None:
    run = two_rounds()
    values = [wfdsl.load(relay), analyze_path(relay), run, Solution(run), run.steps[0], Pool.from_functions([ann])]

    shown = [repr(value) for value in values]

    assert max(map(len, shown)) < 200
    assert shown[0] == "Workflow(2 steps by 0, 1)"
    assert shown[2] == "Run('r1', done, 1 step, answer='reply boss')"
    assert shown[3] == "Solution(answer='reply boss', 2 rounds, run='r1')"
    assert "\n" not in "".join(shown)
