"""`wfdsl fmt` and `wfdsl check --explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from inline_snapshot import snapshot

import wfdsl as package
from tests.cli.conftest import GOOD, SEES_LATER
from wfdsl.language.codes import CODES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

CANONICAL = """\
model_id = [0, 1]
subtasks = [
    "Plan it.",
    "Do it.",
]
access_list = [[], [0]]
"""
UNTIDY_FILE = 'step   try by 0 copies 2:\n  "Solve it."   # twice\nstep choose by 1 sees  try: "Choose."\n'


def test_fmt_prints_the_three_lists_of_a_completion(wfdsl: Command, files: Path) -> None:
    (files / "prose.txt").write_text(f"Let me plan.\n```python\n{GOOD}```\nDone.")

    result = wfdsl("fmt", "prose.txt")

    assert (result.code, result.out, result.err) == (0, CANONICAL, "")


def test_fmt_repairs_a_completion_and_says_so(wfdsl: Command, files: Path) -> None:
    lenient = wfdsl("fmt", "repaired.txt")
    strict = wfdsl("fmt", "--profile", "strict", "repaired.txt")

    assert (lenient.code, lenient.out) == (0, CANONICAL)
    assert "warning[number-as-string]" in lenient.err
    assert (strict.code, strict.out) == (1, "")
    assert "error[number-as-string]" in strict.err


@pytest.mark.parametrize("name", ["good.txt", "repaired.txt", "vote.wf", "untidy.wf"])
@pytest.mark.parametrize("to", [None, "completion", "wf"])
def test_fmt_is_idempotent(wfdsl: Command, files: Path, name: str, to: str | None) -> None:
    (files / "untidy.wf").write_text(UNTIDY_FILE)
    options = ["--to", to] if to else []

    once = wfdsl("fmt", *options, name)
    form = to or ("wf" if name.endswith(".wf") else "completion")
    twice = wfdsl("fmt", "--form", form, "-", stdin=once.out.encode())

    assert once.code == twice.code == 0
    assert twice.out == once.out
    assert once.out.endswith("\n")


@pytest.mark.parametrize("name", ["good.txt", "vote.wf"])
@pytest.mark.parametrize("to", ["completion", "wf"])
def test_a_converted_workflow_means_the_same(wfdsl: Command, files: Path, name: str, to: str) -> None:
    converted = files / f"converted.{'wf' if to == 'wf' else 'txt'}"

    converted.write_text(wfdsl("fmt", "--to", to, name).out)

    assert package.load(converted) == package.load(name)


def test_parameters_are_put_in_when_a_file_becomes_a_completion(wfdsl: Command, files: Path) -> None:
    result = wfdsl("fmt", "--to", "completion", "--set", "n=3", "vote.wf")

    assert "model_id = [0, 0, 0, 1]\n" in result.out


def test_write_changes_the_files_that_need_it_and_no_invalid_one(wfdsl: Command, files: Path) -> None:
    (files / "untidy.wf").write_text(UNTIDY_FILE)
    (files / "tidy.txt").write_text(CANONICAL)
    (files / "tidy.txt").chmod(0o444)
    expected = wfdsl("fmt", "untidy.wf").out

    result = wfdsl("fmt", "-w", "untidy.wf", "tidy.txt", "repaired.txt")

    assert (result.code, result.out) == (0, "")
    assert (files / "untidy.wf").read_text() == expected != UNTIDY_FILE
    assert (files / "repaired.txt").read_text() == CANONICAL
    assert wfdsl("fmt", "--check", "untidy.wf", "tidy.txt", "repaired.txt").code == 0
    assert wfdsl("fmt", "-w", "later.txt").code == 1
    assert (files / "later.txt").read_text() == SEES_LATER


def test_check_shows_what_would_change(wfdsl: Command, files: Path) -> None:
    (files / "good.txt").write_text(GOOD.removesuffix("\n"))
    (files / "tidy.txt").write_text(CANONICAL)

    result = wfdsl("fmt", "--check", "good.txt", "tidy.txt")

    assert result.code == 1
    assert wfdsl("fmt", "--check", "tidy.txt") == (0, "", "")
    assert result.out == snapshot(
        """\
--- good.txt
+++ good.txt (formatted)
@@ -1,3 +1,6 @@
 model_id = [0, 1]
-subtasks = ["Plan it.", "Do it."]
-access_list = [[], [0]]
\\ No newline at end of file
+subtasks = [
+    "Plan it.",
+    "Do it.",
+]
+access_list = [[], [0]]
"""
    )
    assert (files / "good.txt").read_text() + "\n" == GOOD


def test_three_empty_lists_are_nothing_to_format(wfdsl: Command, files: Path) -> None:
    first = wfdsl("fmt", "empty-lists.txt")
    recursion = wfdsl("fmt", "--recursion", "empty-lists.txt")

    assert first.code == 1
    assert "error[empty-workflow]" in first.err
    assert recursion.code == 2
    assert "three empty lists" in recursion.err


@pytest.mark.parametrize("code", CODES)
def test_explain_knows_every_code(wfdsl: Command, code: str) -> None:
    result = wfdsl("check", "--explain", code)

    row = CODES[code]
    assert result.code == 0
    assert result.out.startswith(f"{code}: {row.summary}\n(")
    assert row.explanation in result.out
    assert ("\nWrong:\n    " in result.out) == bool(row.wrong)
    assert ("\nRight:\n    " in result.out) == bool(row.right)


def test_explain_lists_all_codes_in_order_and_shows_a_page(wfdsl: Command) -> None:
    assert [line.split()[0] for line in wfdsl("check", "--explain").out.splitlines()] == list(CODES)
    assert wfdsl("check", "--explain", "number-as-string").out == snapshot(
        """\
number-as-string: a number is written as a string
(a warning in the lenient profile, an error in the strict one; completions)

Workers and steps are integers, without quotes.

Wrong:
    model_id = ["0", 1]
    subtasks = ["Plan it.", "Do it."]
    access_list = [[], [0]]

Right:
    model_id = [0, 1]
    subtasks = ["Plan it.", "Do it."]
    access_list = [[], [0]]
"""
    )
