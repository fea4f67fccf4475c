"""What `wfdsl data` prints, writes and returns."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from wfdsl.cli.main import main as wfdsl
from wfdsl.tasks.loading import load_tasks

DATA = Path(__file__).parent / "data"
MIXED = [str(DATA / file) for file in ("gsm8k_test.jsonl", "mmlu_stem_test.jsonl", "mbpp.jsonl")]


def main(words: list[str]) -> int:
    return wfdsl(["data", *words])


def test_show_counts_and_prints_the_first_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["show", str(DATA / "math_train.jsonl"), "--limit", "2"])

    assert code == 0
    assert capsys.readouterr().out.startswith("2 tasks\n  kinds: math 2\n  sources: math train 2\n  levels: 1 1, 2 1\n")


def test_convert_prints_what_it_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = str(DATA / "gpqa_diamond.csv"), tmp_path / "out.jsonl"

    codes = (main(["convert", file, "-o", str(out)]), main(["convert", file]))

    assert codes == (0, 0)
    assert capsys.readouterr().out == out.read_text(encoding="utf-8")
    assert load_tasks(out) == load_tasks(file)


def test_convert_maps_samples_and_names_the_format(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    file = str(DATA / "math500_test.jsonl")

    mapping = ["--map", "question=problem,gold=answer,kind==text"]
    code = main(["convert", file, *mapping, "--limit", "2", "--seed", "1", "-o", str(out)])

    assert code == 0
    assert [task.kind for task in load_tasks(out)] == ["text", "text"]


def test_select_writes_the_mix_and_its_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mix.jsonl"

    code = main(
        ["select", *MIXED, "-n", "math=3,choice=2,code=1", "--against", MIXED[2], "--seed", "2", "-o", str(out)]
    )

    assert code == 2
    assert "code=1" in capsys.readouterr().err

    code = main(["select", *MIXED, "-n", "math=3,choice=2,code=1", "--seed", "2", "-o", str(out)])

    said = json.loads((tmp_path / "mix.jsonl.manifest.json").read_text())
    assert (code, said["chosen"]) == (0, {"choice": 2, "code": 1, "math": 3})
    assert said["sha256"] == sha256(out.read_bytes()).hexdigest()
    assert said["ids"] == [task.id for task in load_tasks(out)]


@pytest.mark.parametrize("file", ["gsm8k_test.jsonl", "svamp_test.jsonl", "mmlu_stem_test.jsonl", "gpqa_diamond.csv"])
def test_check_judges_gold_answers_right(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("math_verify")
    count = len(load_tasks(DATA / file))

    assert main(["check", str(DATA / file)]) == 0
    assert capsys.readouterr().out == f"{count} tasks: {count} right\n"


def custom(file: Path, grader: str, *golds: str) -> str:
    """A file of tasks that a function judges."""
    rows = [{"id": gold or "open", "question": "?", "gold": gold, "kind": "custom", "grader": grader} for gold in golds]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


@pytest.mark.parametrize(
    ("verdict", "golds", "begin", "end"),
    [
        ("text == 'yes'", ("yes", "no", ""), "no: wrong: ", "3 tasks: 1 right, 1 wrong, 1 without gold\n"),
        ("True", ("1",), "1: accepts a wrong answer", "1 task: 1 accepts a wrong answer\n"),
    ],
)
def test_check_names_gold_answers_that_are_judged_wrong_and_graders_that_accept_wrong_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verdict: str, golds: tuple[str, ...], begin: str, end: str
) -> None:
    (tmp_path / "own.py").write_text(f"def judge(task, text):\n    return {verdict}\n")

    assert main(["check", custom(tmp_path / "x.jsonl", f"{tmp_path}/own.py:judge", *golds)]) == 1

    told = capsys.readouterr().out
    assert told.startswith(begin)
    assert told.endswith(end)


def test_the_kinds_of_a_file_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"question": "2+2?", "answer": "4"}, {"question": "Capital of Peru?", "answer": "Lima"}]
    file = tmp_path / "x.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    assert main(["convert", str(file)]) == 0
    assert capsys.readouterr().err == f"{file}: read as x: 1 math, x: 1 text\n"


def test_check_says_what_the_judging_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["check", custom(tmp_path / "x.jsonl", "no_such_module_here:judge", "1")])

    assert code in (2, 3)
    assert "no_such_module_here" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "nowhere.jsonl"],
        ["show", str(DATA / "README.md")],
        ["show", MIXED[0], "--map", "x"],
        ["show", MIXED[0], "--task-format", "gsm9k"],
        ["convert", MIXED[0], "-o", "x.txt"],
        ["convert", MIXED[0], "-o", "no/such/folder/x.jsonl"],
        ["select", MIXED[0], "-n", "x", "-o", "y.jsonl"],
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    code = main(arguments)

    caught = capsys.readouterr()
    assert (code, caught.out) == (2, "")
    assert caught.err.splitlines()[-1].startswith("wfdsl data: ")
    assert list(tmp_path.iterdir()) == []
