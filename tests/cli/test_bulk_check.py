"""`wfdsl check --field`: completions in JSON lines, one by one and summed up."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from inline_snapshot import snapshot

from tests.cli.conftest import EMPTY_LISTS, GOOD, REPAIRED, SEES_LATER

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

ONE_STEP = 'model_id = [0]\nsubtasks = ["a"]\naccess_list = [[]]'
TWO_ERRORS = 'model_id = ["x"]\nsubtasks = [""]\naccess_list = [[]]'
DEAD_STEP = 'model_id = [0, 0]\nsubtasks = ["a", "b"]\naccess_list = [[], []]'
PROSE = "I do not know."


def write_rows(path: Path, *rows: Any) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def write_completions(path: Path, *texts: str) -> None:
    write_rows(path, *({"completion": text} for text in texts))


@pytest.fixture
def rollouts(files: Path) -> Path:
    """Eight completions: four valid, one of them only in the lenient profile."""
    path = files / "rollouts.jsonl"
    write_completions(path, GOOD, TWO_ERRORS, REPAIRED, ONE_STEP, SEES_LATER, DEAD_STEP, PROSE, EMPTY_LISTS)
    return path


def test_every_line_gets_a_verdict_with_its_place(wfdsl: Command, rollouts: Path) -> None:
    result = wfdsl("check", "--field", "completion", "rollouts.jsonl")

    assert result.code == 1
    assert result.err == ""
    assert result.out == snapshot(
        """\
rollouts.jsonl:1: ok
rollouts.jsonl:2: invalid: worker-type, subtask-blank
rollouts.jsonl:3: invalid: number-as-string
rollouts.jsonl:4: ok
rollouts.jsonl:5: invalid: access-not-earlier
rollouts.jsonl:6: ok: dead-step
rollouts.jsonl:7: invalid: list-missing
rollouts.jsonl:8: invalid: empty-workflow
"""
    )


def test_the_options_of_check_apply_to_lines(wfdsl: Command, rollouts: Path) -> None:
    lenient = wfdsl("check", "--field", "completion", "--profile", "lenient", "rollouts.jsonl")
    recursion = wfdsl("check", "--field", "completion", "--recursion", "rollouts.jsonl")
    small_pool = wfdsl("check", "--field", "completion", "--pool-size", "1", "rollouts.jsonl")
    one_step = wfdsl("check", "--field", "completion", "--max-steps", "1", "rollouts.jsonl")

    assert "rollouts.jsonl:3: ok: number-as-string" in lenient.out
    assert "rollouts.jsonl:8: ok\n" in recursion.out
    assert "rollouts.jsonl:1: invalid: worker-not-in-pool" in small_pool.out
    assert "rollouts.jsonl:1: invalid: too-many-steps" in one_step.out


def test_json_verdicts_have_the_keys_of_check_and_the_line_as_file(wfdsl: Command, rollouts: Path) -> None:
    result = wfdsl("check", "--field", "completion", "--json", "rollouts.jsonl")

    verdicts = [json.loads(line) for line in result.out.splitlines()]
    assert [verdict["file"] for verdict in verdicts] == [f"rollouts.jsonl:{line}" for line in range(1, 9)]
    assert [verdict["ok"] for verdict in verdicts] == [True, False, False, True, False, True, False, False]
    assert {tuple(verdict) for verdict in verdicts} == {("file", "ok", "passthrough", "workflow", "diagnostics")}


def test_the_summary_counts_exactly_and_shows_the_worst(wfdsl: Command, rollouts: Path) -> None:
    result = wfdsl("check", "--field", "completion", "--summary", "--examples", "2", "rollouts.jsonl")

    assert result.code == 1
    assert result.out == snapshot(
        """\
8 completions
  valid, strict                  3   37.5%
  valid, lenient                 4   50.0%
  three empty lists              1   12.5%
  with 1 step                    1   12.5%
  with 2 steps                   3   37.5%

completions with the error          strict         lenient
  access-not-earlier             1   12.5%       1   12.5%
  empty-workflow                 1   12.5%       1   12.5%
  list-missing                   1   12.5%       1   12.5%
  number-as-string               1   12.5%       0    0.0%
  subtask-blank                  1   12.5%       1   12.5%
  worker-type                    1   12.5%       1   12.5%

