"""The tab key: what a shell is told when it asks how a command goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import wfdsl
from tests.forked import ended

pytest.importorskip("argcomplete")


def completed(line: str, place: Path, *, module: str = "wfdsl") -> set[str]:
    out = place / "completions"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_SHELL": "bash",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(out),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line.encode())),
        "COMP_TYPE": "9",
        "WFDSL_HOME": str(place),
    }
    ended("-m", module, folder=place, env=os.environ | asked)
    return {word.strip() for word in out.read_text().split("\n") if word.strip()} if out.exists() else set()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("wfdsl ru", {"run", "runs"}),
        ("wfdsl solve --budget-", {"--budget-calls", "--budget-usd"}),
        ("wfdsl check --profile ", {"strict", "lenient"}),
        ("wfdsl runs re", {"resume", "redo"}),
        ("wfdsl eval compare --ag", {"--against"}),
        ("wfdsl serve --score --sandbox", {"--sandbox-slots"}),
        ("wfdsl run my", {"my.wf"}),
        ("wfdsl run my.wf Q --pool pa", {"paper"}),
        ("wfdsl pools show lo", {"local"}),
        ("wfdsl check --explain dead", {"dead-step"}),
        ("wfdsl runs show la", {"last"}),
    ],
)
def test_commands_options_values_and_files_are_completed(tmp_path: Path, line: str, words: set[str]) -> None:
    (tmp_path / "my.wf").touch()

    assert words <= completed(line, tmp_path)


@pytest.mark.parametrize("command", ["runs show", "show --run"])
def test_ids_of_runs_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    async def answer(messages: list[dict[str, str]]) -> str:
        return "4"

    monkeypatch.setenv("WFDSL_HOME", str(tmp_path))
    workflow = wfdsl.Workflow.from_lists([0], ["Say it."], [[]])
    run = wfdsl.run_sync(workflow, "2 + 2?", wfdsl.Pool.from_functions([answer]), journal=tmp_path / "journal.db")

    assert completed(f"wfdsl {command} {run.id[:4]}", tmp_path) == {run.id}


def test_the_other_program_is_completed_too(tmp_path: Path) -> None:
    assert "--stage" in completed("wfdsl-train --st", tmp_path, module="wfdsl_rl.cli.train")
