"""`wfdsl solve` with nothing but a question, on the model that runs here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from wfdsl.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.local
@pytest.mark.slow
def test_under_the_grammar_the_small_model_writes_strictly_valid_workflows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WFDSL_HOME", str(tmp_path))

    code = main(["solve", "-q", "What is 3 + 4?", "--json", "--max-steps", "1"])

    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert found["answer"].strip()
    assert [[each["reading"] for each in note["completions"]] for note in found["rounds"]] in (
        [["valid"], ["valid"]],
        [["valid"], ["passthrough"]],
    )