warnings and notes in the lenient profile
  dead-step                      1   12.5%
  number-as-string               1   12.5%

rollouts.jsonl:2
error[worker-type]: a worker is an integer, not `"x"`
  --> completion:1:13
  |
1 | model_id = ["x"]
  |             ^^^
  = help: write the index of a worker, such as `0`
error[subtask-blank]: the subtask of step 0 is empty
  --> completion:2:13
  |
2 | subtasks = [""]
  |             ^^
  = help: write what the worker is asked to do

rollouts.jsonl:5
error[access-not-earlier]: step 1 cannot see step 2
  --> completion:3:21
  |
3 | access_list = [[], [2], "all"]
  |                     ^ step 2 runs after step 1
  = help: a step sees only earlier steps: here `0`, or "all" for every one of them
"""
    )


def test_the_summary_as_json_has_the_same_numbers(wfdsl: Command, rollouts: Path) -> None:
    result = wfdsl("check", "--field", "completion", "--summary", "--json", "rollouts.jsonl")

    assert json.loads(result.out) == {
        "total": 8,
        "unreadable": 0,
        "valid": {"strict": 3, "lenient": 4},
        "passthrough": 1,
        "steps": {"1": 1, "2": 3},
        "codes": {
            "access-not-earlier": {"strict": 1, "lenient": 1},
            "empty-workflow": {"strict": 1, "lenient": 1},
            "list-missing": {"strict": 1, "lenient": 1},
            "number-as-string": {"strict": 1, "lenient": 0},
            "subtask-blank": {"strict": 1, "lenient": 1},
            "worker-type": {"strict": 1, "lenient": 1},
        },
        "remarks": {"dead-step": 1, "number-as-string": 1},
        "worst": [
            {"file": "rollouts.jsonl", "line": 2},
            {"file": "rollouts.jsonl", "line": 5},
            {"file": "rollouts.jsonl", "line": 7},
        ],
    }


def test_the_profile_decides_the_exit_code_of_a_summary(wfdsl: Command, files: Path) -> None:
    write_completions(files / "repairs.jsonl", GOOD, REPAIRED)
    arguments = ["check", "--field", "completion", "--summary", "repairs.jsonl"]

    assert wfdsl(*arguments).code == 1
    assert wfdsl(*arguments, "--profile", "lenient").code == 0


@pytest.mark.parametrize(
    ("field", "record"),
    [
        ("completion", {"completion": ONE_STEP}),
        ("output.text", {"output": {"text": ONE_STEP}}),
        ("a.b.c", {"a": {"b": {"c": ONE_STEP}}}),
        ("messages", {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": ONE_STEP}]}),
        ("message", {"message": {"role": "assistant", "content": ONE_STEP}}),
        ("choices", {"choices": [{"text": ONE_STEP}]}),
        ("samples", {"samples": ["older", ONE_STEP]}),
    ],
)
def test_a_field_may_be_a_path_or_hold_chat_messages(
    wfdsl: Command, files: Path, field: str, record: dict[str, Any]
) -> None:
    write_rows(files / "rows.jsonl", record)

    result = wfdsl("check", "--field", field, "rows.jsonl")

    assert (result.code, result.out) == (0, "rows.jsonl:1: ok\n")


def test_gzipped_files_are_read(wfdsl: Command, rollouts: Path) -> None:
    (rollouts.parent / "rollouts.jsonl.gz").write_bytes(gzip.compress(rollouts.read_bytes(), mtime=0))
    arguments = ["check", "--field", "completion", "--summary", "--json"]

    plain, packed = wfdsl(*arguments, "rollouts.jsonl"), wfdsl(*arguments, "rollouts.jsonl.gz")

    assert packed.out == plain.out.replace("rollouts.jsonl", "rollouts.jsonl.gz")


@pytest.mark.parametrize("data", [b"no gzip at all", gzip.compress(b'{"completion": "x"}\n' * 99, mtime=0)[:-12]])
def test_a_damaged_gzip_file_is_one_line_and_exit_code_2(wfdsl: Command, files: Path, data: bytes) -> None:
    (files / "rows.jsonl.gz").write_bytes(data)

    result = wfdsl("check", "--field", "completion", "rows.jsonl.gz")

    assert result.code == 2
    assert result.err.startswith("wfdsl check: rows.jsonl.gz: cannot be read: ")
    assert result.err.count("\n") == 1


def test_lines_without_a_completion_are_named_and_do_not_stop_the_others(wfdsl: Command, files: Path) -> None:
    rows = [
        json.dumps({"completion": GOOD}),
        "{broken",
        json.dumps({"text": GOOD}),
        json.dumps({"completion": 7}),
        json.dumps([1]),
        "[" * 100_000,
        "\xff",
        "",
        json.dumps({"completion": ONE_STEP}),
    ]
    (files / "rows.jsonl").write_text("\n".join(rows), "latin-1")

    result = wfdsl("check", "--field", "completion", "rows.jsonl")

    assert result.code == 2
    assert result.out == "rows.jsonl:1: ok\nrows.jsonl:9: ok\n"
    assert result.err.splitlines() == [
        "wfdsl check: rows.jsonl:2: is not JSON",
        "wfdsl check: rows.jsonl:3: has no field 'completion'",
        "wfdsl check: rows.jsonl:4: has no text in 'completion'",
        "wfdsl check: rows.jsonl:5: has no field 'completion'",
        "wfdsl check: rows.jsonl:6: is not JSON",
        "wfdsl check: rows.jsonl:7: is not JSON",
    ]


def test_a_summary_counts_the_lines_without_a_completion(wfdsl: Command, files: Path) -> None:
    (files / "rows.jsonl").write_text(json.dumps({"completion": GOOD}) + "\n" + "no\n" * 5)

    result = wfdsl("check", "--field", "completion", "--summary", "--examples", "2", "rows.jsonl")

    assert result.code == 2
    assert result.out == snapshot(
        """\
