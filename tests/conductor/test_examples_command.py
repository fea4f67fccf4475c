"""`wfdsl data examples`: what is shipped, and what can be extracted from solved questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wfdsl import parse
from wfdsl.cli.main import main
from wfdsl.conductor.examples import load_examples, shipped_sets

from .scripted_server import lists

SINGLE, CHAIN = lists([0], [[]]), lists([0, 1], [[], [0]])


def row(question: str, text: str, *, right: bool = True, outcome: str = "ran") -> dict[str, Any]:
    rounds = [{"result": outcome, "completions": [{"text": "no"}, {"text": text}]}]
    return {"id": question, "question": question, "answer": "a", "rounds": rounds, "right": right}


@pytest.fixture
def solved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [
        row("wrong", SINGLE, right=False),
        row("default", SINGLE, outcome="ran-default"),
        row("repaired", SINGLE.replace("[[]]", "[None]")),
        row("it's '''first'''", f"Think.\n{SINGLE}"),
        row("second", SINGLE),
        row("chained", f"Über \\ 'all'\n{CHAIN}"),
        {"id": "x", "question": "failed", "answer": None, "error": "no"},
    ]
    path = tmp_path / "out.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    return path


def test_right_strict_answers_are_kept_once_for_each_topology(solved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["data", "examples", "extract", str(solved), "--name", "mine"])

    Path("mine.toml").write_text(capsys.readouterr().out)
    found = load_examples("mine.toml")
    assert code == 0
    assert found.name == "mine"
    assert [(each.question, each.completion) for each in found.examples] == [
        ("it's '''first'''", f"Think.\n{SINGLE}"),
        ("chained", f"Über \\ 'all'\n{CHAIN}"),
    ]


def rounds_of(*rounds: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"result": result, "completions": [{"text": text}] if text else []} for result, text in rounds]


@pytest.mark.parametrize(
    ("rounds", "completion"),
    [
        ([("ran", SINGLE), ("ran", f"That was wrong.\n{CHAIN}")], CHAIN),
        ([("ran", f"Think.\n{CHAIN}"), ("kept", "Good.")], f"Think.\n{CHAIN}"),
        ([("ran", f"Think.\n{CHAIN}"), ("kept-failed", "")], f"Think.\n{CHAIN}"),
        ([("ran-default", "no"), ("ran", CHAIN)], CHAIN),
        ([("ran", SINGLE), ("ran", lists([0, 1], ["all", [0]]))], None),
    ],
    ids=["revised", "kept", "kept after a failure", "default revised", "built on the previous answer"],
)
def test_the_workflow_that_gave_the_answer_is_the_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rounds: list[tuple[str, str]], completion: str | None
) -> None:
    path, made = tmp_path / "out.jsonl", tmp_path / "mine.toml"
    path.write_text(json.dumps({**row("Why?", SINGLE), "rounds": rounds_of(*rounds)}))

    code = main(["data", "examples", "extract", str(path)])

    made.write_text(capsys.readouterr().out)
    assert code == (0 if completion else 2)
    if completion:
        (found,) = load_examples(str(made)).examples
        assert parse(found.completion, profile="strict") == parse(completion)
        assert ("Think." in found.completion) == ("Think." in completion)
        assert "wrong" not in found.completion


def test_the_number_of_examples_can_be_limited(solved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["data", "examples", "extract", str(solved), "--most", "1"])

    assert capsys.readouterr().err == "1 example\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (json.dumps(row("Why?", SINGLE)), "mark right answers with 'correct': true"),
        ('{"a": 1}', "other.jsonl:1: not a line that `wfdsl solve --out` wrote"),
    ],
    ids=["nothing is right", "something else"],
)
def test_a_file_without_right_answers_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    (tmp_path / "other.jsonl").write_text(f"{line}\n")

    code = main(["data", "examples", "extract", str(tmp_path / "other.jsonl"), "--right", "correct"])

    assert code == 2
    assert said in capsys.readouterr().err


def test_shipped_sets_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    main(["data", "examples"])
    listed = capsys.readouterr().out
    main(["data", "examples", "show", "mixed"])
    shown = capsys.readouterr().out

    assert [line.split()[0] for line in listed.splitlines()] == list(shipped_sets())
    assert shown.count("Question: ") == shown.count("model_id = ") == 4
