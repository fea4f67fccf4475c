"""`wfdsl check --field`: the completions in JSON lines, counted by code in both profiles."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import EMPTY_LISTS, GOOD, REPAIRED, SEES_LATER

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

ONE_STEP = 'model_id = [0]\nsubtasks = ["a"]\naccess_list = [[]]'
TEXTS = [
    GOOD,
    'model_id = ["x"]\nsubtasks = [""]\naccess_list = [[]]',
    REPAIRED,
    ONE_STEP,
    SEES_LATER,
    "No.",
    EMPTY_LISTS,
]


@pytest.fixture
def rollouts(files: Path) -> Path:
    path = files / "rollouts.jsonl"
    path.write_text("".join(json.dumps({"completion": text, "said": {"last": text}}) + "\n" for text in TEXTS))
    return path


def test_completions_are_counted_by_code_in_both_profiles(wfdsl: Command, rollouts: Path) -> None:
    result = wfdsl("check", "--field", "completion", "--json", "rollouts.jsonl")

    found = json.loads(result.out)
    assert (result.code, found["total"]) == (1, 7)
    assert (found["strict"]["valid"], found["lenient"]["valid"]) == (2, 3)
    assert found["strict"]["number-as-string"] == 1
    assert "number-as-string" not in found["lenient"]
    assert found["lenient"]["access-not-earlier"] == found["strict"]["access-not-earlier"] == 1
    assert "access-not-earlier" in wfdsl("check", "--field", "completion", "rollouts.jsonl").out


def test_the_options_of_check_apply_to_lines(wfdsl: Command, rollouts: Path) -> None:
    def valid(*options: str) -> int:
        found = json.loads(wfdsl("check", "--field", "said.last", "--json", *options, "rollouts.jsonl").out)
        return int(found["strict"]["valid"])

    assert valid() == 2
    assert valid("--recursion") == 3
    assert valid("--pool-size", "1") == 1
    assert valid("--max-steps", "1") == 1


def test_gzipped_files_are_read_and_valid_ones_are_code_0(wfdsl: Command, rollouts: Path) -> None:
    with gzip.open(rollouts.with_name("good.jsonl.gz"), "wt") as file:
        file.write(json.dumps({"completion": GOOD}) + "\n")

    assert wfdsl("check", "--field", "completion", "good.jsonl.gz").code == 0
    assert wfdsl("check", "rollouts.jsonl").code == 2


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"completoin": "x"}', "rows.jsonl:1: has no field 'completion'. Did you mean completoin?"),
        ('{"completion": 5}', "rows.jsonl:1: has no text in 'completion'"),
        ("nope", "rows.jsonl:1: is not JSON"),
        ("[" * 100_000, "rows.jsonl:1: is not JSON"),
    ],
)
def test_a_line_without_a_completion_is_named(wfdsl: Command, files: Path, line: str, why: str) -> None:
    (files / "rows.jsonl").write_text(line + "\n")

    result = wfdsl("check", "--field", "completion", "rows.jsonl")

    assert result.code == 2
    assert why in result.err


@pytest.mark.parametrize("more", [["-"], ["--form", "wf", "a"], ["--set", "n=1", "a"], ["missing.jsonl"]])
def test_what_holds_no_lines_is_refused(wfdsl: Command, files: Path, more: list[str]) -> None:
    assert wfdsl("check", "--field", "completion", *more).code == 2
