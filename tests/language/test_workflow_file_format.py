"""How workflow files are laid out and printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.language.wf_reading import file_tree, read, workflow
from wfdsl.language.file_printer import format_file, print_file
from wfdsl.language.file_reader import read_workflow_file
from wfdsl.language.source import Source
from wfdsl.language.workflow import Labels, Step, Workflow

EXAMPLES = sorted((Path(__file__).parent.parent.parent / "docs" / "examples").glob("*.wf"))

UNTIDY = """\
# what this is


wfdsl   1 # version
title 'Demo'
param n=3
   # about a
step a  # its name
  sees
     # nothing before it
     nothing
  by 0 copies {n}:'''one
        two
          three'''   # the end


# about b
step b sees a by "odd name" : "x" # joined
  "y"
# bye"""

TIDY = """\
# what this is

wfdsl 1  # version
title 'Demo'
param n = 3
# about a
step a  # its name
    by 0 copies {n} sees
    # nothing before it
    nothing: '''
    one
    two
      three
    '''  # the end

# about b
step b by "odd name" sees a:
    "x"  # joined
    "y"
# bye
"""


def test_a_file_gets_its_usual_layout_and_keeps_its_comments() -> None:
    assert format_file(file_tree(UNTIDY)) == format_file(file_tree(TIDY)) == TIDY
    assert workflow(TIDY) == workflow(UNTIDY)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_tidy_and_has_no_problems(path: Path) -> None:
    text = path.read_text("utf-8")

    assert len(EXAMPLES) == 8
    assert format_file(file_tree(text)) == text
    assert {problem.code for problem in read(text)[1]} <= {"pool-needed"}


def test_long_statements_are_broken_between_words() -> None:
    names = [f"a-rather-long-name-{index}" for index in range(8)]
    steps = "".join(f'step {name} by 0: "x"\n' for name in names)
    tree = file_tree(steps + f'step last by 0 sees {",".join(names)}: "{"word " * 20}"')

    lines = format_file(tree).splitlines()

    assert max(map(len, lines)) <= 120
    assert [line[:8] for line in lines[8:]] == ["step las", "    a-ra", '    "wor']


@pytest.mark.parametrize(
    "literal",
    [
        '"""  kept\n"""',
        '"""\n  a\\\n"""',
        "r'''\n\\ \n  a'''",
        '"""a\n  b\\\n"""',
        '"""\n   {{a}}\n  b """',
        '"a\\\n  b"',
    ],
)
def test_laying_out_a_text_does_not_change_what_it_says(literal: str) -> None:
    text = f"step s by 0: {literal}"

    assert workflow(format_file(file_tree(text))) == workflow(text)


def test_a_file_with_syntax_errors_is_not_formatted() -> None:
    with pytest.raises(ValueError, match="syntax errors"):
        format_file(read_workflow_file(Source("step a"))[0])


def test_a_workflow_is_printed_as_plain_steps() -> None:
    steps = (Step("planner", "Plan."), Step(1, 'Solve\nit "well" {now}.', (0,)), Step("conductor", "Check.", "all", 2))

    text = print_file(Workflow(steps, Labels(("plan", "try[1]", "all"), "Demo", "Two\nlines")))

    assert (
        text
        == """\
title "Demo"
description \"""
    Two
    lines
    \"""

step plan by planner: "Plan."
step try-1 by 1 sees plan: \"""
    Solve
    it "well" {{now}}.
    \"""
step s2 by conductor depth 2 sees all: "Check."
"""
    )


@pytest.mark.parametrize("names", [["s1", "s1", "s1"], ["", "s0", "step"], ["a[1]", "a-1", "a[1]"], ["s2", "s2"], []])
def test_steps_are_printed_with_names_that_can_be_read(names: list[str]) -> None:
    steps = Workflow((Step(0, "a"), Step(0, "b", (0,)), Step(0, "c", (0, 1))), Labels(tuple(names)))

    assert workflow(print_file(steps)) == steps
    assert print_file(Workflow(())) == ""


def test_a_name_over_several_lines_ends_its_lines_once() -> None:
    once = format_file(file_tree('param n = 1\r\nstep a by """b\nc""" max_tokens {n}: ""\n'))

    assert format_file(file_tree(once)) == once
    assert "\r\r" not in once


@pytest.mark.parametrize("text", ["step a by 0: 'x'\n# c\n", 'step a by 0: """\n    one\n    two\n    """\n'])
def test_lines_end_as_the_first_line_of_the_file_does(text: str) -> None:
    windows = text.replace("\n", "\r\n")

    assert format_file(file_tree(windows)) == windows
    assert format_file(file_tree(f"# first\r\n{text}")) == f"# first\r\n{windows}"
    assert workflow(windows) == workflow(text)
