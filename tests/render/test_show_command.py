"""`wfdsl show`: formats, files and errors, as somebody at the command line meets them."""

import io
import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from wfdsl.cli.main import main

COMPLETION = """\
model_id = [2, 0, 1]
subtasks = ["Plan it.", "Solve it.", "Check it."]
access_list = [[], [0], "all"]
"""


@pytest.fixture
def workflow(tmp_path: Path) -> str:
    path = tmp_path / "answer.txt"
    path.write_text(COMPLETION)
    return str(path)


def test_the_terminal_drawing_is_the_default(workflow: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["show", workflow])

    assert code == 0
    assert "◉ step 2  worker 1  ← all  answer" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("chosen", "start"),
    [("mermaid", "flowchart TD"), ("dot", "digraph workflow {"), ("svg", "<svg "), ("json", '{\n  "title"')],
)
def test_each_format_goes_to_standard_output(
    workflow: str, chosen: str, start: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    code = main(["show", workflow, "--format", chosen])

    assert code == 0
    assert capfdbinary.readouterr().out.decode("utf-8").startswith(start)


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.svg", "<svg "), ("a.MMD", "flowchart"), ("a.gv", "digraph"), ("a.json", "{"), ("a.txt", "3 steps · chain")],
)
def test_the_suffix_of_the_file_picks_the_format(workflow: str, tmp_path: Path, name: str, start: str) -> None:
    code = main(["show", workflow, "-o", str(tmp_path / name)])

    assert code == 0
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_an_asked_format_wins_over_the_suffix(workflow: str, tmp_path: Path) -> None:
    out = tmp_path / "picture.out"

    code = main(["show", workflow, "--format", "svg", "-o", str(out)])

    assert code == 0
    assert ET.parse(out).getroot().tag.endswith("svg")


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(COMPLETION.encode())))

    code = main(["show", "-", "--format", "json"])

    found = json.loads(capfdbinary.readouterr().out)
    assert code == 0
    assert (found["topology"], found["answer"]) == ("chain", 2)


def test_an_unknown_suffix_says_what_to_do(workflow: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["show", workflow, "-o", str(tmp_path / "picture.xyz")])

    assert code == 2
    assert "give --format, or end it in .txt" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_one_line(
    workflow: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["show", workflow, "-o", str(tmp_path / "none" / "a.svg")])

    err = capsys.readouterr().err
    assert code == 2
    assert "cannot be written: No such file or directory" in err
    assert err.count("\n") == 1


def test_a_wrong_workflow_is_not_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.txt"
    path.write_text('model_id = [0]\nsubtasks = ["a"]\naccess_list = [[3]]\n')

    code = main(["show", str(path)])

    assert code == 1
    assert capsys.readouterr().out == ""


def test_no_color_is_honoured(
    workflow: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    main(["show", workflow])
    coloured = capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")

    main(["show", workflow])

    assert "\x1b[36m" in coloured
    assert "\x1b[36m" not in capsys.readouterr().out
