"""The tables of the language reference say what the parser does, row by row."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

import pytest

from wfdsl import analyze
from wfdsl.language.codes import CODES

from .pages import read_page
from .write_codes import POOL

_PAGE = "docs/reference/language.md"
_HEADER = "| written | strict | lenient | read as |"
_LISTS = {
    "model_id": "model_id = [0, 1]",
    "subtasks": 'subtasks = ["Plan.", "Do."]',
    "access_list": "access_list = [[], [0]]",
}


class Row(NamedTuple):
    """One row of a table."""

    written: str
    strict: str
    lenient: str
    read_as: str


def _rows() -> list[Row]:
    tables = re.findall(rf"^{re.escape(_HEADER)}\n\|[-|]+\n((?:\|.*\n)+)", read_page(_PAGE), re.MULTILINE)
    lines = [line for table in tables for line in table.splitlines()]
    return [Row(*(_cell(cell) for cell in line.strip("|").split(" | "))) for line in lines]


def _cell(text: str) -> str:
    inside = re.fullmatch(r"(`+)(.*?)\1(?: \(.*\))?", text.strip(" |"))
    return (inside[2].strip(" ") if inside else text.strip(" |")).replace("⏎", "\n").replace("⍽", "\u00a0")


def _label(written: str) -> str:
    low = written.lower()
    return "model_id" if "model" in low else "subtasks" if "subtasks" in low else "access_list"


def _completion(written: str) -> str:
    return "\n".join({**_LISTS, _label(written): written}.values())


@pytest.mark.parametrize("row", _rows(), ids=lambda row: row.written)
def test_both_verdicts_and_the_value_are_those_of_the_table(row: Row) -> None:
    strict, lenient = (analyze(_completion(row.written), pool=POOL, profile=each) for each in ("strict", "lenient"))

    errors = [{found.code for found in each.diagnostics if found.is_error} for each in (strict, lenient)]
    wanted = [{row.strict} - {"ok"}, {row.lenient} - {"ok", "repaired"}]
    assert errors == wanted
    repairs = {found.code for found in lenient.diagnostics if CODES[found.code].kind == "repair"}
    assert repairs == ({row.strict} if row.lenient == "repaired" else set())
    if row.read_as:
        assert lenient.workflow is not None
        assert lenient.workflow.to_lists()[_label(row.written)] == ast.literal_eval(row.read_as)


def test_every_repair_has_a_row() -> None:
    shown = {row.strict for row in _rows() if row.lenient == "repaired"}

    assert shown == {code.name for code in CODES.values() if code.kind == "repair"}
