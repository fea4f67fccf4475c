"""Code items really run: the right program passes every test, each wrong one fails at least one."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from itertools import count, islice
from typing import Any

import pytest

from wfdsl_rl.gym.world.families import draw
from wfdsl_rl.gym.world.families.form import Item
from wfdsl_rl.gym.world.families.recipes import CHANGE, FAILED, GATHER, KEEP, Part, Parts, Recipe

FAMILIES = ("list-code", "string-code", "number-code", "line-code")
RUNNER = """
import contextlib, io, json, sys

def called(program, entry_point, text):
    space = {}
    exec(program, space)
    return space[entry_point](*json.loads(text))

def printed(program, text):
    sys.stdin, out = io.StringIO(text), io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program, {})
    return out.getvalue()

def result(job, text):
    try:
        if job["entry_point"]:
            return {"value": called(job["program"], job["entry_point"], text)}
        return {"value": printed(job["program"], text)}
    except Exception as error:
        return {"error": type(error).__name__}

jobs = json.load(sys.stdin)
print(json.dumps([[result(job, text) for text in job["inputs"]] for job in jobs]))
"""


def run(programs: list[tuple[str, Item]]) -> list[list[dict[str, Any]]]:
    """What each program gives for each input of its item, run in a process of its own."""
    jobs = [
        {"program": program, "entry_point": item.tests.entry_point, "inputs": item.tests.inputs}
        for program, item in programs
        if item.tests is not None
    ]
    command = [sys.executable, "-I", "-c", RUNNER]
    done = subprocess.run(command, input=json.dumps(jobs), capture_output=True, text=True, timeout=60, check=True)
    found: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return found


def passes(item: Item, results: list[dict[str, Any]]) -> bool:
    assert item.tests is not None
    expected = item.tests.expected if item.tests.style == "stdin" else map(json.loads, item.tests.expected)
    return results == [{"value": value} for value in expected]


def drawn(family: str, number: int) -> list[Item]:
    items = (draw("code", 17, index, families=(family,), split=("train", "test")[index % 2]) for index in count())
    return list(islice(items, number))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_right_program_passes_and_each_wrong_one_fails(family: str) -> None:
    items = drawn(family, 400)
    programs = [(program, item) for item in items for program in (item.gold, *item.wrong)]

    outcomes = [passes(item, results) for (_, item), results in zip(programs, run(programs), strict=True)]

    assert outcomes == [program == item.gold for program, item in programs]


@pytest.mark.parametrize("family", FAMILIES)
def test_wrong_programs_run_on_most_inputs_and_so_look_right(family: str) -> None:
    items = drawn(family, 150)

    results = run([(program, item) for item in items for program in item.wrong])

    errors = sum("error" in result for outcome in results for result in outcome)
    assert errors < 0.15 * sum(map(len, results))


@pytest.mark.parametrize("family", FAMILIES)
def test_tests_are_many_and_show_different_results(family: str) -> None:
    for item in drawn(family, 150):
        assert item.tests is not None
        assert len(item.tests.inputs) >= 5
        assert len(set(item.tests.expected)) >= 3


@pytest.mark.parametrize("family", FAMILIES)
def test_programs_define_what_is_asked_for(family: str) -> None:
    for item in drawn(family, 150):
        for program in (item.gold, *item.wrong):
            tree = ast.parse(program)
            names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
            assert names == ([item.tests.entry_point] if item.tests and item.tests.entry_point else [])
            assert not names or f"{names[0]}(" in item.question


def test_only_slips_that_an_input_shows_are_kept() -> None:
    recipe = Recipe("xs", KEEP.read("greater than 3"), CHANGE.read("their doubles"), GATHER.read("the sum"))

    shown = recipe.failing([[5, 4, 3]], recipe.results([[5, 4, 3]]))
    hidden = recipe.failing([[9, 9]], recipe.results([[9, 9]]))

    assert [slip.body() for slip in shown] == [
        ("ys = [2 * x for x in xs if x >= 3]", "sum(ys)"),
        ("ys = [2 * x for x in xs if x > 3]", "sum(ys[1:])"),
        ("ys = [x for x in [2 * x for x in xs] if x > 3]", "sum(ys)"),
        ("ys = [2 * x for x in xs[1:] if x > 3]", "sum(ys)"),
        ("ys = [2 * x for x in xs if x >= 3]", "sum(ys[1:])"),
    ]
    assert all("x >= 3" not in slip.body()[0] or "[1:]" in slip.body()[1] for slip in hidden)


def test_a_program_that_would_raise_has_failed() -> None:
    largest = GATHER.read("the largest or else 0")
    recipe = Recipe("xs", KEEP.read("greater than 3"), CHANGE.read("their doubles"), largest.slipped())

    assert recipe.results([[1], [5]]) == [FAILED, 10]


def test_parts_are_read_back_from_their_phrases() -> None:
    parts = Parts(
        (Part("more than {k}", "x > {k}", lambda x, k: x > k), Part("odd", "x % 2", lambda x, _: x % 2)),
        parameter=r"\d+",
    )

    assert parts.read("more than 12").source == "x > 12"
    assert parts.read("odd").source == "x % 2"
    with pytest.raises(ValueError, match="no part is called 'even'"):
        parts.read("even")
