"""The terminal drawing: fits any width, shows order, who sees whom, who works, and what is asked."""

import io
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text
from tests.render.drawn_workflows import DEAD, MIXED, ODD, ODD_OPTIONS, options, workflows

from wfdsl.language.workflow import Step, Workflow
from wfdsl.render.pictures import to_terminal
from wfdsl.render.status import StepStatus
from wfdsl.render.terminal import TerminalDrawing, lane_rows


def printed(drawing: TerminalDrawing, *, width: int = 80, colour: bool = False) -> str:
    file = io.StringIO()
    system: Literal["truecolor"] | None = "truecolor" if colour else None
    Console(file=file, width=width, color_system=system, force_terminal=colour, no_color=not colour).print(drawing)
    return file.getvalue()


def test_a_mixed_workflow_as_it_looks() -> None:
    assert printed(to_terminal(MIXED, title="Mixed"), width=64) == (
        "Mixed\n"
        "6 steps · general · depth 4 · width 2\n"
        "\n"
        "●     step 0  worker 0\n"
        "│     Make a plan.\n"
        "├─╮\n"
        "│ ●   step 1  worker 1  ← 0\n"
        "│ │   Solve it by algebra.\n"
        "│ │ ● step 2  worker 2\n"
        "│ │ │ Solve it by trying small cases.\n"
        "│ │ │\n"
        "● │ │ step 3  worker 3  ← 0\n"
        "│ │ │ Look for a counterexample.\n"
        "│ ├─╯\n"
        "│ ◆   step 4  worker 4  ← 1, 2  conductor, depth 2\n"
        "│ │   Compare both solutions.\n"
        "├─╯\n"
        "◉     step 5  best  ← all  answer\n"
        "      Give the answer.\n"
    )


def test_a_dead_step_is_hollow_and_its_lane_ends() -> None:
    assert printed(to_terminal(DEAD, names=["plan", "lost", "end"])) == (
        "3 steps · chain · depth 2 · width 1 · 1 dead\n"
        "\n"
        "●   0 plan  worker 0\n"
        "│   Plan.\n"
        "├─╮\n"
        "│ ○ 1 lost  worker 1  ← 0  dead\n"
        "│   Nobody reads this.\n"
        "│\n"
        "◉   2 end  worker 2  ← 0  answer\n"
        "    Answer.\n"
    )


@pytest.mark.parametrize("width", [8, 80])
@settings(max_examples=40)
@given(data=st.data())
def test_no_line_is_wider_than_the_console(data: st.DataObject, width: int) -> None:
    workflow = data.draw(workflows())

    found = printed(to_terminal(workflow, **data.draw(options(workflow))), width=width)

    assert all(cell_len(line) <= width for line in found.split("\n"))
    assert not set(found) & set(map(chr, [*range(10), *range(11, 32), 127]))


def test_escape_codes_and_markup_in_a_subtask_are_shown_and_not_obeyed() -> None:
    found = printed(to_terminal(ODD, **ODD_OPTIONS), colour=True)

    assert "␛[31mred" in found
    assert "\x1b[31mred" not in found
    assert "[bold]x[/bold] [/]" in printed(to_terminal(Workflow((Step(0, "[bold]x[/bold] [/]"),))))


def test_colour_only_adds_colour() -> None:
    plain, coloured = printed(to_terminal(MIXED)), printed(to_terminal(MIXED), colour=True)

    assert coloured != plain
    assert Text.from_ansi(coloured).plain.rstrip() == plain.rstrip()


def test_too_many_lanes_for_the_width_leave_the_words() -> None:
    workflow = Workflow((*(Step(i, "Solve.") for i in range(30)), Step(0, "Pick.", "all")))

    narrow, wide = (printed(to_terminal(workflow, opened=range(len(workflow))), width=width) for width in (40, 160))

    assert "│" not in narrow
    assert "◉ step 30  worker 0  ← all  answer" in narrow
    assert "├" + "─┴" * 28 + "─╯" in wide


def test_status_stands_below_the_subtask() -> None:
    found = printed(to_terminal(DEAD, status={2: StepStatus("done", 75, 0.5)}))

    assert found.endswith("    Answer.\n    done · 1 min 15 s · $0.50\n")


@settings(max_examples=40)
@given(workflows(max_steps=20))
def test_each_lane_carries_one_output_at_a_time(workflow: Workflow) -> None:
    """Replay the rows: a step reaches its sources' lanes, which nothing else has taken since."""
    drawn = [workflow.sees(i) for i in range(len(workflow))]

    rows = lane_rows(drawn)

    holder: dict[int, int] = {}
    for step, row in enumerate(rows):
        own_lanes = {lane for lane, output in holder.items() if output in drawn[step]}
        assert {holder[lane] for lane in own_lanes} == set(drawn[step])
        assert bool(row.joint) == bool(drawn[step])
        if row.joint:
            left, right = min(own_lanes | {row.own}), max(own_lanes | {row.own})
            assert all(row.joint[lane] for lane in own_lanes | {row.own})
            assert not any(ink & 12 for lane, ink in enumerate(row.joint) if not left <= lane <= right)
        holder = {
            lane: output for lane, output in holder.items() if output in {s for d in drawn[step + 1 :] for s in d}
        }
        assert row.own not in holder
        if step in {seen for later in drawn[step + 1 :] for seen in later}:
            holder[row.own] = step
        assert {lane for lane, is_open in enumerate(row.below) if is_open} == set(holder)
