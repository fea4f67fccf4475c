"""`wfdsl check`: its options, and its two kinds of output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from inline_snapshot import snapshot

from tests.cli.conftest import GOOD

if TYPE_CHECKING:
    from tests.cli.conftest import Command

LISTS = ("model_id", "subtasks", "access_list", "sees")


def verdicts(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_the_text_shows_the_place_the_caret_the_cure_and_a_count(wfdsl: Command, files: Path) -> None:
    result = wfdsl("check", "later.txt")

    assert result.out == snapshot(
        """\
error[access-not-earlier]: step 1 cannot see step 2
  --> later.txt:3:21
  |
3 | access_list = [[], [2], "all"]
  |                     ^ step 2 runs after step 1
  = help: a step sees only earlier steps: here `0`, or "all" for every one of them

later.txt: 1 error
"""
    )


def test_json_is_one_object_a_line_with_exactly_the_agreed_keys(wfdsl: Command, files: Path) -> None:
    result = wfdsl("check", "--json", "good.txt", "later.txt", "vote.wf")

    good, later, vote = verdicts(result.out)
    assert result.code == 1
    assert list(good) == ["file", "ok", "passthrough", "workflow", "diagnostics"]
    assert good == {
        "file": "good.txt",
        "ok": True,
        "passthrough": False,
        "workflow": dict(zip(LISTS, ([0, 1], ["Plan it.", "Do it."], [[], [0]], [[], [0]]), strict=True)),
        "diagnostics": [],
    }
    assert later == snapshot(
        {
            "file": "later.txt",
            "ok": False,
            "passthrough": False,
            "workflow": None,
            "diagnostics": [
                {
                    "code": "access-not-earlier",
                    "severity": "error",
                    "message": "step 1 cannot see step 2",
                    "help": 'a step sees only earlier steps: here `0`, or "all" for every one of them',
                    "start": 68,
                    "end": 69,
                    "line": 3,
                    "column": 21,
                }
            ],
        }
    )
    assert vote["workflow"]["access_list"] == [[], [], [0, 1]]
    every = verdicts(wfdsl("check", "--json", "-", stdin=GOOD.replace("[0]]", '["ALL"]]').encode()).out)[0]["workflow"]
    assert (every["access_list"], every["sees"]) == ([[], "all"], [[], [0]])


@pytest.mark.parametrize(
    ("before", "start", "line", "column"),
    [
        ("", 12, 1, 13),
        ("\U0001f600\U0001f600", 14, 1, 15),
        ("\u4f60\u597d ", 15, 1, 16),
        ("e\u0301", 14, 1, 15),
        ("\t\t", 14, 1, 15),
        ("\U0001f600\r\n\u4f60\r", 17, 3, 13),
        ("\u2028\x0b\x0c\x85", 16, 1, 17),
    ],
)
def test_offsets_lines_and_columns_count_code_points(
    wfdsl: Command, before: str, start: int, line: int, column: int
) -> None:
    text = f'{before}model_id = ["x"]\nsubtasks = ["a"]\naccess_list = [[]]'

    (verdict,) = verdicts(wfdsl("check", "--json", "-", stdin=text.encode()).out)

    (found,) = verdict["diagnostics"]
    assert {key: found[key] for key in ("code", "start", "end", "line", "column")} == {
        "code": "worker-type",
        "start": start,
        "end": start + 3,
        "line": line,
        "column": column,
    }
    assert text[found["start"] : found["end"]] == '"x"'


def test_the_strict_profile_rejects_what_the_lenient_one_repairs(wfdsl: Command, files: Path) -> None:
    default = wfdsl("check", "repaired.txt")
    strict = wfdsl("check", "--profile", "strict", "repaired.txt")
    lenient = wfdsl("check", "--profile", "lenient", "repaired.txt")

    assert default == strict
    assert strict.code == 1
    assert "error[number-as-string]" in strict.out
    assert lenient.code == 0
    assert "warning[number-as-string]" in lenient.out
    assert lenient.out.endswith("repaired.txt: ok, 2 steps, 1 warning\n")


def test_three_empty_lists_are_fine_only_in_a_recursion_round(wfdsl: Command, files: Path) -> None:
    first = wfdsl("check", "empty-lists.txt")
    later = wfdsl("check", "--recursion", "empty-lists.txt")
    (as_json,) = verdicts(wfdsl("check", "--recursion", "--json", "empty-lists.txt").out)
    (first_json,) = verdicts(wfdsl("check", "--json", "empty-lists.txt").out)

    assert first.code == 1
    assert "error[empty-workflow]" in first.out
    assert (later.code, later.out) == (0, "empty-lists.txt: ok, keeps the previous response\n")
    assert (as_json["ok"], as_json["passthrough"], as_json["workflow"]) == (True, True, None)
    assert (first_json["ok"], first_json["passthrough"]) == (False, True)


@pytest.mark.parametrize(
    ("workers", "options", "error"),
    [
        ([0, 1], ["--pool-size", "2"], ""),
        ([0, 1], ["--pool-size", "1"], "worker-not-in-pool"),
        ([0, 7], ["--pool", "local"], "worker-not-in-pool"),
        ([0] * 5, [], ""),
        ([0] * 6, [], "too-many-steps"),
        ([0] * 6, ["--max-steps", "6"], ""),
    ],
)
def test_a_pool_bounds_the_indices_and_completions_have_five_steps_unless_more_are_allowed(
    wfdsl: Command, workers: list[int], options: list[str], error: str
) -> None:
    text = f"model_id = {workers}\nsubtasks = {['a'] * len(workers)}\naccess_list = {['all'] * len(workers)}"

    result = wfdsl("check", *options, "-", stdin=text.encode())

    assert (result.code, f"error[{error}]" in result.out) == ((1, True) if error else (0, False))


def test_all_problems_are_reported_in_one_pass_and_in_order(wfdsl: Command) -> None:
    text = 'model_id = ["x", 9]\nsubtasks = ["", 7]\naccess_list = [[5], "first"]'

    (verdict,) = verdicts(wfdsl("check", "--pool-size", "2", "--json", "-", stdin=text.encode()).out)

    found = [(entry["code"], entry["line"]) for entry in verdict["diagnostics"] if entry["severity"] == "error"]
    assert found == [
        ("worker-type", 1),
        ("worker-not-in-pool", 1),
        ("subtask-blank", 2),
        ("subtask-type", 2),
        ("access-not-earlier", 3),
        ("access-type", 3),
    ]


EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.wf"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_shipped_examples_need_no_more_than_two_workers_or_say_what(
    wfdsl: Command, tmp_path: Path, example: Path
) -> None:
    worker = '[[pool.workers]]\nname = "{}"\nprovider = "scripted"\noptions = {{ replies = ["x"] }}\n'
    pool = tmp_path / "pool.toml"
    pool.write_text(f"[pool]\n{worker.format('a')}{worker.format('b')}")

    result = wfdsl("check", example, "--pool", pool)

    if example.stem == "recursive":
        assert 'add a worker with `provider = "conductor"` to the pool file' in result.out
    else:
        assert result.code == 0, result.out
