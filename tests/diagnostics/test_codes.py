"""The table of codes: its examples are true, and it names exactly what the sources can emit."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import wfdsl
from wfdsl.language.codes import CODES, Code

SOURCES = Path(wfdsl.__file__).parent
COMPLETION_CODES = [code for code in CODES.values() if code.form in ("completion", "both")]


class NamedPool:
    """A pool of two workers with names."""

    indices = (0, 1)
    conductors = ()
    find = staticmethod({"planner": 0, "solver": 1}.get)


NO_EXAMPLE = {
    "access-not-binary",
    "conductor-too-deep",
    "depth-unlisted",
    "clause-conflict",
    "more-of-the-same",
    "settings-unlisted",
    "text-too-long",
    "worker-unknown",
}
"""What only an option, a limit, a depth, a pool, printing or many problems bring about."""
EMITTERS = {"Diagnostic", "_error", "_repair", "_report", "_wrong_type"}
"""What is called with a code as its first text."""


@pytest.mark.parametrize("code", [code for code in COMPLETION_CODES if code.wrong], ids=lambda code: code.name)
def test_the_wrong_example_gets_its_code_with_its_severity(code: Code) -> None:
    strict = wfdsl.analyze(code.wrong, pool=NamedPool(), max_steps=5)
    lenient = wfdsl.analyze(code.wrong, pool=NamedPool(), max_steps=5, profile="lenient")

    severities = {(found.code, found.severity) for found in strict.diagnostics}
    in_strict = "error" if code.kind == "repair" else code.kind
    in_lenient = "warning" if code.kind == "repair" else code.kind
    assert (code.name, in_strict) in severities
    assert {found.code for found in strict.diagnostics if found.is_error} <= {code.name}
    assert strict.ok == (in_strict != "error")
    assert (code.name, in_lenient) in {(found.code, found.severity) for found in lenient.diagnostics}
    assert lenient.ok == (in_lenient != "error")


@pytest.mark.parametrize("code", [code for code in COMPLETION_CODES if code.right], ids=lambda code: code.name)
def test_the_right_example_is_clean(code: Code) -> None:
    checked = wfdsl.analyze(code.right, pool=2, max_steps=5)

    assert checked.diagnostics == ()
    assert checked.workflow is not None


def test_a_row_has_both_examples_or_none() -> None:
    without = {code.name for code in CODES.values() if not code.wrong}

    assert without <= NO_EXAMPLE
    assert without == {code.name for code in CODES.values() if not code.right}


class ConductorPool:
    """A pool whose second worker is a Conductor."""

    indices = (0, 1)
    conductors = frozenset({1})


@pytest.mark.parametrize(
    ("code", "text", "options"),
    [
        ("text-too-long", "x" * 11, {"max_chars": 10}),
        ("access-not-binary", CODES["access-not-earlier"].right, {"access": "binary"}),
        (
            "conductor-too-deep",
            'model_id = [1]\nsubtasks = ["a"]\naccess_list = [[]]',
            {"pool": ConductorPool(), "depth_left": 0},
        ),
    ],
)
def test_what_an_option_forbids_gets_its_code(code: str, text: str, options: dict[str, Any]) -> None:
    assert [found.code for found in wfdsl.analyze(text, **options).diagnostics] == [code]


def test_codes_are_stable_words() -> None:
    for name, code in CODES.items():
        assert name == code.name
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name)
        assert code.kind in ("error", "repair", "warning", "note")
        assert code.form in ("both", "completion", "wf")
        assert code.summary[0].islower() or not code.summary[0].isalpha() or code.summary.startswith("None")
        assert not code.summary.endswith(".")
        assert code.explanation.endswith(".")


def test_the_table_names_exactly_what_the_sources_can_emit() -> None:
    paths = [path for path in SOURCES.rglob("*.py") if path.name != "codes.py"]

    emitted = [emission for path in paths for emission in emitted_codes(path)]

    assert [(code, place) for code, place in emitted if code not in CODES] == []
    assert set(CODES) - {code for code, _ in emitted} == set()


def emitted_codes(path: Path) -> list[tuple[str, str]]:
    """The codes in calls of what emits diagnostics, each with its place."""
    return [
        (constant.value, f"{path.name}:{node.lineno}")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and called(node) in EMITTERS and node.args
        for constant in ast.walk(node.args[0])
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    ]


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
