"""The tables of the language reference say what the parser does, row by row."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

import pytest

from wfdsl import Pool, WorkerEntry, analyze
from wfdsl.language.codes import CODES

from .pages import read_page

_PAGE = "docs/reference/language.md"
_HEADER = "| written | strict | lenient | read as |"
_LISTS = {
    "model_id": "model_id = [0, 1]",
    "subtasks": 'subtasks = ["Plan.", "Do."]',
    "access_list": "access_list = [[], [0]]",
}


POOL = Pool([WorkerEntry(name=name, provider="scripted") for name in ("planner", "solver")])


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
def test_the_strict_verdict_is_the_one_of_the_table(row: Row) -> None:
    checked = analyze(_completion(row.written), pool=POOL)

    codes = {found.code for found in checked.diagnostics if found.is_error}
    assert codes == (set() if row.strict == "ok" else {row.strict})


@pytest.mark.parametrize("row", _rows(), ids=lambda row: row.written)
def test_the_lenient_verdict_is_the_one_of_the_table(row: Row) -> None:
    checked = analyze(_completion(row.written), pool=POOL, profile="lenient")

    codes = {found.code for found in checked.diagnostics if found.is_error}
    repairs = {found.code for found in checked.diagnostics if CODES[found.code].kind == "repair"}
    assert codes == (set() if row.lenient in {"ok", "repaired"} else {row.lenient})
    assert repairs == ({row.strict} if row.lenient == "repaired" else set())


@pytest.mark.parametrize("row", [row for row in _rows() if row.read_as], ids=lambda row: row.written)
def test_the_value_is_the_one_of_the_table(row: Row) -> None:
    workflow = analyze(_completion(row.written), pool=POOL, profile="lenient").workflow

    assert workflow is not None
    assert workflow.to_lists()[_label(row.written)] == ast.literal_eval(row.read_as)


def test_every_repair_has_a_row() -> None:
    shown = {row.strict for row in _rows() if row.lenient == "repaired"}

    assert shown == {code.name for code in CODES.values() if code.kind == "repair"}