1 completion
  valid, strict                  1  100.0%
  valid, lenient                 1  100.0%
  with 2 steps                   1  100.0%

rows.jsonl:2: is not JSON

rows.jsonl:3: is not JSON
... and 3 more lines without a completion
"""
    )


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ({"prompt": "?", "text": GOOD}, "has no field 'completion'; it has 'prompt', 'text'"),
        ([GOOD], "has no field 'completion'; it is not an object"),
        ({}, "has no field 'completion'; it is not an object"),
    ],
)
def test_a_wrong_field_stops_at_the_first_line_and_names_the_fields(
    wfdsl: Command, files: Path, first: Any, why: str
) -> None:
    write_rows(files / "rows.jsonl", first, {"completion": GOOD})

    result = wfdsl("check", "--field", "completion", "rows.jsonl")

    assert (result.code, result.out, result.err) == (2, "", f"wfdsl check: rows.jsonl:1: {why}\n")


def test_an_empty_file_has_no_completions(wfdsl: Command, files: Path) -> None:
    (files / "rows.jsonl").touch()

    result = wfdsl("check", "--field", "completion", "--summary", "rows.jsonl")

    assert result.code == 0
    assert result.out.startswith("0 completions\n")


@pytest.mark.parametrize("name", ["missing.jsonl", "folder"])
def test_a_file_that_cannot_be_read_is_one_line_and_exit_code_2(wfdsl: Command, files: Path, name: str) -> None:
    (files / "folder").mkdir()

    result = wfdsl("check", "--field", "completion", name)

    assert result.code == 2
    assert result.err.startswith(f"wfdsl check: {name}: cannot be read: ")
    assert result.err.count("\n") == 1


def test_half_a_character_in_a_completion_is_shown_and_does_not_stop_anything(wfdsl: Command, files: Path) -> None:
    (files / "rows.jsonl").write_text(json.dumps({"completion": 'model_id = ["\ud800"]\nsubtasks = []\n'}) + "\n")
    arguments = ["check", "--field", "completion", "rows.jsonl"]

    plain, as_json, summed = wfdsl(*arguments), wfdsl(*arguments, "--json"), wfdsl(*arguments, "--summary")

    assert plain.code == as_json.code == summed.code == 1
    assert "\ud800" not in summed.out
    assert json.loads(as_json.out)["ok"] is False
